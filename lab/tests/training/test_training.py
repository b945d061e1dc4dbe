"""Whole trainings on a small set of made-up pages, the calibration of probabilities, and the graph of the quality."""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import onnxruntime
import pytest

from scrapy_dripper_lab.training.fit import Calibration, calibrate
from scrapy_dripper_lab.training.graphs import quality_graph

pytest.importorskip("lightgbm")  # the extra [train]

from scrapy_dripper.config import Config
from scrapy_dripper.engines.files import sha256
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.engines.tagger.engine import GRAPHS
from scrapy_dripper.extractor import Extractor
from scrapy_dripper_lab.sets import SetChoice, load_set
from scrapy_dripper_lab.training import fit, graphs, prepare
from scrapy_dripper_lab.training.__main__ import main
from tests.learning.pages import WORDS, write_annotated


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings whose processes are not the point start none, and grow fewer trees."""

    @contextmanager
    def threads(jobs: int, start: Callable[..., object], *arguments: Any) -> Iterator[ThreadPoolExecutor]:
        with ThreadPoolExecutor(jobs, initializer=start, initargs=arguments) as pool:
            yield pool

    monkeypatch.setattr(fit, "spawned", threads)
    for trees in (fit.TREES, fit.CONTEXT):
        monkeypatch.setitem(trees, "num_iterations", 40)


def write_page(folder: Path, name: str, host: str, seed: int) -> str:
    """Write a page whose paragraphs are main, and return its ground truth."""
    rng = random.Random(seed)

    def sentence(n: int) -> str:
        return " ".join(rng.choices(WORDS, k=n)).capitalize() + "."

    paragraphs = [sentence(rng.randint(20, 60)) for _ in range(rng.randint(3, 12))]
    links = "".join(f"<div class=menu><a href=/{word}>{word}</a></div>" for word in rng.choices(WORDS, k=20))
    html = (
        f"<html><head><title>{name}</title></head><body>{links}"
        + "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
        + f"<div class=footer><a href=/legal>{sentence(4)}</a></div></body></html>"
    )
    truth = "\n".join(paragraphs)
    write_annotated(folder, name, html, {"url": f"https://{host}/{name}", "ground_truth": {"main_content": truth}})
    return truth


@pytest.fixture
def pages(here: Path, in_this_process: None) -> None:
    """Twelve pages of as many hosts in the current folder."""
    for i in range(12):
        write_page(here / "pages", f"p{i}", f"host{i}.example", i)


QUICK = ["--no-copies", "--folds", "2", "--jobs", "1", "--no-network"]
"""Options of a training that takes a second."""


def test_training_makes_a_model_that_works(here: Path) -> None:
    """Annotated pages become a folder for DRIPPER_MODEL, with manifest and card."""
    for i in range(30):
        write_page(here / "pages", f"p{i}", f"host{i % 10}.example", i)
    truth = write_page(here / "new", "new", "unseen.example", 99)

    arguments = ["pages", "--out", "model", "--folds", "2", "--jobs", "1", "--no-network"]
    assert main([*arguments, "--predictions", "held-out.jsonl", "--fold-models", "folds"]) == 0

    (found,) = Extractor(Config(model="model")).extract([Path("new/html/new.html").read_bytes()])
    assert found.text is not None
    assert found.text.split() == truth.split()

    manifest = json.loads(Path("model/manifest.json").read_text())
    assert manifest["word_f1"] > 0.95
    assert manifest["pages"] == 30
    assert len(Path("held-out.jsonl").read_text().splitlines()) == 30
    fold_of = json.loads(Path("folds/folds.json").read_text())
    assert len(fold_of) == 30
    assert set(fold_of.values()) == {0, 1}
    for k in (0, 1):
        Tagger.load(Config(model=f"folds/{k}")).close()
    card = Path("model/README.md").read_text()
    assert "30 pages of the folder `pages`" in card
    assert "CC-BY-4.0" not in card  # these are no pages of WCXB

    # The models of the folds are measured again, with the parameters of the decision that this version has.
    for folder in ("model", "folds/0", "folds/1"):
        path = here / folder / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"decoding": manifest["decoding"] | {"price": 9.0}}))
    assert main([*arguments, "--fold-models", "folds", "--measure-again"]) == 0
    assert json.loads(Path("model/manifest.json").read_text()) == manifest
    assert Path("model/README.md").read_text() == card
    assert main([*arguments, "--measure-again"]) == 2


@pytest.mark.usefixtures("pages")
def test_training_on_several_sets(tmp_path: Path, capsys: Any) -> None:
    """Each set has its row and weight. The manifest lists the training pages, none of which is only for checking."""
    lines = []
    for i in range(12):
        name = f"news-{i}" if i % 2 else f"checked-{i}"
        truth = write_page(tmp_path / "others", name, "", 50 + i)
        lines.append({"id": name, "host": f"host{i}.example", "text": truth, "train": i % 2 == 1, "language": "de"})
    (tmp_path / "others/pages.jsonl").write_text("\n".join(map(json.dumps, lines)))

    assert main(["home=pages", "--set", "others:0.5", "--out", "model", *QUICK]) == 0

    manifest = json.loads((tmp_path / "model/manifest.json").read_text())
    learnt = [sha256(tmp_path / f"others/html/news-{i}.html") for i in range(1, 12, 2)]
    assert manifest["training_pages"]["others"] == sorted(learnt)
    assert len(manifest["training_pages"]["home"]) == 12
    assert manifest["weights"] == {"home": 1.0, "others": 0.5}
    assert set(manifest["set_f1"]) == {"home", "others, articles", "checked", "mean of sets"}
    printed = capsys.readouterr().out
    card = (tmp_path / "model/README.md").read_text()
    for name in ("home", "others, articles", "checked", "mean of sets", "under 150 words"):
        assert re.search(rf"^{name} +\d+ ", printed, re.M)
        assert f"| {name} | " in card
    assert "12 pages of the folder `others`" in card
    assert "Used for training: 6. Measured: 12." in card


@pytest.mark.usefixtures("pages")
def test_training_is_reproducible(tmp_path: Path) -> None:
    """The same data and seed give the same weights, byte for byte."""
    for out in ("one", "two"):
        assert main(["pages", "--out", out, "--no-measure", *QUICK]) == 0

    for name in GRAPHS:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert "Not measured" in (tmp_path / "one/README.md").read_text()


@pytest.mark.usefixtures("pages")
def test_pages_that_cannot_be_labelled(capsys: pytest.CaptureFixture[str]) -> None:
    """They are measured as empty, like those of Trafilatura."""
    Path("pages/html/p3.html").write_text("<script>x</script>")

    assert main(["pages", "--out", "model", *QUICK]) == 0

    assert re.search(r"^pages +12 ", capsys.readouterr().out, re.M)


@pytest.mark.usefixtures("pages")
def test_a_model_that_answers_otherwise_once_it_is_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is rejected, and the page with the difference is named."""
    monkeypatch.setattr(graphs, "TOLERANCE", -1.0)

    with pytest.raises(RuntimeError, match=r"the exported model differs from the trained one by 0\.\d+ on page p\d"):
        main(["pages", "--out", "model", "--no-measure", *QUICK])


def test_what_a_page_weighs(tmp_path: Path) -> None:
    """The weight is the number of blocks times the weight of the set. A headline that the truth lacks weighs nothing,
    whether it was annotated or found.
    """
    html = "<title>The long bridge | A site</title><nav><h2>News</h2></nav><h1>The long bridge</h1><p>It was built.</p>"
    for name, title in (("known", "The long bridge"), ("unknown", ""), ("other", "Rivers")):
        record = {"id": name, "text": "It was built.", "title": title, "train": True}
        (tmp_path / name / "html").mkdir(parents=True)
        (tmp_path / name / "html" / f"{name}.html").write_text(html)
        (tmp_path / name / "pages.jsonl").write_text(json.dumps(record))

    def weights(name: str, weight: float = 1.0) -> list[float]:
        (sample,) = load_set(SetChoice(tmp_path / name, weight=weight)).samples
        found = prepare.example(sample)
        assert found is not None
        return found.weight.tolist()

    menu, headline, text = weights("other")
    assert min(menu, headline, text) > 0
    assert weights("known") == weights("unknown") == [menu, 0, text]
    assert weights("known", 0.5) == pytest.approx([menu / 2, 0, text / 2])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["pages", "--network"], "-e 'lab[train]'"),
        *(
            (["pages", "--folds", folds], "--folds must be from 2 to the number of hosts, 3")
            for folds in ("-1", "1", "9")
        ),
        (["pages", "--extra", "more"], "page ids that other sets also have: p0, p1, p2"),
        (["scripts"], "there are too few pages with visible text"),
        (["nothing"], "expected html/ID.html"),
    ],
)
def test_what_cannot_be_trained_on(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """For example a page that would be used both for training and for measuring, or a network without torch."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)
    for i in range(3):
        for folder in ("pages", "more", "scripts"):
            write_page(tmp_path / folder, f"p{i}", f"host{i}.example", i)
        Path(f"scripts/html/p{i}.html").write_text("<script>x</script>")

    assert main([*QUICK, *arguments]) == 2
    assert says in capsys.readouterr().err


# ---------------------------------------------------------------------- parts
@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (2.0, -1.0), (0.5, 0.7)])
def test_the_line_that_made_the_labels_is_found(slope: float, intercept: float) -> None:
    """The fit recovers the line from which the labels were drawn."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 200_000)
    main = rng.random(len(p)) < Calibration(slope, intercept)(p)
    found = calibrate(p, main)

    assert found.slope == pytest.approx(slope, abs=0.05)
    assert found.intercept == pytest.approx(intercept, abs=0.05)


def test_the_line_of_extreme_probabilities_is_found() -> None:
    """A whole step of Newton's method leads too far there."""
    rng = np.random.default_rng(0)
    p = 1 / (1 + np.exp(-rng.normal(-4, 6, 50_000)))
    found = calibrate(p, rng.random(len(p)) < Calibration(0.25, -1)(p))

    assert found.slope == pytest.approx(0.25, abs=0.02)
    assert found.intercept == pytest.approx(-1, abs=0.05)


def test_labels_that_are_all_the_same() -> None:
    """A set without main blocks has no best line, but the returned line is finite. Any line keeps the ranking."""
    assert (np.diff(Calibration(1.7, -0.3)(np.linspace(0, 1, 101))) >= 0).all()
    found = calibrate(np.array([0.2, 0.4, 0.9]), np.zeros(3, dtype=np.bool_))

    assert np.isfinite([found.slope, found.intercept]).all()


def test_the_quality_is_that_of_the_booster() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((300, 4), dtype=np.float32)
    parameters = {"num_leaves": 4, "verbose": -1, "num_threads": 1, "objective": "regression"}
    quality = lightgbm.train(parameters, lightgbm.Dataset(x, x[:, 1] * x[:, 2]), 5)

    (f1,) = onnxruntime.InferenceSession(quality_graph(quality, 4)).run(["quality"], {"features": x})

    assert f1.shape == (300,)
    assert np.allclose(f1, quality.predict(x), atol=1e-5)
