"""Whole trainings of a very small Qwen3 on made-up pages, with torch."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

pytest.importorskip("transformers")  # the extra [export]
pytest.importorskip("torch")

import torch

from scrapy_dripper.workshop.training.qwen3.__main__ import main
from scrapy_dripper.workshop.training.qwen3.train import Trainer

SMALL = (
    "--hidden 32 --layers 2 --heads 2 --kv-heads 1 --head-dim 16 --inner 64 --vocabulary 600 --context 2048 "
    "--full-precision --threads 1 --batch 6 --shortest 256 --longest 512 --rate 5e-3 --folds 3 --seed 1"
).split()


WORDS = "river stone winter harbour letter engine garden bridge copper market window candle forest signal".split()


def write_page(folder: Path, name: str, seed: int) -> None:
    """Write a page whose paragraphs are main, and its ground truth."""
    rng = random.Random(seed)
    paragraphs = [" ".join(rng.choices(WORDS, k=rng.randint(12, 30))) + "." for _ in range(rng.randint(3, 9))]
    links = [f"<div class=menu><a href=/{word}>{word}</a></div>" for word in rng.choices(WORDS, k=8)]
    html = "".join([*links, *(f"<p>{text}</p>" for text in paragraphs), "<div class=footer>Imprint</div>"])
    truth = {"url": f"https://{name}.example/", "ground_truth": {"main_content": "\n".join(paragraphs)}}
    for kind, ending, text in (("html", "html", f"<html><body>{html}"), ("ground-truth", "json", json.dumps(truth))):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        (folder / kind / f"{name}.{ending}").write_text(text)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages on which a paragraph is main and a link is not."""
    folder = tmp_path_factory.mktemp("data") / "pages"
    for i in range(18):
        write_page(folder, f"page{i}", i)
    return folder


def test_the_whole_way(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The loss falls, the checkpoint records its profile and answer format, and pages of new hosts get labels."""
    out = tmp_path / "model"
    assert main([str(data), "--out", str(out), "--epochs", "60", *SMALL]) == 0
    printed = capsys.readouterr()
    assert "12 pages to learn from" in printed.out
    assert "6 held out" in printed.out
    recipe = json.loads((out / "scrapy_dripper.json").read_text())
    assert recipe["profile"] == "native"
    assert recipe["answer"] == "json"
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {path.name for path in out.iterdir()}
    state = torch.load(out / "training" / "training.pt", weights_only=True)
    assert state["progress"]["loss"] < 0.35  # a model that knows nothing has log 2
    held = [json.loads(line) for line in (out / "training" / "held-out.jsonl").read_text().splitlines()]
    assert len(held) == 6
    assert all(len(one["labels"]) == len(one["probabilities"]) for one in held)
    assert sum(bool(one["text"]) for one in held) >= 5


def test_stopped_and_started_again_it_goes_on(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights are bit for bit those of a training without a stop."""
    command = [str(data), "--epochs", "3", "--save-minutes", "0", *SMALL]
    assert main([*command, "--out", str(tmp_path / "whole")]) == 0

    step = Trainer._step

    def stop(self: Trainer, rate: float) -> float:
        if self.progress.step == 4:
            raise KeyboardInterrupt
        return step(self, rate)

    monkeypatch.setattr(Trainer, "_step", stop)
    assert main([*command, "--out", str(tmp_path / "parts")]) == 130
    monkeypatch.setattr(Trainer, "_step", step)
    assert main([*command, "--out", str(tmp_path / "parts")]) == 0
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]


def test_a_folder_is_of_one_training(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Resuming with other options would give a model of unknown origin."""
    command = [str(data), "--out", str(tmp_path / "model"), "--epochs", "0.1", *SMALL]
    assert main(command) == 0
    assert main([*command, "--rate", "1e-4"]) == 2
    assert "another training (rate)" in capsys.readouterr().err


def test_a_checkpoint_is_trained_further(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It keeps its prompt, profile and vocabulary. The default settings are those of the paper."""
    base = tmp_path / "base"
    assert main([str(data), "--out", str(base), "--epochs", "0.1", *SMALL]) == 0
    out = tmp_path / "further"
    assert (
        main([str(data), "--base", str(base), "--out", str(out), "--folds", "0", "--epochs", "1", "--batch", "9"]) == 0
    )
    for name in ("tokenizer.json", "scrapy_dripper.json"):
        assert (out / name).read_bytes() == (base / name).read_bytes()
    assert (out / "model.safetensors").read_bytes() != (base / "model.safetensors").read_bytes()
    assert torch.load(out / "training" / "training.pt", weights_only=True)["progress"]["step"] == 2
    assert "0 held out" in capsys.readouterr().out


def test_a_prompt_that_is_not_there(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A checkpoint from elsewhere needs a prompt, because the package has none of a published model."""
    (tmp_path / "base").mkdir()
    assert (
        main([str(data), "--base", str(tmp_path / "base"), "--out", str(tmp_path / "out"), "--prompt", "none.txt"]) == 2
    )
    assert "cannot read the prompt none.txt" in capsys.readouterr().err
