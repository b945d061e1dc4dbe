"""Sessions run where they were asked to, or not at all; and how much memory there is."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.qwen3 import session
from scrapy_dripper.engines.qwen3.prepared import Prepared
from scrapy_dripper.engines.qwen3.session import open_session, tokens_that_fit

CUDA = "CUDAExecutionProvider"
ADVICE = r"scrapy-dripper\[gpu\].*preload_dlls"


@pytest.fixture
def for_cuda(prepared: Prepared) -> Prepared:
    return replace(prepared, device="cuda")


def test_cuda_that_this_onnxruntime_does_not_know(for_cuda: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU is never a silent replacement."""
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])

    with pytest.raises(ModelError, match=ADVICE):
        open_session(for_cuda, "auto", 1)


def test_cuda_without_its_libraries(for_cuda: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel for GPUs without CUDA's libraries lists the provider, and runs on the CPU without a word."""
    loaded = []
    whole = onnxruntime.InferenceSession
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA, "CPUExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: loaded.append(1), raising=False)
    monkeypatch.setattr(
        onnxruntime, "InferenceSession", lambda path, options, providers: whole(path, options, ["CPUExecutionProvider"])
    )

    with pytest.raises(ModelError, match=ADVICE):
        open_session(for_cuda, "cuda", 1)
    assert loaded == [1]


@pytest.mark.parametrize(("made_for", "asked"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_another_device_than_the_folders(prepared: Prepared, made_for: str, asked: str) -> None:
    with pytest.raises(ModelError, match=f"was exported for {made_for}.*--device {asked}"):
        open_session(replace(prepared, device=made_for), asked, 1)


def test_nothing_is_kept_for_each_shape(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly every pass has other lengths, and onnxruntime would keep a plan of its memory for each of them."""
    whole, patterns = onnxruntime.InferenceSession, []

    def opened(path: str, options: onnxruntime.SessionOptions, providers: list[Any]) -> onnxruntime.InferenceSession:
        patterns.append(options.enable_mem_pattern)
        return whole(path, options, providers)

    monkeypatch.setattr(onnxruntime, "InferenceSession", opened)
    open_session(prepared, "auto", 1)

    assert patterns == [False]


def test_a_graph_that_cannot_be_loaded(prepared: Prepared, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(prepared.folder, tmp_path / "prepared"))
    (folder / "model.onnx").write_bytes(b"no graph")

    with pytest.raises(ModelError, match="onnxruntime cannot load"):
        open_session(replace(prepared, folder=folder), "auto", 1)


@pytest.mark.parametrize("wrong", [{"layers": 3}, {"layers": 1}, {"kv_heads": 1}, {"dtype": "float16"}])
def test_a_manifest_that_is_not_the_graphs(either: Prepared, wrong: dict[str, Any]) -> None:
    """The graph writes keys and values into memory of the size that the manifest says, so it is compared first."""
    with pytest.raises(ModelError, match=r"model\.onnx is not what .*manifest\.json says"):
        open_session(replace(either, **wrong), "auto", 1)


def test_a_graph_of_the_other_kind(either: Prepared) -> None:
    other = "plain" if either.attention == "gqa" else "gqa"

    with pytest.raises(ModelError, match="is not what"):
        open_session(replace(either, attention=other), "auto", 1)


def test_room_follows_free_memory(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the memory is twice the tokens; with score matrices it is less than that."""
    plain = replace(prepared, attention="plain")

    def rooms(free: int | None) -> tuple[int, int]:
        monkeypatch.setattr(session, "free_memory", lambda: free)
        return tokens_that_fit(prepared), tokens_that_fit(plain)

    gqa, square = rooms(1 << 30)
    assert gqa == (1 << 29) // (2 * prepared.token_bytes)
    assert rooms(1 << 31)[0] == 2 * gqa
    assert square < rooms(1 << 31)[1] < 2 * square
    assert rooms(None)[0] > 0


def test_room_on_a_gpu_is_the_gpus(for_cuda: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "free_memory", lambda: 0)
    monkeypatch.setattr(session, "free_cuda_memory", lambda: 1 << 30)

    assert tokens_that_fit(for_cuda) == int(0.85 * (1 << 30) / (2 * for_cuda.token_bytes))


def test_free_memory_is_known_or_not() -> None:
    free: Any = session.free_memory()

    assert free is None or free > 1 << 20
    assert session.free_cuda_memory() is None or session.free_cuda_memory()


def test_runtimes_that_overwrite_each_other(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_dripper.engines.runtime._installed", lambda _: True)

    with pytest.raises(ModelError, match="pip uninstall onnxruntime onnxruntime-gpu"):
        open_session(prepared, "auto", 1)
