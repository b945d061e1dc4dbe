"""Build a prepared folder from a checkpoint."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tokenizers import Tokenizer

from scrapy_dripper.cli.console import UsageError, say
from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.files import MANIFEST, QWEN3_FORMAT
from scrapy_dripper.engines.files import hashes as file_hashes
from scrapy_dripper.engines.qwen3.folder import TOKENIZER, TUNING, VERSION, Prepared, load_prepared
from scrapy_dripper.engines.qwen3.grammar import MAIN, OTHER, Grammar
from scrapy_dripper_lab.export.checkpoint import (
    CONFIG,
    LONGEST_CONTEXT,
    Checkpoint,
    Recipe,
    find_recipe,
    hashes,
    open_checkpoint,
)
from scrapy_dripper_lab.extras import how_to_install

MODULES = ("torch", "transformers", "onnx", "onnxruntime", "onnx_ir", "onnxruntime_genai")
"""What an export needs: the extra [export], or, for a graph of optimum, [optimum], which has all but the last one."""
PACKAGES = {
    *("optimum", "optimum-onnx"),
    *("onnxruntime-genai", "onnxruntime-genai-cuda", "onnx-ir", "onnxscript", "onnx", "onnxruntime", "onnxruntime-gpu"),
    *("scrapy-dripper", "tokenizers", "torch", "transformers"),
}
"""Packages whose versions the manifest lists if they are installed."""
PRECISION = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}


@dataclass(frozen=True, slots=True)
class Request:
    """The options of an export. None means that a value follows from the others."""

    model: str
    out: Path
    device: str | None = None
    """``cuda`` or ``cpu``; None for ``cuda`` if onnxruntime can use a GPU."""
    cuda: int = 13
    """Major version of CUDA that the graph will run with. There is no onnxruntime 1.28 or later for CUDA 12."""
    dtype: str | None = None
    """``float16``, ``bfloat16`` or ``float32``; None for half precision on a GPU."""
    graph: Path | None = None
    """Folder with a graph of optimum; None to run the exporter of onnxruntime-genai."""
    weight_format: str | None = None
    """``int8`` or ``int4`` to store the weights in fewer bits than ``dtype`` has."""
    cache_dtype: str | None = None
    """``int8`` or ``float8e4m3fn`` to keep keys and values in fewer bits than ``dtype`` has."""
    profile: str | None = None
    truncate_chars: int | None = None
    prompt: Path | None = None
    answer: str | None = None
    context: int | None = None
    validate: bool = True


def export(request: Request) -> Prepared:
    """Write a prepared folder and return it. The folder is either complete and checked, or not written at all.

    Raise :exc:`UsageError` if that fails. As much as possible is checked in advance.
    """
    missing = [name for name in MODULES[: -1 if request.graph else None] if find_spec(name) is None]
    if missing:
        raise UsageError(f"the export needs {missing[0]}: run {how_to_install('export')}, in a virtualenv of its own")
    device, dtype = _decided(request)
    out = request.out
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} already exists: remove it, or name another folder")
    checkpoint = open_checkpoint(request.model)
    if request.context is not None and request.context > checkpoint.positions:
        raise UsageError(f"{checkpoint.name} has {checkpoint.positions:,} positions: --context can be no more")
    recipe = find_recipe(
        checkpoint.folder,
        {
            "profile": request.profile,
            "truncate_chars": request.truncate_chars,
            "prompt_file": request.prompt,
            "answer": request.answer,
        },
    )
    tokenizer = Tokenizer.from_file(str(checkpoint.folder / TOKENIZER))
    if recipe.answer is not None:
        Grammar(tokenizer, recipe.answer)  # raises if the tokenizer does not fit
    say(
        f"{checkpoint.name}: {checkpoint.layers} layers, to {request.weight_format or dtype} for {device}; profile "
        f"{recipe.profile}, a prompt of {len(recipe.prompt):,} characters"
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{out.name}.part-", dir=out.parent) as folder:
        part = Path(folder) / out.name
        part.mkdir()
        prepared = _write(part, replace(request, device=device, dtype=dtype), checkpoint, recipe, tokenizer)
        if out.is_dir():
            out.rmdir()
        part.rename(out)
    if prepared.doubt:
        say(f"warning: {prepared.doubt}")
    return replace(prepared, folder=out)


def check(folder: Path) -> None:
    """Check a prepared folder: its files, its tokenizer, and its graph against the logits that the export stored.

    This requires neither PyTorch nor the checkpoint. Raise :exc:`UsageError` or
    :exc:`~scrapy_dripper.engines.base.ModelError` if anything is wrong.
    """
    from scrapy_dripper_lab.export.validate import compare, stored_checks

    prepared = load_prepared(folder)
    numbers = f"{prepared.weight_format} weights, {prepared.cache_dtype} cache, {prepared.dtype} for {prepared.device}"
    say(f"{folder}: {prepared.name}, {numbers}; files, labels and manifest are right")
    comparison = compare(prepared, stored_checks(prepared))
    say(str(comparison))
    if not comparison.passed:
        raise UsageError(f"the graph in {folder} does not answer as its checkpoint does: export it again")
    if prepared.doubt:
        say(f"warning: {prepared.doubt}")


def cuda_works() -> bool:
    """Return True if onnxruntime can use a GPU here."""
    import onnxruntime

    from scrapy_dripper.engines.qwen3.decoder import CUDA, free_cuda_memory

    return CUDA in onnxruntime.get_available_providers() and free_cuda_memory() is not None


def _decided(request: Request) -> tuple[str, str]:
    """Return device and data type. Raise :exc:`UsageError` for a missing GPU, or for an unsupported kind of graph."""
    gpu = request.device != "cpu" and cuda_works()
    if request.device == "cuda" and request.validate and not gpu:
        raise UsageError(
            "--device cuda, but the onnxruntime here finds no GPU to try the graph on: add --no-validate, and then run "
            "'scrapy-dripper export --check OUT' on the machine with the GPU, where scrapy-dripper[gpu] is installed"
        )
    device = request.device or ("cuda" if gpu else "cpu")
    dtype = request.dtype or ("float16" if device == "cuda" else "float32")
    if device == "cpu" and dtype != "float32":
        raise UsageError("graphs in half precision are for GPUs only: use --dtype fp32, or --device cuda")
    if device == "cpu" and request.cache_dtype == "float8e4m3fn":
        raise UsageError("onnxruntime has keys and values in fp8 on GPUs only: use --kv-cache-dtype int8")
    if device == "cuda" and dtype == "float32":
        raise UsageError(
            "on a GPU, GroupQueryAttention only exists in half precision: use --dtype fp16, or bf16 for a model "
            "whose numbers are too large for fp16"
        )
    return device, dtype


def _write(part: Path, request: Request, checkpoint: Checkpoint, recipe: Recipe, tokenizer: Tokenizer) -> Prepared:
    """Fill a folder with a prepared model and compare it with its checkpoint."""
    from scrapy_dripper_lab.export.asking import ask, ways
    from scrapy_dripper_lab.export.cache import CPU_RUNTIME, quantize_cache
    from scrapy_dripper_lab.export.head import add_head, load_graph, oldest_runtime, save_graph
    from scrapy_dripper_lab.export.optimum import fuse_attention
    from scrapy_dripper_lab.export.reference import Reference
    from scrapy_dripper_lab.export.validate import compare, right_labels
    from scrapy_dripper_lab.export.weights import quantize

    dtype, device = request.dtype or "", request.device or ""
    context = request.context or min(checkpoint.positions, LONGEST_CONTEXT)
    try:
        reference = Reference(checkpoint.folder)
    except Exception as error:  # raised by transformers, safetensors or torch
        raise UsageError(f"PyTorch cannot load {checkpoint.folder} ({error}): restore the checkpoint") from None
    answer, manner = recipe.answer, None
    if answer is None:
        say("finding out, in PyTorch, how the model answers; a large one takes a minute for each line")
        manner = ask(reference, tokenizer, ways(checkpoint.folder, recipe.prompt), context)
        answer, recipe = manner.answer, replace(recipe, prompt=manner.prompt)
    grammar = Grammar(tokenizer, answer)
    say("computing in PyTorch the logits that a graph must give")
    checks = reference.checks(tokenizer, recipe.prompt, grammar, context)
    head = reference.head([grammar.main, grammar.other])
    ranges = reference.ranges(checks[-1].ids) if request.cache_dtype else ()
    del reference

    if request.graph is not None:
        model = load_graph(request.graph)
        fuse_attention(model, checkpoint, dtype)
    else:
        say("running the exporter of onnxruntime-genai")
        model = load_graph(_run_exporter(request, checkpoint, part / "work"))
    if request.weight_format is not None:
        say(f"storing the weights in {request.weight_format}")
        quantize(model, request.weight_format)
    if request.cache_dtype is not None:
        quantize_cache(model, request.cache_dtype, ranges)
    add_head(model, head)  # which stays exact
    runtime = CPU_RUNTIME if request.cache_dtype and device == "cpu" else oldest_runtime(model)
    files = [*save_graph(model, part), TOKENIZER]
    del model
    shutil.rmtree(part / "work", ignore_errors=True)
    shutil.copyfile(checkpoint.folder / TOKENIZER, part / TOKENIZER)
    for name in files:
        (part / name).chmod(0o644)  # onnx writes weights that only the owner can read

    source: dict[str, Any] = {
        "model": checkpoint.name,
        "files": hashes(checkpoint.folder),
        "checks": [asdict(one) for one in checks],
        "probes": right_labels(checks),
    }
    if manner is not None:
        source["manner"] = {"way": manner.way, "likelihood": manner.likelihood}
    manifest: dict[str, Any] = {
        "format": QWEN3_FORMAT,
        "version": VERSION,
        "name": checkpoint.name,
        "dtype": dtype,
        "weight_format": request.weight_format or dtype,
        "cache_dtype": request.cache_dtype or dtype,
        "device": device,
        "layers": checkpoint.layers,
        "kv_heads": checkpoint.kv_heads,
        "head_dim": checkpoint.head_dim,
        "vocab_size": checkpoint.vocabulary,
        "runtime": runtime,
        "context": context,
        "profile": recipe.profile,
        "truncate_chars": recipe.truncate_chars,
        **TUNING,
        "prompt": recipe.prompt,
        "answer": answer,
        "labels": {MAIN: grammar.main, OTHER: grammar.other},
        "files": file_hashes(part, files),
        "versions": {one.name: one.version for one in distributions() if one.name in PACKAGES},
        "source": source,
    }
    _write_manifest(part, manifest)
    try:
        prepared = load_prepared(part)
        if request.validate:
            comparison = compare(prepared, checks)
            say(f"against PyTorch: {comparison}")
            if not comparison.passed:
                raise UsageError("the graph does not answer as the checkpoint does: nothing was written")
            source["comparison"] = asdict(comparison)
            _write_manifest(part, manifest)
            return load_prepared(part)
    except ModelError as error:
        raise UsageError(f"the graph was written, but cannot be used ({error})") from None
    return prepared


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def _run_exporter(request: Request, checkpoint: Checkpoint, work: Path) -> Path:
    """Write the graph of a checkpoint, without its head, below a folder and return its path.

    The exporter runs in its own process, so that its memory is freed and its output only appears in errors. Raise
    :exc:`UsageError`, with the last lines of that output, if it fails.
    """
    source, out, log = work / "checkpoint", work / "exported", work / "log.txt"
    source.mkdir(parents=True)
    for path in checkpoint.folder.iterdir():
        if path.is_file() and path.suffix in (".json", ".safetensors") and path.name != CONFIG:
            try:
                (source / path.name).symlink_to(path.resolve())
            except OSError:  # on Windows, few users may create symbolic links
                shutil.copyfile(path, source / path.name)
    config = json.loads((checkpoint.folder / CONFIG).read_text(encoding="utf-8"))
    config.pop("auto_map", None)  # names code in the checkpoint
    if config.get("eos_token_id") is None:  # the exporter requires one, but the graph does not use it
        config["eos_token_id"] = 0
    (source / CONFIG).write_text(json.dumps(config), encoding="utf-8")

    command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-m", str(source), "-o", str(out)]
    command += ["-p", PRECISION[request.dtype or ""], "-e", request.device or "", "-c", str(work / "cache")]
    command += ["--extra_options", "exclude_lm_head=true"]
    command.append("hf_remote=false")  # do not run code of the checkpoint
    if request.cuda == 12:
        command.append("fuse_qk_norm_gqa=false")  # inputs that GroupQueryAttention has from onnxruntime 1.28 on
    settings = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    settings["PYTHONSAFEPATH"] = "1"  # a folder here may be called onnx
    with log.open("wb") as output:
        code = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=os.environ | settings, check=False
        ).returncode
    if code < 0:
        raise UsageError(
            f"the exporter was killed by signal {-code}; signal 9 mostly means that the memory was too small"
        )
    if code:
        lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
        last = "; ".join([line for line in lines if line][-3:])[-600:]
        raise UsageError(f"the exporter failed ({last or f'exit code {code}'})")
    return out
