"""Build a prepared folder from a checkpoint."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tqdm import tqdm

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.files import hashes as file_hashes
from scrapy_dripper.engines.prepared import FORMATS, MANIFEST, VERSION
from scrapy_dripper.engines.qwen3.grammar import MAIN, OTHER, Grammar
from scrapy_dripper.engines.qwen3.prepared import Prepared, load_prepared
from scrapy_dripper.workshop.export import ExportError
from scrapy_dripper.workshop.export.checkpoint import (
    ARCHITECTURE,
    BYTES,
    LONGEST_CONTEXT,
    TOKENIZER,
    Checkpoint,
    check_space,
    hashes,
    open_checkpoint,
)
from scrapy_dripper.workshop.export.exporters import (
    COPIES,
    GENAI,
    Target,
    check_exporter,
    run_exporter,
    versions,
)
from scrapy_dripper.workshop.export.recipe import Recipe, find_recipe

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Request:
    """The options of an export. None means that a value follows from the others."""

    model: str
    out: Path
    exporter: str = GENAI
    device: str | None = None
    """``cuda`` or ``cpu``; None for ``cuda`` if onnxruntime can use a GPU."""
    cuda: int = 13
    """Major version of CUDA that the graph will run with. There is no onnxruntime 1.28 or later for CUDA 12."""
    dtype: str | None = None
    """``float16``, ``bfloat16`` or ``float32``; None for half precision on a GPU."""
    profile: str | None = None
    truncate_chars: int | None = None
    prompt: Path | None = None
    answer: str | None = None
    context: int | None = None
    validate: bool = True


def export(request: Request, say: Say) -> Prepared:
    """Write a prepared folder and return it. The folder is either complete and checked, or not written at all.

    Raise :exc:`ExportError` if that fails. As much as possible is checked in advance.
    """
    check_exporter(request.exporter)
    device, dtype = _decided(request)
    out = request.out
    check_free(out)
    checkpoint = open_checkpoint(request.model, say)
    if request.exporter == GENAI and checkpoint.head_dim % 16:
        raise ExportError(
            f"{checkpoint.name} has heads of {checkpoint.head_dim} channels, and GroupQueryAttention takes "
            "multiples of 16: use --exporter optimum"
        )
    if request.context is not None and request.context > checkpoint.positions:
        raise ExportError(f"{checkpoint.name} has {checkpoint.positions:,} positions: --context can be no more")
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
    needs = checkpoint.needs(dtype, COPIES[request.exporter])
    say(
        f"{checkpoint.name}: {checkpoint.parameters / 1e6:,.1f} million parameters in {checkpoint.layers} layers, to "
        f"{dtype} for {device} with {request.exporter}; profile {recipe.profile}, a prompt of "
        f"{len(recipe.prompt):,} characters. This takes {needs} for a while."
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    check_space(needs, out.parent)
    request = replace(request, device=device, dtype=dtype)
    with part_folder(out) as part:
        prepared = _write(part, request, checkpoint, recipe, tokenizer, say)
        finish(part, out)
    return replace(prepared, folder=out)


def check(folder: Path, say: Say, device: str = "auto") -> None:
    """Check a prepared folder: its files, its tokenizer, and its graph against the logits that the export stored.

    This requires neither PyTorch nor the checkpoint. Raise :exc:`ExportError` or
    :exc:`~scrapy_dripper.engines.base.ModelError` if anything is wrong.
    """
    from scrapy_dripper.workshop.export.validate import compare, report, stored_checks

    prepared = load_prepared(folder)
    say(f"{folder}: {prepared.name}, {prepared.dtype} for {prepared.device}; files, labels and manifest are right")
    report(prepared, compare(prepared, stored_checks(prepared), device), say)


def _decided(request: Request) -> tuple[str, str]:
    """Return device and data type. Raise :exc:`ExportError` for a missing GPU, or for an unsupported kind of graph."""
    gpu = request.device != "cpu" and cuda_works()
    if request.device == "cuda" and request.validate and not gpu:
        raise ExportError(
            "--device cuda, but the onnxruntime here finds no GPU to try the graph on: add --no-validate, and then run "
            "'scrapy-dripper export --check OUT' on the machine with the GPU, where scrapy-dripper[gpu] is installed"
        )
    device = request.device or ("cuda" if gpu else "cpu")
    dtype = request.dtype or ("float16" if device == "cuda" else "float32")
    if request.exporter == GENAI and device == "cpu" and dtype != "float32":
        raise ExportError(
            "the exporter 'genai' makes graphs in half precision for GPUs only: use --dtype fp32, or --device cuda"
        )
    if request.exporter == GENAI and device == "cuda" and dtype == "float32":
        raise ExportError(
            "on a GPU, GroupQueryAttention only exists in half precision: use --dtype fp16, or bf16 for a model "
            "whose numbers are too large for fp16"
        )
    if request.exporter != GENAI and dtype == "bfloat16":
        raise ExportError("only the exporter 'genai' makes graphs in bf16: use --exporter genai")
    return device, dtype


def cuda_works() -> bool:
    """Return True if onnxruntime can run a graph on a GPU."""
    import onnxruntime
    from onnx import TensorProto, helper

    provider = "CUDAExecutionProvider"
    if provider not in onnxruntime.get_available_providers():
        return False
    if hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "probe", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=[provider])
    return provider in session.get_providers()


def check_free(out: Path) -> None:
    """Raise :exc:`ExportError` if a folder has something in it."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ExportError(f"{out} already exists: remove it, or name another folder")


@contextmanager
def part_folder(out: Path) -> Iterator[Path]:
    """Yield a temporary folder beside ``out``. It is removed in the end unless it was renamed."""
    part = Path(tempfile.mkdtemp(prefix=f".{out.name}.part-", dir=out.parent))
    part.chmod(0o755)
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


def finish(part: Path, out: Path) -> None:
    """Rename a complete folder into place."""
    if out.is_dir():
        out.rmdir()
    part.rename(out)


def _write(
    part: Path, request: Request, checkpoint: Checkpoint, recipe: Recipe, tokenizer: Tokenizer, say: Say
) -> Prepared:
    """Fill a folder with a prepared model and compare it with its checkpoint."""
    from scrapy_dripper.workshop.export.asking import ask, ways
    from scrapy_dripper.workshop.export.head import cut_head, graph_shape, load_graph, save_graph
    from scrapy_dripper.workshop.export.reference import Reference
    from scrapy_dripper.workshop.export.validate import compare, to_json

    dtype, device = request.dtype or "", request.device or ""
    context = request.context or min(checkpoint.positions, LONGEST_CONTEXT)

    try:
        reference = Reference(checkpoint.folder)
    except Exception as error:  # raised by transformers, safetensors or torch
        raise ExportError(f"PyTorch cannot load {checkpoint.folder} ({error}): restore the checkpoint") from None
    answer, manner = recipe.answer, None
    if answer is None:
        say("asking the model, in PyTorch, how it answers")
        manner = ask(reference, tokenizer, ways(checkpoint.folder, recipe.prompt), context)
        say(str(manner))
        answer, recipe = manner.answer, replace(recipe, prompt=manner.prompt)
    grammar = Grammar(tokenizer, answer)
    say("computing in PyTorch the logits that a graph must give")
    checks = reference.checks(tokenizer, recipe.prompt, grammar, context)
    del reference

    work = part / "work"
    expected = BYTES[dtype] * (checkpoint.parameters + (0 if request.exporter == GENAI else checkpoint.embedding))
    with tqdm(total=expected, desc=f"exporting with {request.exporter}", unit="B", unit_scale=True) as bar:
        exported = run_exporter(
            Target(request.exporter, dtype, device, request.cuda),
            checkpoint,
            work,
            lambda done: _tick(bar, min(done, expected)),
        )
        _tick(bar, expected)
    say(f"cutting the head from {checkpoint.vocabulary:,} tokens to 2")
    model = load_graph(exported)
    cut_head(model, grammar.main, grammar.other)
    shape = graph_shape(model)
    if (shape.layers, shape.dtype) != (checkpoint.layers, dtype):
        raise ExportError(f"the exporter made a graph of {shape.layers} layers in {shape.dtype}")
    files = [*save_graph(model, part), TOKENIZER]
    del model
    shutil.rmtree(work)
    shutil.copyfile(checkpoint.folder / TOKENIZER, part / TOKENIZER)

    for name in files:
        (part / name).chmod(0o644)  # onnx writes weights that only the owner can read

    source: dict[str, Any] = {"model": checkpoint.name, "files": hashes(checkpoint.folder), "checks": to_json(checks)}
    if manner is not None:
        source["manner"] = {"way": manner.way, "prefix": manner.prefix}
    manifest: dict[str, Any] = {
        "format": FORMATS[Prepared.ENGINE],
        "version": VERSION,
        "name": checkpoint.name,
        "architecture": ARCHITECTURE,
        "exporter": request.exporter,
        "attention": shape.attention,
        "dtype": dtype,
        "device": device,
        "layers": checkpoint.layers,
        "hidden": checkpoint.hidden,
        "inner": checkpoint.inner,
        "heads": checkpoint.heads,
        "kv_heads": checkpoint.kv_heads,
        "head_dim": checkpoint.head_dim,
        "vocab_size": checkpoint.vocabulary,
        "runtime": shape.runtime,
        "context": context,
        "profile": recipe.profile,
        "truncate_chars": recipe.truncate_chars,
        "prompt": recipe.prompt,
        "answer": answer,
        "likelihood": None if manner is None else manner.likelihood,
        "labels": {MAIN: grammar.main, OTHER: grammar.other},
        "files": file_hashes(part, files),
        "versions": versions(request.exporter),
        "source": source,
    }
    write_manifest(part, manifest)
    try:
        prepared = load_prepared(part)
        if request.validate:
            comparison = compare(prepared, checks, device)
            say(f"against PyTorch: {comparison}")
            if not comparison.passed:
                raise ExportError("the graph does not answer as the checkpoint does: nothing was written")
            source["comparison"] = asdict(comparison)
            write_manifest(part, manifest)
            return load_prepared(part)
    except ModelError as error:
        raise ExportError(f"the graph was written, but cannot be used ({error})") from None
    return prepared


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write a manifest into a folder."""
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def _tick(bar: Any, done: int) -> None:
    """Set a progress bar, and redraw it so that the time advances."""
    bar.n = max(bar.n, done)
    bar.refresh()
