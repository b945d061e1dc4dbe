"""A model with the shape and the tokenizer of the published one, and random weights: python -m pytest -m slow FILE."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("transformers")  # the extra [export]
pytest.importorskip("onnxruntime_genai")

from tokenizers import Tokenizer

from benchmarks.random_model import SIZES, write_checkpoint
from scrapy_dripper import Config, Document
from scrapy_dripper.cli import main
from scrapy_dripper.engines.qwen3.folder import load_prepared
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.machine import free_memory
from tests.engines.qwen3.real import tokenizer_file

NEEDED = 16 << 30


@pytest.mark.slow
def test_from_a_checkpoint_to_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The graph answers as PyTorch does, and the export says that random labels are random."""
    if (free_memory() or 0) < NEEDED:
        pytest.skip("16 GiB of free memory are needed")
    tokenizer = Tokenizer.from_file(str(tokenizer_file()))
    write_checkpoint(tmp_path / "random", SIZES["qwen3-0.6b"], 0, tokenizer)
    out = tmp_path / "prepared"
    assert main(["export", str(tmp_path / "random"), str(out), "--device", "cpu", "--answer", "json"]) == 0
    assert "look random" in capsys.readouterr().err

    prepared = load_prepared(out)
    assert (prepared.layers, prepared.kv_heads, prepared.head_dim, prepared.vocab_size) == (28, 8, 128, 151_936)
    assert dict(prepared.labels) == {"main": 3817, "other": 1575}
    comparison = prepared.source["comparison"]
    assert comparison["same"] == comparison["choices"]
    assert comparison["difference"] < 1e-4 * comparison["largest"]
    extractor = Extractor(Config(engine="qwen3", model=str(out), fallback="none"))
    (page,) = extractor.extract([Document("<h1>Tides</h1>" + "<p>The sea rises and falls twice a day.</p>" * 20)])
    extractor.close()
    assert page.fallback_reason is None or page.source == "none"
    assert len(page.labels) == 21
