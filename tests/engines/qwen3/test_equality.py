"""Labels equal those of token-by-token decoding, however the passes are divided: from a real graph, and from a fake
model that depends on every token."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from tokenizers import Tokenizer

from benchmarks.equality import DRAFTS, Prover, naive
from scrapy_dripper.engines.qwen3 import decoder
from scrapy_dripper.engines.qwen3.decoder import (
    CHUNK,
    PIECE,
    Decoded,
    Decoder,
    DecodeTask,
    Floats,
    Passes,
    decode,
    open_session,
)
from scrapy_dripper.engines.qwen3.folder import Prepared
from scrapy_dripper.engines.qwen3.grammar import FORMATS, Grammar, Ids
from tests.engines.qwen3.fakes import PREPARED, FakeModel, with_graph


def noted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """Note for each pass how many tokens it reads, where it ends, and the capacity of the buffers."""
    shapes: list[tuple[int, int, int]] = []
    run = Passes._run

    def note(self: Passes, inputs: dict[str, Ids], is_repeated: bool) -> Floats:
        shapes.append((inputs["input_ids"].shape[1], inputs["attention_mask"].shape[1], self._capacity))
        return run(self, inputs, is_repeated)

    monkeypatch.setattr(Passes, "_run", note)
    return shapes


@pytest.mark.parametrize("answer", FORMATS)
def test_section_3_4_labels_are_those_of_one_token_at_a_time(prepared: Prepared, answer: str) -> None:
    """With drafts of any quality, and whether or not the start of the prompt was read for all pages."""
    *_, proof = Prover(prepared.folder, answer, seed=1).prove(pages=10, most_blocks=30)

    assert not proof.differ
    assert 0 < proof.ways[DRAFTS].cached < proof.exact.pages
    assert max(one.apart for one in proof.ways.values()) < 1e-4
    assert proof.exact.labels > 30
    assert 0 < proof.main < proof.exact.labels


def test_padding_changes_no_label(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """It also limits the number of distinct shapes. What is compared with, one token at a time, has no padding."""
    monkeypatch.setitem(CHUNK, "cpu", CHUNK["cuda"])
    shapes = noted(monkeypatch)
    *_, proof = Prover(prepared.folder, "json", seed=5).prove(pages=6, most_blocks=30)

    assert not proof.differ
    assert proof.exact.labels > 20
    assert {capacity for *_, capacity in shapes} <= {64, 128, 256, 512, 1024}
    assert 1 in {read for read, *_ in shapes}
    padded = [read % 256 == 0 or end == capacity for read, end, capacity in shapes]
    assert padded.count(False) <= proof.exact.passes


def test_pieces_change_no_label(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pass reads more than a piece, so the memory of a pass does not depend on the page."""
    monkeypatch.setitem(PIECE, "cpu", 16)
    monkeypatch.setattr(decoder, "REPEATED", (16,))
    shapes = noted(monkeypatch)
    *_, proof = Prover(prepared.folder, "json", seed=6).prove(pages=6, most_blocks=30)

    assert not proof.differ
    assert max(read for read, *_ in shapes) == 16
    assert proof.exact.labels > 20
    ids = np.random.default_rng(0).integers(3, 500, size=90)
    in_pieces = logits(prepared, ids)
    monkeypatch.undo()
    np.testing.assert_allclose(in_pieces, logits(prepared, ids), atol=1e-4)


def test_padding_stays_within_the_context(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rotations only exist for positions in the context. A graph on a GPU would read beyond them."""
    monkeypatch.setitem(CHUNK, "cpu", 256)
    passes = Passes(open_session(prepared), replace(prepared, context=300))
    shapes = noted(monkeypatch)
    passes.begin(300)
    passes.forward(0, np.arange(3, 270), np.array([266]))
    passes.forward(267, np.arange(3, 36), np.array([32]))

    assert [end for _, end, _ in shapes] == [300, 300]


def test_passes_of_cuda_graphs_have_few_shapes_and_change_no_label(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a GPU would repeat is the same for each page, wherever its text ends."""
    monkeypatch.setattr(decoder, "REPEATED", (16, 64))
    shapes: list[tuple[int, ...]] = []
    run = Passes._run

    def note(self: Passes, inputs: dict[str, Ids], is_repeated: bool) -> Floats:
        if is_repeated:
            shapes.append((*(value.shape[-1] for value in inputs.values()), self._capacity))
        return run(self, inputs, is_repeated)

    monkeypatch.setattr(Passes, "_run", note)
    *_, proof = Prover(prepared.folder, "json", seed=6).prove(pages=12, most_blocks=30)

    assert not proof.differ
    assert proof.exact.labels > 20
    assert {read for read, *_ in shapes} == {16, 64}
    assert all((end, rows) == (capacity, read) for read, end, rows, capacity in shapes)


def test_a_cuda_graph_has_memory_of_its_own(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number stands for the same addresses for ever, since a GPU would write there. Other passes have none."""
    monkeypatch.setattr(decoder, "REPEATED", (16, 64))
    session = open_session(prepared)
    numbers: list[str] = []

    def run(binding: Any, options: Any) -> None:
        numbers.append(options.get_run_config_entry("gpu_graph_id"))
        session.run_with_iobinding(binding, options)

    told: Any = SimpleNamespace(
        get_outputs=session.get_outputs,
        get_provider_options=session.get_provider_options,
        io_binding=session.io_binding,
        run_with_iobinding=run,
    )
    passes = Passes(told, replace(prepared, cuda_graphs=True))
    places: dict[str, set[tuple[int, ...]]] = {}
    for capacity, lengths in ((128, (16, 3, 20)), (100, (5,)), (300, (2, 2))):
        passes.begin(capacity)
        passes.forward(0, np.arange(3, 33), np.array([29]))
        for length in lengths:
            passes.forward(30, np.arange(3, 3 + length), np.array([length - 1]))
            graph = passes._graphs[16 if length <= 16 else 64]
            values = (*graph.inputs.values(), graph.logits, *passes._cache.values())
            places.setdefault(numbers[-1], set()).add(tuple(value.data_ptr() for value in values))

    assert numbers == ["-1", "1", "1", "2", "-1", "1", "-1", "3", "3"]
    assert all(len(one) == 1 for one in places.values())


def test_the_start_of_all_prompts_is_read_once(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read again if the buffers have grown, or if a pass failed. Other pages do not change a page's logits."""
    shapes = noted(monkeypatch)
    decoder = Decoder(prepared)
    shared = len(decoder.prompt.shared)
    tasks = []
    for n in (3, 40, 5, 3):
        (prompt,) = decoder.prompt.encode(["".join(f'<p _item_id="{k}">tide</p>' for k in range(n))])
        tasks.append(DecodeTask(prompt, decoder.grammar.answer(n), np.zeros(n, dtype=np.bool_)))
    del shapes[:]
    first, *_, last = decoder.decode(tasks)

    assert isinstance(first, Decoded)
    assert isinstance(last, Decoded)
    assert shared > 15
    assert [read for read, end, _ in shapes if read == end] == [shared], "the buffers grew once, with the second page"
    assert first.positions == sum(read for read, *_ in shapes[: first.passes]) < len(tasks[0].prompt)
    assert first.margins.tolist() == last.margins.tolist()
    with monkeypatch.context() as patch:
        patch.setattr(Passes, "forward", Mock(side_effect=RuntimeError))
        decoder.decode(tasks[:1])
    del shapes[:]
    decoder.decode(tasks[:1])
    assert shapes[0][:2] == (shared, shared)


def test_one_token_at_a_time_is_what_the_whole_text_gives(prepared: Prepared) -> None:
    """The reference is compared with runs of the graph without our cache, masks and buffers."""
    prover = Prover(prepared.folder, "json", seed=2)
    session = open_session(prepared)
    task = prover._task(6)
    expected = naive(prover.begun(task), task)

    ids, labels = task.prompt.tolist(), []
    for token in task.answer.ids[: task.answer.places[-1] + 1].tolist():
        if len(ids) - len(task.prompt) in task.answer.places:
            nothing = np.zeros((1, prepared.kv_heads, 0, prepared.head_dim), dtype=np.float32)
            inputs = {one.name: nothing for one in session.get_inputs() if one.name.startswith("past")}
            inputs |= {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), dtype=np.int64)}
            inputs |= {"choice_rows": np.array([len(ids) - 1])}
            main, other = session.run(["choice_logits"], inputs)[0][0]
            labels.append(bool(main > other))
            token = task.answer.main if main > other else task.answer.other
        ids.append(token)

    assert labels == expected.main.tolist()


@pytest.mark.parametrize(("name", "kind"), [("tensor(float16)", np.float16), ("tensor(float)", np.float32)])
def test_logits_have_the_type_that_the_graph_gives_them(prepared: Prepared, name: str, kind: type) -> None:
    session: Any = SimpleNamespace(
        get_outputs=lambda: [SimpleNamespace(name="choice_logits", type=name)], get_provider_options=dict
    )

    assert Passes(session, prepared)._logits is kind


# ---------------------------------------------------------------------- bfloat16
@pytest.fixture(scope="module")
def rounded(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """The small model, with its keys and values in bfloat16, which numpy does not support. The graph is in single
    precision and casts them.
    """
    model = onnx.load(prepared.graph)
    for one in [*model.graph.input, *model.graph.output]:
        if one.name.startswith(("past_key_values.", "present.")):
            one.type.tensor_type.elem_type = TensorProto.BFLOAT16
    for node in list(model.graph.node):
        for names, before in ((node.input, True), (node.output, False)):
            for i, name in enumerate(names):
                if not name.startswith("past_key_values." if before else "present."):
                    continue
                names[i] = name + "/single"
                ends = [name, names[i]] if before else [names[i], name]
                to = TensorProto.FLOAT if before else TensorProto.BFLOAT16
                cast = helper.make_node("Cast", ends[:1], ends[1:], to=to)
                model.graph.node.insert(0 if before else len(model.graph.node), cast)
    return with_graph(tmp_path_factory.mktemp("bfloat16"), model, dtype="bfloat16", cache_dtype="bfloat16")


def logits(prepared: Prepared, ids: np.ndarray, *cuts: int) -> Floats:
    """Return the logits at all positions of a text that is read in pieces."""
    passes = Passes(open_session(prepared), prepared)
    passes.begin(len(ids))
    ends = [*cuts, len(ids)]
    found = []
    for start, end in zip([0, *cuts], ends, strict=True):
        found.append(passes.forward(start, ids[start:end], np.arange(end - start)))
    return np.concatenate(found)


def test_keys_and_values_are_kept(prepared: Prepared, rounded: Prepared) -> None:
    """Later passes that use them give the same logits as in single precision, to within eight bits."""
    ids = np.random.default_rng(0).integers(3, 500, size=90)
    exact = logits(prepared, ids)

    np.testing.assert_allclose(logits(rounded, ids, 40, 41, 70), exact, atol=0.1 * np.abs(exact).max())
    assert rounded.token_bytes == prepared.token_bytes // 2
    with pytest.raises(AssertionError):  # as they would be if nothing was kept
        np.testing.assert_allclose(logits(prepared, ids[40:]), exact[40:], atol=0.1 * np.abs(exact).max())


def test_labels_in_bfloat16_are_nearly_always_those_of_one_token_at_a_time(rounded: Prepared) -> None:
    """The graph rounds keys and values at the end of a pass, so near ties depend on how passes are divided."""
    *_, proof = Prover(rounded.folder, "json", seed=1).prove(pages=15, most_blocks=10)

    assert sum(proof.differ.values()) <= 3
    assert proof.exact.labels > 30


# ---------------------------------------------------------------------- the loop, with a fake model
@lru_cache
def grammar(name: str) -> Grammar:
    tokenizer = Tokenizer.from_file(str(PREPARED / "tokenizer.json"))
    tokenizer.add_tokens(["</think>", "\n\n"])
    return Grammar(tokenizer, name)


def task(prompt: list[int], draft: list[bool], answer: str = "json") -> DecodeTask:
    one = grammar(answer)
    return DecodeTask(np.array(prompt), one.answer(len(draft)), np.array(draft, dtype=np.bool_))


def expected(model: FakeModel, one: DecodeTask) -> Decoded:
    """Return the labels of token-by-token decoding, from a fresh start."""
    return naive(type(model)(model.seed, model.ties), one)


@given(
    prompt=st.lists(st.integers(0, 500), min_size=1, max_size=8),
    draft=st.lists(st.booleans(), min_size=1, max_size=40),
    answer=st.sampled_from(sorted(FORMATS)),
    lookahead=st.none() | st.integers(0, 5),
    seed=st.integers(0, 1000),
    ties=st.sampled_from([0.0, 0.3]),
)
def test_labels_are_those_of_one_token_at_a_time(
    prompt: list[int], draft: list[bool], answer: str, lookahead: int | None, seed: int, ties: float
) -> None:
    """This holds for all prompts, drafts, formats and ties, with at most one pass per block."""
    model = FakeModel(seed, ties)
    one = task(prompt, draft, answer)
    found, right = decode(model, one, lookahead), expected(model, one)

    assert found.main.tolist() == right.main.tolist()
    assert found.margins.tolist() == right.margins.tolist()
    assert found.passes == model.passes <= len(one.answer)
    assert found.kept == int((one.draft == right.main).sum())


@given(prompt=st.lists(st.integers(0, 500), min_size=3, max_size=9), n=st.integers(1, 60), data=st.data())
def test_wrong_drafts_cost_no_more_than_a_pass_each(prompt: list[int], n: int, data: st.DataObject) -> None:
    """A right draft takes one pass over prompt and answer. Each corrected label can cost another pass."""
    model = FakeModel()
    right = expected(model, task(prompt, [False] * n)).main.tolist()
    found = decode(model, task(prompt, right))

    assert (found.passes, found.positions, found.kept) == (1, len(task(prompt, right)), n)

    last = data.draw(st.integers(max(0, n - 3), n - 1))
    found = decode(model, task(prompt, [label ^ (k == last) for k, label in enumerate(right)]))

    assert found.main.tolist() == right
    assert found.passes <= 1 + n - 1 - last or found.passes == 1


class NearSighted(FakeModel):
    """A model whose choice mostly depends on the page, and sometimes on the previous label, like real ones."""

    def _logits(self, ids: list[int]) -> tuple[float, float]:
        one = grammar("json")
        labels = [token for token in ids if token in (one.main, one.other)]
        digest = hashlib.sha256(repr((self.seed, len(labels))).encode()).digest()
        flipped = digest[1] < 64 and labels[-1:] == [one.main]
        return float(digest[0] % 2 ^ flipped), 0.5


@pytest.mark.parametrize("seed", range(20))
def test_a_draft_that_is_half_wrong_takes_few_passes(seed: int) -> None:
    """All choices of a pass are the new draft, so labels that do not depend on wrong ones are right at once.

    To correct one label a pass would take 30.
    """
    right = expected(NearSighted(seed), task([1, 2], [False] * 60)).main
    wrong = np.random.default_rng(seed).permutation(60) < 30
    found = decode(NearSighted(seed), task([1, 2], (right ^ wrong).tolist()))

    assert found.main.tolist() == right.tolist()
    assert found.passes <= 8


@pytest.mark.parametrize("lookahead", [0, 3, 30])
def test_a_right_draft_that_is_read_in_parts(lookahead: int) -> None:
    """Labels beyond the current pass stay as drafted, and no token is read twice."""
    right = expected(FakeModel(), task([1, 2], [False] * 30)).main
    one = task([1, 2], right.tolist())
    found = decode(FakeModel(), one, lookahead)

    assert (found.passes, found.positions, found.kept) == (-(-30 // (lookahead + 1)), len(one), 30)


def test_probabilities_are_a_softmax_of_two() -> None:
    margins = np.array([0, 1, -1, 800, -800], dtype=np.float32)
    found = Decoded(margins > 0, margins, 1, 1, 0)

    with np.errstate(all="raise", under="ignore"):
        assert found.probabilities.tolist() == pytest.approx([0.5, 0.7310586, 0.2689414, 1, 0])
