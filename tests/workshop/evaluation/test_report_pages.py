"""``scrapy-dripper evaluate`` over odd pages: the report shows each, and messages name odd inputs."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.cli import main
from scrapy_dripper.workshop.dataset.pages import Sample
from scrapy_dripper.workshop.evaluation.report.pages import title_of
from scrapy_dripper.workshop.evaluation.rouge import load_cut

LINES = [f"The {word} crossing of the river takes an hour by the small ferry." for word in ("first", "second", "third")]
LINKS = "".join(f"<div><a href='/{i}'>Link number {i}</a></div>" for i in range(6))
TITLE = "The ferry across the river"
PAGES: dict[str, tuple[bytes, str, str | None]] = {
    # HTML, ground truth and stored text
    "copies": (
        f"<html><body><h2>{TITLE}</h2>{LINKS}<h1>{TITLE}</h1>{''.join(f'<p>{line}</p>' for line in LINES)}"
        "<p>Words of a footer that nobody asked for at all.</p></body></html>".encode(),
        "\n".join([TITLE, *LINES]),
        "\n".join([TITLE, *LINES[:2], "Words of a footer that nobody asked for at all."]),
    ),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8, "A picture", None),
    "menu": (f"<html><body>{LINKS}</body></html>".encode(), "", ""),
}


def test_a_page_is_told_by_its_title_or_what_there_is(tmp_path: Path) -> None:
    """Annotations mostly have no title."""
    for name, html in (("a", "<title>The  ferry</title>"), ("b", "<p>No title</p>")):
        (tmp_path / f"{name}.html").write_text(html, encoding="utf-8")
    titled, bare = (
        Sample(name, url, "", tmp_path / f"{name}.html", "", (), (), "article", "")
        for name, url in (("a", "https://e.org/a"), ("b", ""))
    )

    assert title_of(titled) == "The ferry"
    assert title_of(replace(titled, title="Mine")) == "Mine"
    assert title_of(bare) == "b.html"
    assert title_of(replace(bare, url="https://e.org/b")) == "https://e.org/b"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three pages: one with every kind of block, one without blocks, one without main content."""
    folder = tmp_path / "pages"
    for part in ("html", "ground-truth"):
        (folder / part).mkdir(parents=True)
    for name, (html, truth, _) in PAGES.items():
        (folder / "html" / f"{name}.html").write_bytes(html)
        annotation = {"url": f"https://host.example/{name}", "ground_truth": {"main_content": truth}}
        (folder / "ground-truth" / f"{name}.json").write_text(json.dumps(annotation), encoding="utf-8")
    return folder


def evaluate(*arguments: object) -> int:
    return main(["evaluate", *map(str, arguments), "--resamples", "50", "--jobs", "1"])


def test_what_is_shown_of_odd_pages(data: Path, tmp_path: Path, capsys: Any) -> None:
    """Copies count for neither side, long runs of links are folded, and an empty part says so."""
    stored = [{"id": name, "text": text} for name, (_, _, text) in PAGES.items() if text is not None]
    stored.append({"id": "stranger", "text": "x"})
    predictions = tmp_path / "texts.jsonl"
    predictions.write_text("".join(json.dumps(line) + "\n" for line in stored), encoding="utf-8")

    assert evaluate(data, "--predictions", predictions, "--report", tmp_path / "report.html", "--worst", 3) == 0

    said = capsys.readouterr().err
    assert "Pages that have no stored text and count as empty: 1." in said
    assert "Stored texts that belong to no page and are ignored: 1." in said
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "12 blocks: 3 hit, 1 missed, 1 wrongly kept, 6 left out, 1 copy. The labels were inferred" in report
    assert "6 blocks rightly left out" in report
    assert "The page has no blocks to show: " in report
    assert "The page has no true text" in report


def test_a_model_that_does_not_say_what_it_was_trained_on(data: Path, tmp_path: Path, capsys: Any) -> None:
    """The report warns that the figures may be too good."""
    from scrapy_dripper.engines.tagger.model import MANIFEST, bundled

    folder = tmp_path / "model"
    folder.mkdir()
    for path in bundled().iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    for known in ("data_sha256", "training_pages"):
        manifest.pop(known, None)
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")

    assert evaluate(data, "--model", folder) == 0

    assert "manifest does not say what it was trained on" in capsys.readouterr().err


def test_rouge_without_jieba(data: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """One sentence says what to install, before any page is read."""
    monkeypatch.setitem(sys.modules, "jieba", None)

    with pytest.raises(ImportError, match=r"scrapy-dripper\[evaluate\]"):
        load_cut()
    assert evaluate(data, "--rouge") == 2
    assert "scrapy-dripper[evaluate]" in capsys.readouterr().err
