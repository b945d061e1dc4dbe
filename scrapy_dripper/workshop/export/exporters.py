"""Run the programs that turn a checkpoint into a graph. Each runs in its own process, so that its memory is freed and
its output only appears in errors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import distributions, version
from importlib.util import find_spec
from pathlib import Path

from scrapy_dripper.workshop.export import ExportError
from scrapy_dripper.workshop.export.checkpoint import CONFIG, Checkpoint, read_config

GENAI, OPTIMUM = "genai", "optimum"
EXTRAS = {GENAI: "export", OPTIMUM: "export-optimum"}
COPIES = {GENAI: 1, OPTIMUM: 3}
"""Maximum number of copies of a graph's weights in memory besides the model, measured with 46 and 596 million
parameters."""
PACKAGES = {
    GENAI: ("onnxruntime-genai", "onnxruntime-genai-cuda", "onnx-ir", "onnxscript"),
    OPTIMUM: ("optimum", "optimum-onnx"),
}
SHARED_PACKAGES = ("scrapy-dripper", "onnx", "onnxruntime", "onnxruntime-gpu", "tokenizers", "torch", "transformers")
"""Packages whose versions the manifest lists if they are installed."""

_MODULES = {
    GENAI: ("onnxruntime_genai.models.builder", "torch", "transformers", "onnx", "onnx_ir", "onnxruntime"),
    OPTIMUM: ("optimum.exporters.onnx", "torch", "transformers", "onnx", "onnxruntime"),
}
# transformers 4.58 removed parts that optimum-onnx 0.1 uses, and the builder of onnxruntime-genai 0.18 imports models
# that only transformers 5 has. So the two never work in the same environment.
_TRANSFORMERS = {GENAI: 5, OPTIMUM: 4}
_POLL = 0.2  # seconds

_OPTIMUM = """
import sys
from optimum.exporters.onnx import main_export
source, folder, dtype = sys.argv[1:]
main_export(source, folder, task="text-generation-with-past", dtype=dtype, do_validation=False, local_files_only=True,
            trust_remote_code=False)
"""


def check_exporter(exporter: str) -> None:
    """Raise :exc:`ExportError`, naming the extra, if an exporter is not installed."""
    missing = [name for name in _MODULES[exporter] if not _is_there(name)]
    extra = EXTRAS[exporter]
    if missing:
        raise ExportError(
            f"the exporter {exporter!r} needs {missing[0].split('.')[0]}: run 'pip install scrapy-dripper[{extra}]' in "
            "a virtualenv of its own"
        )
    found = version("transformers")
    if int(found.split(".")[0]) != _TRANSFORMERS[exporter]:
        raise ExportError(
            f"the exporter {exporter!r} needs transformers {_TRANSFORMERS[exporter]} (got {found}): run 'pip install "
            f"scrapy-dripper[{extra}]' in a virtualenv of its own"
        )


def versions(exporter: str) -> dict[str, str]:
    """Return the versions of the packages that an export depends on."""
    names = {*SHARED_PACKAGES, *PACKAGES[exporter]}
    return {one.name: one.version for one in distributions() if one.name in names}


@dataclass(frozen=True, slots=True)
class Target:
    """The exporter of a graph, and the device and data type of the graph."""

    exporter: str
    dtype: str
    device: str
    cuda: int
    """Major version of CUDA, if the device is a GPU."""


def run_exporter(target: Target, checkpoint: Checkpoint, folder: Path, tick: Callable[[int], None]) -> Path:
    """Write the graph of a checkpoint below a folder and return its path.

    ``tick`` is called a few times per second with the number of bytes written so far. Raise :exc:`ExportError`, with
    the last lines of the exporter's output, if it fails.
    """
    source, out, log = folder / "checkpoint", folder / "exported", folder / "log.txt"
    _stage(checkpoint, source)
    short = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}[target.dtype]
    if target.exporter == GENAI:
        command = ["-m", "onnxruntime_genai.models.builder", "-m", source, "-o", out, "-p", short, "-e", target.device]
        command += ["-c", folder / "cache", "--extra_options", "hf_remote=false"]  # do not run code of the checkpoint
        if target.cuda == 12:
            command.append("fuse_qk_norm_gqa=false")  # inputs that GroupQueryAttention has from onnxruntime 1.28 on
    else:
        command = ["-c", _OPTIMUM, source, out, short]
    settings = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    settings["PYTHONSAFEPATH"] = "1"  # a folder here may be called onnx
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=os.environ | settings,
        )  # fmt: skip
        try:
            while process.poll() is None:
                time.sleep(_POLL)
                tick(_written(out))
        finally:
            process.kill()
            process.wait()
    if process.returncode:
        raise ExportError(f"the exporter {target.exporter!r} failed ({_reason(process.returncode, log)})")
    return out


def _stage(checkpoint: Checkpoint, folder: Path) -> None:
    """Link the files of a checkpoint into a folder, with a configuration that all exporters read in the same way."""
    folder.mkdir(parents=True)
    for path in checkpoint.folder.iterdir():
        if path.is_file() and path.suffix in (".json", ".safetensors") and path.name != CONFIG:
            _link(path.resolve(), folder / path.name)
    config = read_config(checkpoint.folder)
    config.pop("auto_map", None)  # names code in the checkpoint
    if config.get("eos_token_id") is None:  # onnxruntime-genai's builder requires one, but the graph does not use it
        config["eos_token_id"] = 0
    (folder / CONFIG).write_text(json.dumps(config), encoding="utf-8")


def _link(path: Path, name: Path) -> None:
    """Link a file to another name, or copy it if that is not possible.

    On Windows, few users may create symbolic links, and hard links do not work across disks.
    """
    for link in (name.symlink_to, name.hardlink_to):
        with suppress(OSError):
            link(path)
            return
    shutil.copyfile(path, name)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a package above it is missing, or broken
        return False


def _written(folder: Path) -> int:
    try:
        return sum(path.stat().st_size for path in folder.glob("*"))
    except OSError:  # a temporary file that no longer exists
        return 0


def _reason(code: int, log: Path) -> str:
    if code < 0:
        return f"it was killed by signal {-code}; signal 9 mostly means that the memory was too small"
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return "; ".join(lines[-3:])[-600:] or f"exit code {code}"
