"""Sessions run on the requested device or not at all, and memory is measured."""

from __future__ import annotations

import re
import runpy
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import onnxruntime
import pytest

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.files import GPU_EXTRA
from scrapy_dripper.engines.qwen3 import decoder
from scrapy_dripper.engines.qwen3.decoder import open_session, tokens_that_fit
from scrapy_dripper.engines.qwen3.engine import Qwen3Engine
from scrapy_dripper.engines.qwen3.folder import Prepared
from tests.engines.qwen3.fakes import FakeTagger

ROOT = Path(__file__).parents[3]
CUDA, TENSORRT = "CUDAExecutionProvider", "TensorrtExecutionProvider"
Opens = Callable[[Any], None]


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> Opens:
    """Pretend that there is a GPU, on which a function opens sessions."""
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA, TENSORRT])
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: None, raising=False)
    return partial(monkeypatch.setattr, onnxruntime, "InferenceSession")


def test_the_sentences_of_the_guide(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """The messages are exactly those in docs/guides/gpu.md. The CPU never replaces CUDA silently."""
    guide = (ROOT / "docs" / "guides" / "gpu.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (.*?) \| `(.*?)`", guide.partition("## When something fails")[2], re.M))
    on_cuda, loaded = replace(prepared, device="cuda"), Mock()
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    monkeypatch.setattr(decoder, "free_cuda_memory", lambda _: 3 << 29)
    said: dict[str, str] = {}

    def note(what: str, function: Any, *arguments: Any) -> None:
        with pytest.raises(ModelError) as error:
            function(*arguments)
        said[what] = str(error.value)

    note("the right wheel", open_session, on_cuda)
    note("a newer onnxruntime", decoder._check_version, replace(prepared, runtime="1.28"), "1.25.1")
    monkeypatch.setattr("scrapy_dripper.engines.files._installed", lambda _: True)
    note("one of the two wheels too many", open_session, prepared)
    with monkeypatch.context() as patch:
        patch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA])
        patch.setattr(onnxruntime, "preload_dlls", loaded, raising=False)
        patch.setattr("scrapy_dripper.engines.files._installed", lambda _: False)
        # Without CUDA's libraries, a wheel for GPUs still lists the provider, and runs on the CPU.
        on_cpu = SimpleNamespace(get_providers=lambda: ["CPUExecutionProvider"])
        patch.setattr(onnxruntime, "InferenceSession", lambda *_, **__: on_cpu)
        note("a driver, a newer one, or a CUDA library", open_session, on_cuda)
    said["memory for the model"] = str(decoder.no_room(on_cuda, MemoryError("...")))
    monkeypatch.undo()
    monkeypatch.setattr(decoder, "tokens_that_fit", lambda *_: 310)
    note("memory for pages", Qwen3Engine, replace(prepared, prompt="word " * 400 + "{html}"), FakeTagger())

    assert loaded.called
    assert f"scrapy-dripper[{GPU_EXTRA}]" in said["the right wheel"]
    assert {*rows} == {*said}
    for what, sentence in rows.items():
        assert sentence.removesuffix(" ...") in said[what]


@pytest.mark.parametrize(
    ("device", "installed", "advice"),
    [
        ("cuda", "1.25.1", r"onnxruntime-gpu>=1\.28\"' or, if the driver is for CUDA 12, .*'--cuda 12'"),
        ("cpu", "1.9.0", r"run 'pip install \"onnxruntime>=1\.28\"'$"),
    ],
)
def test_an_onnxruntime_that_is_too_old(
    prepared: Prepared, device: str, installed: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the required version, which onnxruntime's own message would not."""
    monkeypatch.setattr(onnxruntime, "__version__", installed)

    with pytest.raises(ModelError, match=rf"needs onnxruntime 1\.28 or later \(got {installed}\).*{advice}"):
        open_session(replace(prepared, device=device, runtime="1.28"))


@pytest.mark.parametrize(
    ("device", "opened"),
    [
        (None, [(CUDA, "0")]),
        ("cuda", [(CUDA, "0")]),
        ("cuda:1", [(CUDA, "1")]),
        ("tensorrt:1", [(TENSORRT, "1"), (CUDA, "1")]),
    ],
)
def test_the_device_that_was_chosen(
    prepared: Prepared, device: str | None, opened: list[tuple[str, str]], opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The providers are asked for on that device only, and the memory that is free is the one of that device."""
    made: list[Any] = []

    def no_memory(*_: Any, providers: list[Any]) -> None:
        made.extend(providers)
        raise RuntimeError("CUDA failure 2: out of memory")

    opens(no_memory)
    monkeypatch.setattr(decoder, "free_cuda_memory", {0: 1 << 30, 1: 3 << 29}.__getitem__)

    with pytest.raises(ModelError, match="1.5 GiB are free" if opened[0][1] == "1" else "1.0 GiB are free"):
        open_session(replace(prepared, device="cuda"), device)
    assert [(name, options["device_id"]) for name, options in made[:-1]] == opened
    assert made[-1] == "CPUExecutionProvider"
    assert "enable_cuda_graph" not in made[-2][1]


def test_cuda_graphs_are_behind_a_switch(prepared: Prepared, opens: Opens) -> None:
    asked = Mock(side_effect=RuntimeError)
    opens(asked)

    with pytest.raises(ModelError, match="cannot load"):
        open_session(replace(prepared, device="cuda", cuda_graphs=True))
    assert asked.call_args.kwargs["providers"][0][1]["enable_cuda_graph"] == "1"


@pytest.mark.parametrize(
    ("exported", "device", "message"),
    [
        ("cpu", "cuda:1", r"DRIPPER_DEVICE is 'cuda:1', but the model .* is for cpu: export it with '--device cuda'"),
        ("cuda", "cpu", r"DRIPPER_DEVICE is 'cpu', but the model in .* is for cuda: export it with '--device cpu'"),
        ("cuda", "tensorrt", "TensorrtExecutionProvider could not be started: install its libraries, or use 'cuda'"),
    ],
)
def test_a_device_that_the_model_cannot_use(
    prepared: Prepared, exported: str, device: str, message: str, opens: Opens
) -> None:
    opens(lambda *_, **__: SimpleNamespace(get_providers=lambda: [CUDA, "CPUExecutionProvider"]))

    with pytest.raises(ModelError, match=message):
        open_session(replace(prepared, device=exported), device)


@pytest.mark.parametrize(("python", "extra"), [((3, 10), "gpu-cuda12"), ((3, 11), "gpu"), ((3, 13), "gpu")])
def test_the_extra_that_errors_name_is_one_that_pip_has_something_for(
    python: tuple[int, int], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its marker matches this Python. Otherwise, pip would silently install nothing."""
    monkeypatch.setattr(sys, "version_info", python)

    assert runpy.run_path(str(ROOT / "scrapy_dripper" / "engines" / "files.py"))["GPU_EXTRA"] == extra
    assert "\"onnxruntime-gpu[cuda,cudnn]>=1.28,<2; python_version >= '3.11'\"]" in (ROOT / "pyproject.toml").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_model_that_does_not_fit(
    prepared: Prepared, device: str, opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says how much memory is free and what to do, since another export would not help."""
    opens(Mock(side_effect=RuntimeError("Failed to allocate memory for requested buffer of size 311164928")))
    monkeypatch.setattr(decoder, "free_memory", lambda: 3 << 29)
    monkeypatch.setattr(decoder, "free_cuda_memory", lambda _: 3 << 29)

    with pytest.raises(ModelError, match=r"not fit into the memory .* 1\.5 GiB are free now: stop other"):
        open_session(replace(prepared, device=device))


def test_a_graph_that_cannot_be_loaded(prepared: Prepared, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(prepared.folder, tmp_path / "prepared"))
    (folder / "model.onnx").write_bytes(b"no graph")

    with pytest.raises(ModelError, match="onnxruntime cannot load"):
        open_session(replace(prepared, folder=folder))


@pytest.mark.parametrize("wrong", [{"layers": 3}, {"layers": 1}, {"kv_heads": 1}, {"cache_dtype": "int8"}])
def test_a_manifest_that_is_not_the_graphs(prepared: Prepared, wrong: dict[str, Any]) -> None:
    """The manifest sets the size of the memory that the graph writes to, so both are compared first."""
    with pytest.raises(ModelError, match=r"model\.onnx is not what .*manifest\.json says"):
        open_session(replace(prepared, **wrong))


@pytest.mark.parametrize(("device", "share"), [("cpu", 0.5), ("cuda", 0.85)])
def test_room_follows_free_memory(
    prepared: Prepared, device: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of the device counts. There is some room if the system does not say how much memory is free."""
    free: dict[str, int | None] = {"cpu": 0, "cuda": 0}
    monkeypatch.setattr(decoder, "free_memory", lambda: free["cpu"])
    monkeypatch.setattr(decoder, "free_cuda_memory", lambda _: free["cuda"])
    one = replace(prepared, device=device)

    for size in (1 << 30, 1 << 31):
        free[device] = size
        assert tokens_that_fit(one) == int(share * size / prepared.token_bytes)
    assert prepared.token_bytes == 2 * 2 * 2 * 16 * 4, "keys and values, layers, heads, width, bytes"
    free[device] = None
    assert tokens_that_fit(one) > 0
