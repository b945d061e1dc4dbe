"""Fine-tuning of a very small Qwen3 on made-up pages, with torch."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("accelerate")  # the extra [export]

import torch
from tokenizers import Tokenizer
from transformers import Trainer

from benchmarks.random_model import PROMPT, SIZES, TOKENIZER_FILE, write_checkpoint
from scrapy_dripper.cli import main
from scrapy_dripper.engines.qwen3.grammar import Prompt
from scrapy_dripper_lab.export.checkpoint import RECIPE
from scrapy_dripper_lab.training.token_sequences import Encoder, LabelledPage
from tests.learning.pages import WORDS, write_annotated

FEW = "--longest 4000 --set bf16=False gradient_accumulation_steps=6 learning_rate=5e-3 seed=1".split()
TEMPLATE = "Blocks:\n{html}\nmain or other?\n"
PIECES = (
    '<p class="intro lead"{}>The sea rises and falls twice a day.</p>',
    "<li{}><a>Home</a></li>",
    "<div{}>12,50 € &amp; 'more'...</div>",
    '<h1 id="title-2"{}>潮汐</h1>',
    '<td class="a-b__c"{}>_item_id="3"</td>',
)
TOKENIZER = Tokenizer.from_file(str(TOKENIZER_FILE))
ENCODER = Encoder(TOKENIZER, TEMPLATE, "json")


def page(n: int, seed: int = 0) -> LabelledPage:
    """Return a page of n blocks."""
    rng = np.random.default_rng(seed)
    blocks = [PIECES[i].format(f' _item_id="{k}"') for k, i in enumerate(rng.integers(0, len(PIECES), n), 1)]
    return LabelledPage(blocks, (rng.random(n) < 0.5).tolist(), rng.random(n).tolist())


def test_the_labels_are_where_the_engine_asks() -> None:
    """The ids are those of prompt and answer as text, up to the last label, which comes after the last row."""
    one, tokenizer = page(12), TOKENIZER
    found = ENCODER.encode(one, 32_000)
    assert found is not None
    (expected,) = Prompt(tokenizer, TEMPLATE).encode(["".join(one.blocks)])
    np.testing.assert_array_equal(found.ids[: len(expected)], expected)
    labels = ["main" if label else "other" for label in one.main]
    text = "{" + ",".join(f'"{k}":"{label}"' for k, label in enumerate(labels, 1))
    prompt = TEMPLATE.replace("{html}", "".join(one.blocks))
    assert tokenizer.decode(found.ids.tolist()) == prompt + text.removesuffix(labels[-1] + '"')
    assert [tokenizer.decode([int(found.ids[row + 1])]) for row in found.rows[:-1]] == labels[:-1]
    assert found.rows[-1] == len(found.ids) - 1


def test_pages_are_read_as_a_whole_or_not_at_all() -> None:
    """The paper's method has one prompt for a page."""
    whole = ENCODER.encode(page(60), 32_000)
    assert whole is not None
    assert ENCODER.encode(page(60), len(whole.ids)) is not None
    assert ENCODER.encode(page(60), len(whole.ids) - 1) is None


def write_page(folder: Path, name: str, seed: int) -> None:
    """Write a page whose paragraphs are main, and its ground truth."""
    rng = random.Random(seed)
    paragraphs = [" ".join(rng.choices(WORDS, k=rng.randint(12, 30))) + "." for _ in range(rng.randint(3, 9))]
    links = [f"<div class=menu><a href=/{word}>{word}</a></div>" for word in rng.choices(WORDS, k=8)]
    html = "".join([*links, *(f"<p>{text}</p>" for text in paragraphs), "<div class=footer>Imprint</div>"])
    truth = {"url": f"https://{name}.example/", "ground_truth": {"main_content": "\n".join(paragraphs)}}
    write_annotated(folder, name, f"<html><body>{html}", truth)


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The pages, on which a paragraph is main and a link is not, and a random checkpoint."""
    folder = tmp_path_factory.mktemp("data")
    for i in range(12):
        write_page(folder / "pages", f"page{i}", i)
    write_checkpoint(folder / "base", SIZES["tiny"], 0)
    return ["fine-tune", str(folder / "pages"), "--base", str(folder / "base"), *FEW]


def losses(capsys: pytest.CaptureFixture[str]) -> list[float]:
    """Return the loss of each step, as printed."""
    return [float(value) for value in re.findall(r"'loss': '?([\d.]+)", capsys.readouterr().out)]


def test_a_checkpoint_learns(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The loss falls, and the checkpoint keeps its vocabulary and its prompt, for an export."""
    out, base = tmp_path / "model", Path(command[3])
    assert main([*command, "num_train_epochs=20", "learning_rate=1e-2", "--out", str(out)]) == 0
    found = losses(capsys)
    assert len(found) == 40
    assert found[-1] < 0.35 < found[0]  # a model that knows nothing has log 2
    recipe = json.loads((out / RECIPE).read_text())
    assert (recipe["profile"], recipe["answer"], recipe["prompt"]) == ("native", "json", PROMPT)
    assert (out / "tokenizer.json").read_bytes() == (base / "tokenizer.json").read_bytes()
    assert {"config.json", "model.safetensors"} <= {path.name for path in out.iterdir()}


def test_stopped_and_started_again_it_goes_on(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights are bit for bit those of a training without a stop."""
    monkeypatch.setattr("scrapy_dripper_lab.training.fine_tuning.SAVE_SECONDS", 0.0)
    command = [*command, "num_train_epochs=3"]
    assert main([*command, "--out", str(tmp_path / "whole")]) == 0
    training_step = Trainer.training_step

    def stop(self: Trainer, *arguments: Any) -> torch.Tensor:
        if self.state.global_step == 4:
            raise KeyboardInterrupt
        return training_step(self, *arguments)

    monkeypatch.setattr(Trainer, "training_step", stop)
    assert main([*command, "--out", str(tmp_path / "parts")]) == 130
    monkeypatch.setattr(Trainer, "training_step", training_step)
    assert main([*command, "--out", str(tmp_path / "parts")]) == 0
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]


def test_a_folder_is_of_one_training(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Resuming with other options would give a model of unknown origin."""
    command = [*command, "max_steps=1", "--out", str(tmp_path / "model")]
    assert main(command) == 0
    assert main([*command, "--set", "learning_rate=1e-4"]) == 2
    assert "was begun with other --set" in capsys.readouterr().err
    next(tmp_path.rglob("command.json")).write_text("[1")
    assert main(command) == 2
    assert "command.json is damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--prompt", "none.txt"], "cannot read the prompt none.txt"),
        (["--set", "rate=1"], "'--rate=1'"),
        (["--set", "max_steps=few"], "invalid int value: 'few'"),
        (["--longest", "20"], "all pages have more than 20 tokens"),
    ],
)
def test_errors(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    """Each error is one sentence."""
    assert main([*command, "--out", str(tmp_path / "out"), *flags]) == 2
    assert message in capsys.readouterr().err


def test_a_base_without_a_recipe_gets_our_prompt(command: list[str], tmp_path: Path) -> None:
    """It is for models that users train themselves; published weights have another."""
    base = shutil.copytree(command[3], tmp_path / "base")
    (base / RECIPE).unlink()
    out = tmp_path / "out"
    assert main([*command, "max_steps=1", "--base", str(base), "--out", str(out)]) == 0
    recipe = json.loads((out / RECIPE).read_text())
    assert (recipe["profile"], recipe["truncate_chars"], recipe["answer"]) == ("v1.0", 200, "json")
    assert recipe["prompt"].startswith("You label the blocks of a web page.")
    assert recipe["prompt"].count("{html}") == 1
