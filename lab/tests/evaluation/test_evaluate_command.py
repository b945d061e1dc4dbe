"""``scrapy-dripper evaluate``: from annotated pages to tables and JSON."""

from __future__ import annotations

import csv
import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import scrapy_dripper.extractor
from scrapy_dripper.cli import main
from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import EngineError, Labels
from scrapy_dripper.engines.files import sha256
from scrapy_dripper.page.page import Page
from scrapy_dripper.testing import FakeEngine
from scrapy_dripper_lab.cli import evaluate as evaluate_command
from scrapy_dripper_lab.evaluation.figures import MEAN_OF_SETS, NOT_DECLARED, OTHER_LANGUAGES, set_tables
from scrapy_dripper_lab.scores import score
from scrapy_dripper_lab.sets import AnnotatedPage
from tests.fallback import test_sore as sore
from tests.learning.pages import WORDS, write_annotated
from tests.sites.site import article


def write_page(folder: Path, name: str, kind: str = "article", title: str = "A title", seed: int = 0) -> str:
    """Write a page of three main paragraphs and three links, and return its true text."""
    rng = random.Random(f"{name}{seed}")
    main_text = [" ".join(rng.choices(WORDS, k=20)) for _ in range(3)]
    links = "".join(f"<div><a href='/x'>{' '.join(rng.choices(WORDS, k=2))} link</a></div>" for _ in range(3))
    body = "".join(f"<p>{text}</p>" for text in main_text)
    annotation = {
        "url": f"https://host.example/{name}",
        "ground_truth": {"main_content": "\n".join(main_text), "title": title, "with": [main_text[0]], "without": []},
        "_internal": {"page_type": {"primary": kind}},
    }
    write_annotated(folder, name, f"<html><body>{links}{body}</body></html>", annotation)
    return "\n".join(main_text)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Eight pages of two types."""
    for number in range(8):
        write_page(tmp_path / "pages", f"p{number}", "forum" if number % 4 == 3 else "article")
    return tmp_path / "pages"


@pytest.fixture
def held_out(data: Path, tmp_path: Path) -> Path:
    """Stored texts: the first is half of the right one, the second is empty, the others are right."""
    lines = []
    for path in sorted((data / "ground-truth").glob("*.json")):
        text = json.loads(path.read_text())["ground_truth"]["main_content"]
        words = text.split()
        text = {"p0": " ".join(words[: len(words) // 2]), "p1": ""}.get(path.stem, text)
        lines.append(json.dumps({"id": path.stem, "text": text}))
    (tmp_path / "held-out.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "held-out.jsonl"


class Engine(FakeEngine):
    """Gives long blocks 0.9 and others 0.2; fails on a page that asks for it."""

    def probability(self, text: str) -> float:
        return 0.9 if len(text.split()) > 5 else 0.2

    def answer(self, page: Page) -> Labels | EngineError:
        return EngineError("no") if "unlabelled" in page.blocks.text else super().answer(page)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model folder whose engine is the fake one."""

    def load(config: Config) -> FakeEngine:
        return Engine()

    monkeypatch.setattr(evaluate_command, "load_engine", load)
    monkeypatch.setattr(scrapy_dripper.extractor, "load_engine", load)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"training_pages": {"others": ["0" * 64]}}))
    return folder


def evaluate(*arguments: object) -> int:
    return main(["evaluate", *map(str, arguments)])


def figures(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_table_4_the_reasons_of_a_method_are_judged(data: Path, tmp_path: Path) -> None:
    """Table 4 of the paper on SORE: which share of the removed blocks is not main. One of two menus is."""
    for path in (data / "html").glob("*.html"):
        path.write_text(sore.PAGE, encoding="utf-8")
        truth = data / "ground-truth" / f"{path.stem}.json"
        values = json.loads(truth.read_text())
        values["ground_truth"]["main_content"] = f"Ferry\n{sore.TEXT}\nfootball" if path.stem == "p0" else sore.TEXT
        truth.write_text(json.dumps(values))
    embedder = "tests.fallback.test_sore.embed"
    evaluate(data, "--engine", "sore", "--method-embedder", embedder, "--jobs", 1, "--json", tmp_path / "out.json")

    found = figures(tmp_path / "out.json")
    rows = {row["reason"]: (row["blocks"], row["right"]) for row in found["tables"]["Why blocks were removed"]}
    assert rows == {"legal": (8, 1.0), "too irrelevant": (8, 7 / 8)}
    assert found["pages"][0]["source"] == "sore"

    # A page over a limit of models has no blocks here, but the method reads a part of it.
    limited = (data, "--engine", "sore", "--method-embedder", embedder, "--jobs", 1, "--max-blocks", 2)
    assert evaluate(*limited, "--json", tmp_path / "out.json") == 0
    assert "Why blocks were removed" not in figures(tmp_path / "out.json")["tables"]


def test_stored_texts_beside_peers(data: Path, held_out: Path, tmp_path: Path, capsys: Any) -> None:
    """Tables and JSON have every system, by type and difficulty, and the paired differences."""
    out = tmp_path / "out" / "figures.json"
    code = evaluate(data, "--predictions", held_out, "--peers", "html2text,resiliparse", "--jobs", 1, "--json", out)
    printed, said = capsys.readouterr()

    assert code == 0
    tables = figures(out)["tables"]
    ours, theirs, _ = tables["Systems"]
    assert [row["system"].split()[0] for row in tables["Systems"]] == ["ours:", "html2text", "resiliparse"]
    assert ours["word F1"] == pytest.approx((6 + 2 / 3) / 8)
    assert ours["low"] <= ours["word F1"] <= ours["high"]
    assert (ours["< 0.5"], ours["empty"], theirs["R"]) == (1 / 8, 1, 1)
    types = {row["page type"]: row for row in tables["By page type"]}
    assert list(types) == ["article", "forum"]
    assert types["forum"]["word F1"] == 1
    assert sum(row["pages"] for row in tables["By difficulty"]) == 8
    differences = tables["Ours minus each peer, paired by page"]
    whole = next(d for d in differences if (d["peer"], d["metric"]) == ("html2text", "P"))
    assert whole["mean"] == pytest.approx(ours["P"] - theirs["P"])
    assert whole["low"] <= whole["mean"] <= whole["high"]
    assert whole["better"] + whole["worse"] + whole["tied"] == 8
    assert 0 < tables["Blocks"][0]["F1"] < 1
    assert "Who answered" not in tables, "no model was run"
    assert f"{ours['word F1']:.4f}" in printed
    assert "had not seen these" in said


def test_labels_can_be_stored(data: Path, tmp_path: Path, capsys: Any) -> None:
    """Those of another length are not used. A page without a line counts as empty, and a line without a page for
    nothing. A page without blocks is a page.
    """
    write_page(data, "p8")
    (data / "html" / "p8.html").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8)
    lines = [{"id": f"p{n}", "text": "x", "labels": [0, 0, 0, 1, 1, 0]} for n in (*range(6), 99)]
    lines.append({"id": "p7", "text": "x", "labels": [1]})
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))

    assert evaluate(data, "--predictions", tmp_path / "in.jsonl", "--jobs", 1, "--json", tmp_path / "out.json") == 0

    [whole] = figures(tmp_path / "out.json")["tables"]["Blocks"]
    assert (whole["P"], whole["R"], whole["F1"]) == pytest.approx((6 / 8, 6 / 8 * 2 / 3, 6 / 8 * 4 / 5))
    said = capsys.readouterr().err
    assert "Pages that have no stored text and count as empty: 2." in said
    assert "Stored texts that belong to no page and are ignored: 1." in said


def test_the_model_runs(data: Path, model: Path, tmp_path: Path, capsys: Any) -> None:
    """Without stored texts the engine labels the pages. If it fails on a page, the fallback's text counts as ours, and
    the figures say so. A page and a system are a row of the JSON and of the CSV.
    """
    write_page(data, "p9")
    (data / "html" / "p9.html").write_text("<html><body><p>unlabelled</p></body></html>")

    wanted = ["--model", model, "--jobs", 1, "--json", tmp_path / "out.json", "--fallback", "empty"]
    assert evaluate(data, *wanted, "--csv", tmp_path / "out.csv", "--peers", "html2text") == 0

    found = figures(tmp_path / "out.json")
    assert found["tables"]["Systems"][0]["word F1"] == pytest.approx(8 / 9)
    answered = {row["source"]: row["pages"] for row in found["tables"]["Who answered"]}
    assert answered == {"fake": 8, "fallback:empty, engine_error": 1}
    first, *_, last, peer = found["pages"]
    assert (first["id"], first["system"], first["source"], first["blocks_f1"]) == ("p0", "ours", "fake", 1)
    assert (last["source"], last["f1"], peer["system"]) == ("fallback:empty, engine_error", 0, "html2text")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["source"] for row in rows] == [row["source"] for row in found["pages"]]
    assert float(rows[0]["f1"]) == first["f1"]
    assert found["notes"] == []
    assert "IN-SAMPLE" not in capsys.readouterr().err

    # If a fallback answers for all pages, the figures are not those of the model.
    for path in (data / "html").glob("*.html"):
        path.write_text(f"{path.read_text()}<p>unlabelled</p>")
    out = tmp_path / "out.json"
    assert evaluate(data, "--model", model, "--jobs", 1, "--json", out, "--fallback", "title_paragraphs") == 0
    assert "but fallback:title_paragraphs on all pages" in figures(out)["tables"]["Systems"][0]["system"]


def test_what_is_learnt_of_a_site_is_measured(tmp_path: Path, model: Path, capsys: Any) -> None:
    """With --sites, one process extracts all pages in order, so that later ones can use what earlier ones taught."""
    data = tmp_path / "site"
    for number in range(20):
        write_page(data, f"p{number:02}")
        (data / "html" / f"p{number:02}.html").write_text(article(number))
    wanted = [data, "--model", model, "--jobs", 2, "--sites", "templates", "--favor", "recall"]
    assert evaluate(*wanted, "--json", tmp_path / "out.json") == 0
    assert "so one process extracts all pages" in capsys.readouterr().err
    answered = {row["source"]: row["pages"] for row in figures(tmp_path / "out.json")["tables"]["Who answered"]}
    assert answered["template"] > 5
    assert answered["template"] + answered["fake"] == 20


def test_pages_that_the_model_was_trained_on_are_no_measure(
    data: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """If the manifest lists pages of a set, the terminal and the JSON say so. Other sets get no warning. If it lists no
    pages at all, the figures may be too good.
    """
    pages = [sha256(data / "html" / f"p{n}.html") for n in range(3)]
    (model / "manifest.json").write_text(json.dumps({"training_pages": {"home": pages}}))
    write_page(tmp_path / "other", "q0")
    out = tmp_path / "out.json"

    assert evaluate(f"mine={data}", tmp_path / "other", "--model", model, "--jobs", 1, "--json", out) == 0

    for text in (capsys.readouterr().err, out.read_text(encoding="utf-8")):
        assert "IN-SAMPLE: the model was trained on 3 of these 8 pages (mine)" in text
        assert "--predictions FILE" in text
        assert "(other)" not in text

    # The manifest of the bundled tagger says nothing about a custom engine.
    monkeypatch.setattr(evaluate_command, "bundled", lambda: model)
    engine = "lab.tests.evaluation.test_evaluate_command.Engine"
    assert evaluate(data, "--engine", engine, "--jobs", 1) == 0
    assert "IN-SAMPLE" not in capsys.readouterr().err

    (model / "manifest.json").write_text("{}")
    assert evaluate(data, "--model", model, "--jobs", 1) == 0
    assert "manifest does not say what it was trained on" in capsys.readouterr().err


def test_several_sets_have_a_row_each(data: Path, held_out: Path, tmp_path: Path, capsys: Any) -> None:
    """Both layouts work; a headline before a stored text is neutral if the truth lacks it."""
    text = write_page(tmp_path / "listed", "q-0")
    (tmp_path / "listed/pages.jsonl").write_text(json.dumps({"id": "q-0", "text": text, "title": "Rivers and stones"}))
    with held_out.open("a") as file:
        file.write(json.dumps({"id": "q-0", "text": f"Rivers and stones\n{text}"}))
    out = tmp_path / "out.json"

    assert evaluate(data, f"listed={tmp_path}/listed", "--predictions", held_out, "--jobs", 1, "--json", out) == 0

    rows = {row["set"]: row for row in figures(out)["tables"]["By set"]}
    assert list(rows) == ["pages", "listed", "mean of sets"]
    assert rows["listed"]["word F1"] == 1
    assert rows["listed"]["WCXB F1"] == pytest.approx(2 * 60 / 123)
    assert "mean of sets" in capsys.readouterr().out


def test_a_process_that_dies(
    data: Path, held_out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """A peer's native code can end its process: the message says what to try. Other processes give the same figures as
    a single one.
    """
    for jobs in (1, 2):
        assert evaluate(data, "--predictions", held_out, "--json", tmp_path / f"{jobs}.json", "--jobs", jobs) == 0
    assert (tmp_path / "2.json").read_text() == (tmp_path / "1.json").read_text()

    site = tmp_path / "site"
    about, code = site / "boilerpy3-9.0.dist-info", site / "boilerpy3"
    about.mkdir(parents=True)
    code.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: boilerpy3\nVersion: 9.0\n")
    (code / "__init__.py").touch()
    (code / "extractors.py").write_text("import os\nDefaultExtractor = lambda **options: os._exit(9)\n")
    monkeypatch.syspath_prepend(str(site))

    assert evaluate(data, "--predictions", held_out, "--peers", "boilerpy3", "--jobs", 2) == 2

    error = capsys.readouterr().err
    assert "a process died" in error
    assert "try a smaller --jobs or fewer --peers" in error


def test_measures_of_the_papers_are_taken_if_asked_for(data: Path, held_out: Path, tmp_path: Path, capsys: Any) -> None:
    """DOM nodes, ROUGE-5 and the measures of the study, for all systems; the time of those that run."""
    pytest.importorskip("rapidfuzz")
    pytest.importorskip("jieba")
    out = tmp_path / "out.json"
    more = ["--peers", "html2text,resiliparse", "--nodes", "--study", "--rouge", "--json", out]
    more += ["--csv", tmp_path / "out.csv", "--company", r"^(p)\d"]
    assert evaluate(data, "--predictions", held_out, "--jobs", 1, *more) == 0

    printed, tables = capsys.readouterr().out, figures(out)["tables"]
    assert 0.75 < tables["Systems"][0]["ROUGE-5"] < 0.95
    assert "ROUGE-5" in {row["metric"] for row in tables["Ours minus each peer, paired by page"]}
    assert 0.7 < tables["DOM nodes, as Alarte and Silva count them"][0]["F1"] < 0.9
    ours, deviation, html2text, *_ = tables["Measures of Yadav's study, 0 to 5"]
    assert (ours["over pages"], deviation["over pages"]) == ("mean", "deviation")
    assert ours["R"] < html2text["R"] == 5
    assert deviation["R"] > 0
    assert ours["ms"] is None
    assert 0 < html2text["ms"] < 10_000
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["system"] == "html2text"]
    assert [float(row["study_recall"]) for row in rows] == [5.0] * 8, "on the scale of the study (4.4)"
    assert {row["company"] for row in rows} == {"p"}
    assert "ROUGE-L" in printed
    assert "DOM nodes" in printed
    with pytest.raises(SystemExit):
        evaluate(data, "--company", "(")
    assert "expected a regular expression" in capsys.readouterr().err


def test_a_peer_that_raises_counts_as_empty(
    data: Path, held_out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its errors are counted, and the run goes on."""
    from scrapy_dripper_lab.evaluation import peers

    def broken(module: object, html: bytes) -> str:
        raise RuntimeError("boom")

    monkeypatch.setitem(peers.PEERS, "html2text", peers.Peer("html2text", "html2text", broken))
    out = tmp_path / "out.json"
    assert evaluate(data, "--predictions", held_out, "--peers", "html2text", "--jobs", 1, "--json", out) == 0

    theirs = figures(out)["tables"]["Systems"][1]
    assert theirs["errors"] == 8
    assert theirs["word F1"] == 0


@pytest.mark.parametrize(
    ("content", "arguments", "expected"),
    [
        ('{"id": "p0", "text": "x"}\nnot json\n', [], r"line 2: expected .*\"id\""),
        ('{"text": "x"}\n', [], "line 1: expected"),
        ('{"id": "p0"}\n{"id": "p0"}\n', [], "'p0' is there twice"),
        ('{"id": 1}\n{"id": "1"}\n', [], "'1' is there twice"),
        ('{"id": "p0", "labels": ["main", "other"]}\n', [], "the labels are not true or false"),
        ('{"id": "other", "text": "x"}\n', [], "no id of .* expected ids such as 'p0'"),
        (None, [], "cannot read .*No such file"),
        ('{"id": "p0", "text": "x"}\n', ["--peers", "nobody"], "expected peers from"),
        ('{"id": "p0", "text": "x"}\n', ["--json", "."], "is a folder: name a file in it"),
        ('{"id": "p0", "text": "x"}\n', ["more=nothing"], "nothing is not there"),
        *(('{"id": "p0", "text": "x"}\n', [option], r"'lab\[evaluate\]'") for option in ("--rouge", "--study")),
    ],
)
def test_what_cannot_start_is_one_sentence(
    data: Path, content: str | None, arguments: list[str], expected: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Wrong input, or a measure without its package, ends with exit code 2 and says what was expected."""
    for package in ("jieba", "rapidfuzz"):
        monkeypatch.setitem(sys.modules, package, None)
    path = data.parent / "texts.jsonl"
    if content is not None:
        path.write_text(content)

    assert evaluate(data, *arguments, "--predictions", path) == 2

    said = capsys.readouterr().err
    assert re.search(expected, said)
    assert said.count("\n") == 1


def test_hostile_text_cannot_control_the_terminal(data: Path, model: Path, tmp_path: Path, capsys: Any) -> None:
    """The type and the id of a page are printed and written without control characters, into folders that are made."""
    write_page(data, "worst\x1b[31m", kind="\x1b]0;forum\x07")
    figures = [tmp_path / "new" / "a.csv", tmp_path / "new" / "b" / "a.json"]

    assert evaluate(data, "--model", model, "--jobs", 1, "--csv", figures[0], "--json", figures[1]) == 0
    for text in (capsys.readouterr().out, *(path.read_text() for path in figures)):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)


def sample(name: str, part: str, language: str, words: int, folder: Path) -> AnnotatedPage:
    path = folder / f"{name}.html"
    path.write_text("<html lang='fi-FI'>" if language == "" else "<html>")
    return AnnotatedPage(name, "", "", path, "w " * words, (), (), "article", "", part=part, language=language)


def test_the_rows_of_the_table(tmp_path: Path) -> None:
    """Rows by set, which count equally in the mean; by language, which may come from the page; and by length."""
    samples = [sample(f"a{i}", "first", "", 149, tmp_path) for i in range(12)]
    samples += [sample("b0", "second", "de", 150, tmp_path), sample("b1", "second", "", 600, tmp_path)]
    samples[-1].path.write_text("<html>")
    right = {s.id: score(s.truth, s.truth) for s in samples}
    wrong = {s.id: score("" if s.part == "second" else s.truth, s.truth) for s in samples}

    by_set, by_language, by_length = set_tables(samples, {"ours": wrong, "peer": right})

    first, second, mean = by_set.records()
    assert (first["set"], first["pages"], first["word F1"], first["< 0.5"]) == ("first", 12, 1, 0)
    assert (second["pages"], second["< 0.5"], second["peer WCXB F1"]) == (2, 1, 1)
    assert (mean["set"], mean["pages"], mean["word F1"]) == (MEAN_OF_SETS, 14, 0.5)
    assert second["F1 less peer"] == -1
    assert mean["F1 less peer"] is None
    assert [row[:2] for row in by_language.rows] == [["fi", 12], [NOT_DECLARED, 1], [OTHER_LANGUAGES, 1]]
    assert [row[:2] for row in by_length.rows] == [["under 150 words", 12], ["150 to 299", 1], ["600 words or more", 1]]
    assert "| second | 2 | 0.0000 |" in by_set.markdown()
    assert len({line.count("|") for line in by_set.markdown().splitlines()}) == 1
