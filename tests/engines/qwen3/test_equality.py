"""Labels from real graphs of both kinds equal those of token-by-token decoding, however the passes are divided."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.equality import Prover, naive
from scrapy_dripper.engines.qwen3.grammar import FORMATS, Ids
from scrapy_dripper.engines.qwen3.loop import Chunk, Floats, decode
from scrapy_dripper.engines.qwen3.passes import CHUNK, GqaPasses, open_passes
from scrapy_dripper.engines.qwen3.prepared import Prepared
from scrapy_dripper.engines.qwen3.session import open_session


@pytest.mark.parametrize("answer", FORMATS)
def test_labels_are_those_of_one_token_at_a_time(either: Prepared, answer: str) -> None:
    """Batches of one to five pages, with and without the shared prefix, with drafts of any quality."""
    *_, proof = Prover(either.folder, answer, seed=1).prove(pages=10, most_blocks=30)

    assert (proof.chunked, proof.drafted) == (0, 0)
    assert proof.choices > 30
    assert 0 < proof.main < proof.choices


def test_padding_changes_no_label(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """It also limits the number of distinct shapes, because a GPU makes a plan for each."""
    monkeypatch.setitem(CHUNK, "cpu", CHUNK["cuda"])
    shapes, run = set(), GqaPasses._run

    def noted(self: GqaPasses, binding: object, inputs: dict[str, Ids]) -> Floats:
        shapes.add((inputs["input_ids"].shape[1], self._width, inputs["attention_mask"].shape[1]))
        return run(self, binding, inputs)  # type: ignore[arg-type]

    monkeypatch.setattr(GqaPasses, "_run", noted)
    *_, proof = Prover(prepared.folder, "json", seed=5).prove(pages=6, most_blocks=30)

    assert (proof.chunked, proof.drafted) == (0, 0)
    assert proof.choices > 20
    assert {width for _, width, _ in shapes} <= {64, 128, 256, 512, 1024}
    assert all(read % 256 == 0 or end == width for read, width, end in shapes)


def test_padding_stays_within_the_context(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rotations only exist for positions in the context. A graph on a GPU would read beyond them."""
    monkeypatch.setitem(CHUNK, "cpu", 256)
    passes = open_passes(open_session(prepared, "auto", 1), replace(prepared, context=300), np.zeros(0, dtype=np.int64))
    read, run = [], GqaPasses._run

    def noted(self: GqaPasses, binding: object, inputs: dict[str, Ids]) -> Floats:
        read.append(inputs["attention_mask"].shape[1])
        return run(self, binding, inputs)  # type: ignore[arg-type]

    monkeypatch.setattr(GqaPasses, "_run", noted)
    passes.begin([300], shared=False)
    passes.forward([Chunk(0, 0, np.arange(3, 270), np.array([266]))])
    passes.forward([Chunk(0, 267, np.arange(3, 36), np.array([32]))])

    assert read == [300, 300]


def test_one_token_at_a_time_is_what_the_whole_text_gives(either: Prepared) -> None:
    """The reference is compared with runs of the graph without our cache, masks and buffers."""
    prover = Prover(either.folder, "json", seed=2)
    session = open_session(either, "auto", 1)
    task = prover._task(6, shared=False)
    expected = naive(prover.passes, task, prover._begin([task], shared=False))

    ids, labels = task.prompt.tolist(), []
    for token in task.answer.ids[: task.answer.places[-1] + 1].tolist():
        if len(ids) - len(task.prompt) in task.answer.places:
            nothing = np.zeros((1, either.kv_heads, 0, either.head_dim), dtype=np.float32)
            inputs = {one.name: nothing for one in session.get_inputs() if one.name.startswith("past")}
            inputs |= {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), dtype=np.int64)}
            inputs |= {"choice_rows": np.array([len(ids) - 1])}
            if either.attention == "plain":
                inputs["position_ids"] = np.arange(len(ids))[None]
            main, other = session.run(["choice_logits"], inputs)[0][0]
            labels.append(bool(main > other))
            token = task.main if main > other else task.other
        ids.append(token)

    assert labels == expected.main.tolist()


def test_the_shared_prefix_changes_nothing(either: Prepared) -> None:
    """Logits after a prefix that was read earlier are those of the whole prompt, with GQA to the bit."""
    prover = Prover(either.folder, "json", seed=3)
    tasks = [prover._task(40, shared=True) for _ in range(4)]

    def margins(shared: bool) -> list[Floats]:
        return [decode(prover.passes, [one], prover._begin([one], shared=shared))[0].margins for one in tasks]

    for behind, whole in zip(margins(True), margins(False), strict=True):
        np.testing.assert_allclose(behind, whole, rtol=0, atol=0 if either.attention == "gqa" else 1e-4)


def test_buffers_grow_and_the_prefix_survives_or_is_read_again(prepared: Prepared) -> None:
    """Pages of all sizes, alone and together, with and without the prefix, have the same labels as on their own."""
    prover = Prover(prepared.folder, "json", seed=4)
    passes = prover.passes
    assert isinstance(passes, GqaPasses)
    seen = []
    for length, shared, together in [
        (30, 1, 1),
        (900, 1, 1),
        (40, 0, 1),
        (50, 1, 1),
        (60, 1, 3),
        (35, 1, 1),
        (70, 0, 2),
    ]:
        ids = np.concatenate([prover.prompt.shared, np.arange(3, 3 + length) % 500])
        start = passes.begin([len(ids)] * together, shared=bool(shared))
        chunks = [Chunk(i, start, ids[start:], np.array([len(ids) - start - 1])) for i in range(together)]
        found = np.concatenate(passes.forward(chunks))
        passes.release()
        passes.begin([len(ids)], shared=False)
        (alone,) = passes.forward([Chunk(0, 0, ids, np.array([len(ids) - 1]))])
        np.testing.assert_allclose(found, np.repeat(alone, together, axis=0), atol=1e-4)
        seen.append(start)

    assert seen == [
        len(prover.prompt.shared) if s and t == 1 else 0
        for s, t in [(1, 1), (1, 1), (0, 1), (1, 1), (1, 3), (1, 1), (0, 2)]
    ]
