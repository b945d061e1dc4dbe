"""Export an encoder's checkpoint to a prepared folder. Requires the extra [export]. Crawls never import it.

The checkpoint classifies tokens into two classes. It was trained on the blocks of a page with a separator after each,
like those of pulpie (https://github.com/feyninc/pulpie). Its answer for a block is the class of the separator.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from scrapy_dripper.engines import files
from scrapy_dripper.engines.base import EngineError, ModelError
from scrapy_dripper.engines.encoder.chunks import Chunk, chunks
from scrapy_dripper.engines.encoder.model import EncoderModel
from scrapy_dripper.engines.encoder.prepared import Encoder, load_encoder
from scrapy_dripper.engines.prepared import FORMATS, GRAPH, MANIFEST, TOKENIZER
from scrapy_dripper.page.simplify import FOOT
from scrapy_dripper.workshop.export import ExportError
from scrapy_dripper.workshop.export.build import (
    Request,
    check_free,
    cuda_works,
    finish,
    part_folder,
    write_manifest,
)
from scrapy_dripper.workshop.export.checkpoint import CONFIG, HUB_FILES, hashes, hub_name
from scrapy_dripper.workshop.export.exporters import GENAI, check_exporter, versions
from scrapy_dripper.workshop.export.validate import (
    Check,
    Comparison,
    compared,
    probe_pages,
    report,
    stored_checks,
    to_json,
)

Say = Callable[[str], None]
SUFFIX = "ForTokenClassification"
"""End of the architecture names of such checkpoints."""
SEPARATOR = "<|sep|>"
PROFILE, TRUNCATE_CHARS = "v1.1", 500
"""What the published encoders were trained on: the profile, and where it cuts a block."""
LONGEST_CONTEXT = 8_192
"""Maximum number of tokens of a pass with which the published encoders were trained."""
_RUNTIME = "1.20"  # opset 18 in the version of ONNX files that torch writes
_OPSET = 18
_INLINE = 50_000_000  # parameters above which the weights are a file of their own


def is_encoder(model: str) -> bool:
    """Return True if a checkpoint, in a folder or on the hub, classifies tokens."""
    try:
        if Path(model).is_dir():
            path = Path(model) / CONFIG
        elif hub_name(model):
            from huggingface_hub import hf_hub_download

            path = Path(hf_hub_download(model, CONFIG))
        else:
            return False
        found = json.loads(path.read_text(encoding="utf-8")).get("architectures") or []
        return any(str(one).endswith(SUFFIX) for one in found)
    except Exception:  # the export of language models says what is wrong
        return False


def is_prepared(folder: Path) -> bool:
    """Return True if a folder is a prepared encoder, even if it is damaged."""
    try:
        return bool(files.read_json(folder, MANIFEST, "")["format"] == FORMATS[Encoder.ENGINE])
    except (ModelError, KeyError, TypeError):
        return False


def export(request: Request, say: Say) -> Encoder:
    """Write a prepared folder and return it. The folder is either complete and checked, or not written at all.

    Raise :exc:`ExportError` if that fails.
    """
    check_exporter(GENAI)
    device = request.device or ("cuda" if cuda_works() else "cpu")
    dtype = request.dtype or ("float16" if device == "cuda" else "float32")
    if device == "cpu" and dtype != "float32":
        raise ExportError("on a CPU, encoders run in single precision: use --dtype fp32, or --device cuda")
    if device == "cuda" and request.validate and not cuda_works():
        raise ExportError(
            "--device cuda, but the onnxruntime here finds no GPU to try the graph on: add --no-validate, and then run "
            "'scrapy-dripper export --check OUT' on the machine with the GPU, where scrapy-dripper[gpu] is installed"
        )
    for option, value in (("--prompt", request.prompt), ("--answer", request.answer)):
        if value is not None:
            raise ExportError(f"{option} is for language models: an encoder has no prompt, and writes no answer")
    check_free(request.out)
    folder = _fetched(request.model, say)
    request.out.parent.mkdir(parents=True, exist_ok=True)
    with part_folder(request.out) as part:
        prepared = _write(part, replace(request, device=device, dtype=dtype), folder, say)
        finish(part, request.out)
    return replace(prepared, folder=request.out)


def check(folder: Path, say: Say, device: str = "auto") -> None:
    """Check a prepared encoder: its files, and its graph against the logits that the export stored."""
    prepared = load_encoder(folder)
    say(f"{folder}: {prepared.name}, {prepared.dtype} for {prepared.device}; files and manifest are right")
    report(prepared, _compare(prepared, stored_checks(prepared), device), say)


def _fetched(model: str, say: Say) -> Path:
    if Path(model).is_dir():
        return Path(model)
    from huggingface_hub import snapshot_download

    say(f"{model}: downloading the files that are missing")
    try:
        return Path(snapshot_download(model, allow_patterns=list(HUB_FILES)))
    except Exception as error:  # several libraries raise many types
        raise ExportError(f"cannot get {model} from the hub ({error}): name a folder with the checkpoint") from None


def _write(part: Path, request: Request, folder: Path, say: Say) -> Encoder:
    """Fill a folder with a prepared encoder and compare it with its checkpoint."""
    import torch
    from transformers import AutoModelForTokenClassification, PreTrainedTokenizerFast

    if not (folder / TOKENIZER).is_file():
        raise ExportError(f"{folder} has no {TOKENIZER}: save the tokenizer into it with transformers' AutoTokenizer")
    try:
        model = AutoModelForTokenClassification.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, dtype=torch.float32
        ).eval()
        marks = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # raised by transformers, safetensors or torch
        raise ExportError(f"PyTorch cannot load {folder} ({error}): restore the checkpoint") from None
    config = model.config
    separator = Tokenizer.from_file(str(folder / TOKENIZER)).token_to_id(SEPARATOR)
    if separator is None or separator >= config.vocab_size:
        raise ExportError(f"{folder} has no token {SEPARATOR}, at which such models classify a block")
    if config.num_labels != 2:
        raise ExportError(f"{folder} has {config.num_labels} classes; expected two, main and other")
    classes = {str(name).lower(): int(number) for number, name in config.id2label.items()}
    parameters = sum(one.numel() for one in model.parameters())
    profile = request.profile or PROFILE
    say(
        f"{folder}: {parameters / 1e6:,.1f} million parameters, to {request.dtype} for {request.device}; profile "
        f"{profile}"
    )
    prepared = Encoder(
        name=request.model if hub_name(request.model) else folder.resolve().name,
        architecture=str((config.architectures or [type(model).__name__])[0]),
        dtype=request.dtype or "",
        device=request.device or "",
        heads=config.num_attention_heads,
        vocab_size=config.vocab_size,
        runtime=_RUNTIME,
        context=request.context or min(config.max_position_embeddings, LONGEST_CONTEXT),
        profile=profile,
        truncate_chars=(TRUNCATE_CHARS if request.truncate_chars is None else request.truncate_chars) or None,
        before=[] if marks.bos_token_id is None else [marks.bos_token_id],
        separator=separator,
        after=[] if marks.eos_token_id is None else [marks.eos_token_id],
        foot=FOOT,
        main=classes.get("main", 1),
        files={},
        versions=versions(GENAI),
        source={},
        folder=part,
    )
    (part / TOKENIZER).write_bytes((folder / TOKENIZER).read_bytes())
    checks = _checks(model, prepared)
    say("exporting with PyTorch")
    _save(model, part, prepared, checks[0], parameters > _INLINE)
    listed = files.hashes(part, [path.name for path in part.iterdir()])
    source: dict[str, Any] = {"model": prepared.name, "files": hashes(folder), "checks": to_json(checks)}
    prepared = replace(prepared, files=listed, source=source)
    write_manifest(part, prepared.manifest())
    if request.validate:
        comparison = _compare(load_encoder(part), checks, prepared.device)
        say(f"against PyTorch: {comparison}")
        if not comparison.passed:
            raise ExportError("the graph does not answer as the checkpoint does: nothing was written")
        source["comparison"] = asdict(comparison)
        write_manifest(part, prepared.manifest())
    return load_encoder(part)


def _checks(model: Any, prepared: Encoder) -> list[Check]:
    """Return the checkpoint's logits for a few pages, with other before main."""
    import torch

    tokenizer, found = prepared.tokenizer(), []
    for page in probe_pages():
        tokens = tokenizer.encode_batch_fast(page, add_special_tokens=False)
        for one in chunks([block.ids for block in tokens], prepared, prepared.context):
            with torch.no_grad():
                logits = model(input_ids=torch.from_numpy(one.ids)[None]).logits[0, torch.from_numpy(one.rows)]
            ordered = logits if prepared.main else logits.flip(1)
            found.append(Check(one.ids.tolist(), one.rows.tolist(), ordered.tolist()))
    return found


def _save(model: Any, folder: Path, prepared: Encoder, check: Check, outside: bool) -> None:
    """Write the graph, which takes tokens and the positions of separators, and returns logits."""
    import torch
    from onnx_ir.passes.common import ClearMetadataAndDocStringPass

    class Rows(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, rows: Any) -> Any:
            return self.model(input_ids=input_ids).logits[0, rows].float()

    logging.getLogger("torch").setLevel(logging.ERROR)  # it warns about packages that encoders do not need
    dynamic = torch.export.Dim.DYNAMIC
    model.to(getattr(torch, prepared.dtype))
    program = torch.onnx.export(
        Rows().eval(),
        (torch.tensor([check.ids]), torch.tensor(check.rows)),
        input_names=["input_ids", "rows"],
        output_names=["logits"],
        dynamic_shapes={"input_ids": {1: dynamic}, "rows": {0: dynamic}},
        opset_version=_OPSET,
        dynamo=True,
        verbose=False,
    )
    ClearMetadataAndDocStringPass()(program.model)  # lines and paths of code on this machine, and most of the file
    program.save(str(folder / GRAPH), external_data=outside)


def _compare(prepared: Encoder, checks: Sequence[Check], device: str) -> Comparison:
    """Run a graph on the pages of checks. Raise ModelError if it cannot run."""
    model = EncoderModel(prepared, device=device, most=max((len(one.ids) for one in checks), default=None))
    passes = [Chunk(np.array(one.ids, dtype=np.int64), np.array(one.rows, dtype=np.int64)) for one in checks]
    answers = model.run(passes)
    model.close()
    ours = [one for one in answers if not isinstance(one, EngineError)]
    return compared(ours, [np.array(one.logits, dtype=np.float32) for one in checks], prepared.dtype)
