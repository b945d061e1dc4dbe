"""Passes of both kinds of graph: nothing is read twice, padded or kept without need."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scrapy_dripper.engines.qwen3.loop import Chunk
from scrapy_dripper.engines.qwen3.passes import GqaPasses, Passes, open_passes
from scrapy_dripper.engines.qwen3.prepared import Prepared
from scrapy_dripper.engines.qwen3.session import open_session


def opened(prepared: Prepared, shared: int = 0) -> Passes:
    """Return the passes of a model, with a shared prefix of so many tokens."""
    return open_passes(open_session(prepared, "auto", 1), prepared, np.arange(3, 3 + shared))


def beginning(sequence: int, tokens: int) -> Chunk:
    """Return the first tokens of a sequence; a label is chosen after the last one."""
    return Chunk(sequence, 0, np.arange(3, 3 + tokens), np.array([tokens - 1]))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Return the shapes [sequences, tokens] of what the graph has read, one for each run."""
    noted: list[tuple[int, ...]] = []
    run = Passes._run

    def note(passes: Passes, binding: Any, inputs: dict[str, Any]) -> Any:
        noted.append(inputs["input_ids"].shape)
        return run(passes, binding, inputs)

    monkeypatch.setattr(Passes, "_run", note)
    return noted


def test_the_prefix_is_read_once(either: Prepared, runs: list[tuple[int, ...]]) -> None:
    """All pages begin behind it, until everything is given back."""
    passes = opened(either, 20)

    assert [passes.begin([40], shared=True) for _ in range(3)] == [20] * 3
    assert runs == [(1, 20)]

    passes.release()
    passes.begin([40], shared=True)
    assert runs == [(1, 20)] * 2


def test_a_page_is_not_padded_on_a_cpu(either: Prepared, runs: list[tuple[int, ...]]) -> None:
    passes = opened(either)
    passes.begin([33], shared=False)
    passes.forward([beginning(0, 33)])

    assert runs == [(1, 33)]


def test_the_beginnings_of_pages_are_read_in_one_run(either: Prepared, runs: list[tuple[int, ...]]) -> None:
    passes = opened(either)
    passes.begin([33, 20], shared=False)
    passes.forward([beginning(0, 33), beginning(1, 20)])

    assert runs == [(2, 33)]


def test_buffers_are_as_large_as_the_longest_sequence(prepared: Prepared) -> None:
    """Rounded up to a power of 2; several sequences share one buffer."""
    passes = opened(prepared)
    assert isinstance(passes, GqaPasses)
    for lengths, tokens in (([100], 128), ([100, 30, 7], 3 * 128)):
        passes.begin(lengths, shared=False)
        shapes = {tuple(value.shape()) for value in passes._current._values.values()}
        assert shapes == {(1, prepared.kv_heads, tokens, prepared.head_dim)}


@pytest.mark.parametrize(("name", "kind"), [("tensor(float16)", np.float16), ("tensor(float)", np.float32)])
def test_logits_have_the_type_that_the_graph_gives_them(prepared: Prepared, name: str, kind: type) -> None:
    session: Any = SimpleNamespace(get_outputs=lambda: [SimpleNamespace(name="choice_logits", type=name)])

    assert open_passes(session, prepared, np.zeros(0, dtype=np.int64))._logits is kind
