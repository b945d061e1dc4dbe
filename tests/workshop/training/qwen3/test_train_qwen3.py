"""Fine-tuning of a very small Qwen3 on made-up pages, with torch."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("transformers")  # the extra [export]
pytest.importorskip("torch")

import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.random_model import PROMPT, SIZES, train_tokenizer, write_checkpoint
from scrapy_dripper.engines.qwen3.grammar import Prompt
from scrapy_dripper.workshop.training.fine_tuning import Encoder, LabelledPage, TokenSequence, Trainer, batches, collate
from scrapy_dripper.workshop.training.qwen3 import main

FEW = "--full-precision --threads 1 --batch 6 --longest 512 --rate 5e-3 --seed 1".split()
WORDS = "river stone winter harbour letter engine garden bridge copper market window candle forest signal".split()
TEMPLATE = "Blocks:\n{html}\nmain or other?\n"
PIECES = (
    '<p class="intro lead"{}>The sea rises and falls twice a day.</p>',
    "<li{}><a>Home</a></li>",
    "<div{}>12,50 € &amp; 'more'...</div>",
    '<h1 id="title-2"{}>潮汐</h1>',
    '<td class="a-b__c"{}>_item_id="3"</td>',
)
ENCODER = Encoder(train_tokenizer(512), TEMPLATE, "json")


def page(n: int, seed: int = 0) -> LabelledPage:
    """Return a page of n blocks."""
    rng = np.random.default_rng(seed)
    blocks = [PIECES[i].format(f' _item_id="{k}"') for k, i in enumerate(rng.integers(0, len(PIECES), n), 1)]
    return LabelledPage(blocks, (rng.random(n) < 0.5).tolist(), rng.random(n).tolist())


def test_the_labels_are_where_the_engine_asks() -> None:
    """The ids are those of prompt and answer as text, up to the last label, which comes after the last row."""
    one, tokenizer = page(12), ENCODER.tokenizer
    found = ENCODER.encode(one)
    (expected,) = Prompt(tokenizer, TEMPLATE).encode(["".join(one.blocks)])
    np.testing.assert_array_equal(found.ids[: len(expected)], expected)
    labels = ["main" if label else "other" for label in one.main]
    text = "{" + ",".join(f'"{k}":"{label}"' for k, label in enumerate(labels, 1))
    prompt = TEMPLATE.replace("{html}", "".join(one.blocks))
    assert tokenizer.decode(found.ids.tolist()) == prompt + text.removesuffix(labels[-1] + '"')
    assert [tokenizer.decode([int(found.ids[row + 1])]) for row in found.rows[:-1]] == labels[:-1]
    assert found.rows[-1] == len(found.ids) - 1


@given(n=st.integers(1, 60), start=st.integers(0, 59), size=st.integers(1, 60))
def test_property_a_window_is_a_page(n: int, start: int, size: int) -> None:
    """Its blocks are numbered from 1, and its labels and weights are its own."""
    one = page(n)
    start = min(start, n - 1)
    end = min(n, start + size)
    blocks = [
        block.replace(f' _item_id="{k}"', f' _item_id="{k - start}"', 1)
        for k, block in enumerate(one.blocks[start:end], start + 1)
    ]
    expected = ENCODER.encode(LabelledPage(blocks, one.main[start:end], one.weights[start:end]))
    found = ENCODER.encode(one, start, end)
    for name in TokenSequence.__slots__:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@given(n=st.integers(1, 60), longest=st.integers(20, 800), seed=st.integers(0, 20))
def test_property_a_sample_fits(n: int, longest: int, seed: int) -> None:
    """A page that fits is used as a whole. Of a longer page, as many blocks are used as fit."""
    one = page(n)
    found = ENCODER.sample(one, longest, np.random.default_rng(seed))
    whole = ENCODER.encode(one)
    if found is None:
        assert len(ENCODER.encode(page(1)).ids) > longest - 60
    else:
        assert 0 < len(found.ids) <= longest
        assert len(found.main) == n or len(whole.ids) > longest - 2 * n


def test_batches_hold_what_they_may_and_lose_nothing() -> None:
    """A sequence that is too long for any batch is a batch by itself."""
    sequences = [ENCODER.encode(page(n, n)) for n in (1, 30, 2, 28, 3, 60, 1)]
    found = list(batches(sequences, 1500))
    assert sorted(id(one) for batch in found for one in batch) == sorted(map(id, sequences))
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(len(one.ids) for one in batch) <= 1500
    ids, rows = collate(found[0])
    flat = ids.reshape(-1)
    at = 0
    for i, one in enumerate(found[0]):
        np.testing.assert_array_equal(ids[i, : len(one.ids)], one.ids)
        np.testing.assert_array_equal(flat[rows[at : at + len(one.main)]], one.ids[one.rows])
        at += len(one.main)


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
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The pages, on which a paragraph is main and a link is not, and a random checkpoint."""
    folder = tmp_path_factory.mktemp("data")
    for i in range(12):
        write_page(folder / "pages", f"page{i}", i)
    write_checkpoint(folder / "base", SIZES["tiny"], 0)
    return [str(folder / "pages"), "--base", str(folder / "base"), *FEW]


def test_a_checkpoint_learns(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The loss falls, and the checkpoint keeps its vocabulary and its prompt, for an export."""
    out, base = tmp_path / "model", Path(command[2])
    assert main([*command, "--out", str(out), "--epochs", "30"]) == 0
    assert "12 pages to learn from" in capsys.readouterr().out
    recipe = json.loads((out / "scrapy_dripper.json").read_text())
    assert (recipe["profile"], recipe["answer"], recipe["prompt"]) == ("native", "json", PROMPT)
    assert (out / "tokenizer.json").read_bytes() == (base / "tokenizer.json").read_bytes()
    assert {"config.json", "model.safetensors"} <= {path.name for path in out.iterdir()}
    state = torch.load(out / "training" / "training.pt", weights_only=True)
    assert state["loss"] < 0.35  # a model that knows nothing has log 2


def test_stopped_and_started_again_it_goes_on(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights are bit for bit those of a training without a stop."""
    monkeypatch.setattr("scrapy_dripper.workshop.training.fine_tuning.SAVE_SECONDS", 0.0)
    command = [*command, "--epochs", "3"]
    assert main([*command, "--out", str(tmp_path / "whole")]) == 0
    make_step = Trainer.make_step

    def stop(self: Trainer, rate: float) -> float:
        if self.step == 4:
            raise KeyboardInterrupt
        return make_step(self, rate)

    monkeypatch.setattr(Trainer, "make_step", stop)
    assert main([*command, "--out", str(tmp_path / "parts")]) == 130
    monkeypatch.setattr(Trainer, "make_step", make_step)
    assert main([*command, "--out", str(tmp_path / "parts")]) == 0
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]


def test_a_folder_is_of_one_training(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Resuming with other options would give a model of unknown origin."""
    command = [*command, "--out", str(tmp_path / "model"), "--epochs", "0.1"]
    assert main(command) == 0
    assert main([*command, "--rate", "1e-4"]) == 2
    assert "another training (rate)" in capsys.readouterr().err


def test_a_prompt_that_is_not_there(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A checkpoint from elsewhere needs a prompt, because the package has none of a published model."""
    assert main([*command, "--out", str(tmp_path / "out"), "--prompt", "none.txt"]) == 2
    assert "cannot read the prompt none.txt" in capsys.readouterr().err
