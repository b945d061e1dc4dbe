"""Export of labelled pages as training data."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.tests.annotation.conftest import MAIN, Annotate, html, records, sheet_of
from lab.tests.fake_endpoint import FakeEndpoint, Reply, Request, chat, good, labels
from scrapy_dripper.cli import main
from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.inspection.answers import LabelsError, record_of, task_of
from scrapy_dripper.page import read
from scrapy_dripper_lab.alignment import align
from scrapy_dripper_lab.annotation.labels import adjudicated, load, write_page
from scrapy_dripper_lab.sets import DataError, load_pages
from scrapy_dripper_lab.training.prepare import example


@pytest.fixture
def labelled(annotate: Annotate, pages: Path) -> Path:
    """A folder of three pages and the file of their labels."""
    assert annotate(pages, ask=True) == 0
    return pages


def rewrite(tmp_path: Path, **values: Any) -> None:
    """Change the record of the page Tides."""
    found = [record | (values if record["title"] == "Tides" else {}) for record in records(tmp_path)]
    text = "".join(json.dumps(record) + "\n" for record in found)
    (tmp_path / "labels.jsonl").write_text(text, encoding="utf-8")


def test_export_is_what_the_training_reads(annotate: Annotate, labelled: Path, tmp_path: Path) -> None:
    """Training gets the pages, URLs, labels and confidences as they were given."""
    out = tmp_path / "more"
    assert annotate(labelled, "--export", out) == 0
    samples = load_pages(out)
    assert [sample.title for sample in samples] == ["Moons", "Tides", "Winds"]
    tides = samples[1]
    assert (tides.host, tides.sure) == ("example.com", 0.5)
    assert tides.id == records(tmp_path)[1]["id"]
    assert tides.truth.split("\n")[0] == "Tides"
    assert tides.path.read_bytes() == (labelled / "Tides.html").read_bytes()
    page = read(Document(tides.path.read_bytes()), Config())
    assert (np.flatnonzero(align(page.blocks.text, tides.truth).main) + 1).tolist() == MAIN
    made = example(tides)
    assert made is not None
    assert made.main.tolist() == [i + 1 in MAIN for i in range(6)]
    truth = json.loads((out / "ground-truth" / f"{tides.id}.json").read_text(encoding="utf-8"))
    assert (truth["source"], truth["reviewed"], truth["prompt"]) == ("reader-1", False, records(tmp_path)[1]["prompt"])


def test_section_4_1_pages_without_main_content_do_not_train_qwen3(
    annotate: Annotate, labelled: Path, tmp_path: Path
) -> None:
    """The export has them, because the tagger and ``learn`` know such pages. A person's labels count in full."""
    pytest.importorskip("tokenizers")
    from scrapy_dripper_lab.training.token_sequences import labelled_pages

    rewrite(tmp_path, who="human", labels=[])
    assert annotate(labelled, "--export", tmp_path / "more") == 0
    samples = load_pages(tmp_path / "more")
    assert [(sample.sure, bool(sample.truth)) for sample in samples] == [(0.5, True), (1.0, False), (0.5, True)]
    assert [len(samples), len(labelled_pages(samples, "v1.0", 200, 1))] == [3, 2]
    with pytest.raises(DataError, match="no page has main content"):
        labelled_pages([sample for sample in samples if not sample.truth], "v1.0", 200, 1)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8-sig"])
def test_pages_are_exported_as_utf8(encoding: str, annotate: Annotate, tmp_path: Path) -> None:
    """Training reads the text that was labelled, also of zipped pages and other encodings."""
    text = html("Marées", "<p>Le café ouvre à midi, près de la jetée où l'eau est déjà haute.</p>")
    text = text.replace("<head>", f"<head><meta charset={encoding.removesuffix('-sig')}>")
    (tmp_path / "page.html.gz").write_bytes(gzip.compress(text.encode(encoding)))
    assert annotate(tmp_path / "page.html.gz", ask=True) == 0
    assert annotate(tmp_path / "page.html.gz", "--export", tmp_path / "more") == 0
    [sample] = load_pages(tmp_path / "more")
    assert "Le café ouvre à midi" in sample.read_html()
    made = example(sample)
    assert made is not None
    assert made.main.tolist() == [False, True, True, True, True, False, False]


def test_changed_and_missing_pages_are_named(annotate: Annotate, labelled: Path, tmp_path: Path, capsys: Any) -> None:
    """A page that has changed since is refused, and so are labels without their page."""
    (labelled / "Tides.html").write_text(html("Tides", "<p>Added since</p>"), encoding="utf-8")
    (labelled / "Winds.html").unlink()
    (labelled / "New.html").write_text(html("New"), encoding="utf-8")
    assert annotate(labelled, "--export", tmp_path / "more") == 1
    error = capsys.readouterr().err
    assert f"{labelled / 'Tides.html'}: has changed since it was labelled" in error
    assert "its page is not among the inputs" in error
    assert "1 exported, 1 without labels, 2 failed" in error
    assert [sample.title for sample in load_pages(tmp_path / "more")] == ["Moons"]


def test_an_export_that_cannot_start(annotate: Annotate, labelled: Path, tmp_path: Path, capsys: Any) -> None:
    """Earlier pages would be trained on unnoticed. Of two labellings of a page, a person has to choose."""
    assert annotate(labelled, "--export", labelled) == 2
    assert "is not empty" in capsys.readouterr().err
    path = tmp_path / "labels.jsonl"
    path.write_text(path.read_text(encoding="utf-8") * 2, encoding="utf-8")
    assert annotate(labelled, "--export", tmp_path / "more") == 2
    assert "is labelled twice" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"blocks": 7}, "Tides.html: cut into 7 blocks when it was labelled, into 6 now"),
        ({"cut": "0" * 64}, "Tides.html: its blocks have other texts"),
        ({"profile": "v1.0"}, "Tides.html: labelled in the profile 'v1.0', expected 'native'"),
        ({"labels": [2, 2]}, "'labels' to be ids from 1 to 6"),
        ({"labels": [7]}, "'labels' to be ids from 1 to 6"),
        ({"labels": [True]}, "'labels' to be ids from 1 to 6"),
        ({"labels": "2"}, "'labels' to be a list of ids"),
        ({"id": "../../etc/x"}, "'id' to be a file name"),
        ({"sha256": "abc"}, "64 hexadecimal digits"),
        ({"style": "blog"}, "'style' to be one of normal, conversational"),
        ({"more": 1}, "an object with the keys"),
    ],
)
def test_broken_records_are_refused(
    values: dict[str, Any], says: str, annotate: Annotate, labelled: Path, tmp_path: Path, capsys: Any
) -> None:
    """A file that was edited or received is checked before anything is written; ids cannot lead out of the folder. A
    page with labels of other blocks is named and left out, and the others are exported.
    """
    rewrite(tmp_path, **values)
    of_page = says.startswith("Tides.html")
    assert annotate(labelled, "--export", tmp_path / "more") == (1 if of_page else 2)
    error = capsys.readouterr().err
    assert says in error
    assert ("labels.jsonl, line 2: expected" in error) == (not of_page) == (not (tmp_path / "more").exists())
    if of_page:
        assert [sample.title for sample in load_pages(tmp_path / "more")] == ["Moons", "Winds"]


def test_labels_of_another_page_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels belong to the bytes that were read, and what is exported has the blocks that were labelled."""
    before, after = sheet_of(html()), sheet_of(html(extra="<p>Added</p>"))
    record = record_of(task_of(before, "prompt"), MAIN, "reader")

    with pytest.raises(LabelsError, match="the page has changed since it was labelled"):
        write_page(tmp_path, record, after)
    monkeypatch.setattr("scrapy_dripper_lab.annotation.labels.in_utf8", lambda _: b"")
    with pytest.raises(LabelsError, match="its blocks are not the same when it is written as UTF-8"):
        write_page(tmp_path, record, before)
    assert not list(tmp_path.iterdir())


def read_with(annotate: Annotate, fake: FakeEndpoint, pages: Path, path: Path, *, other: str = "", who: str) -> Path:
    """Have the pages read again, by a reader who takes the blocks with a word for other, into a file of its own."""

    def answer(request: Request) -> Reply:
        found = labels(request)
        found |= {str(one["id"]): "other" for one in request.blocks if other and other in one["text"]}
        return chat(json.dumps(found))

    fake.script = [answer]
    asking = ["--endpoint", fake.url, "--model", who, "--concurrency", "1"]
    assert main(["annotate", str(pages), *asking, "-o", str(path)]) == 0
    return path


def test_appendix_a_5_a_second_reader_and_an_adjudicator(
    annotate: Annotate, labelled: Path, fake: FakeEndpoint, tmp_path: Path, capsys: Any
) -> None:
    """What two readers agree on is decided. Where they differ, the blocks are listed, and a third one decides."""
    first = tmp_path / "labels.jsonl"
    second = read_with(annotate, fake, labelled, tmp_path / "second.jsonl", other="of Moons", who="reader-2")
    third = read_with(annotate, fake, labelled, tmp_path / "third.jsonl", other="of Moons", who="reader-3")
    capsys.readouterr()

    two = ["annotate", str(labelled), "--adjudicate", str(first), str(second)]
    assert main([*two, "-o", str(tmp_path / "two.jsonl")]) == 1
    printed = capsys.readouterr()
    [listed] = map(json.loads, printed.out.splitlines())
    assert (listed["block"], listed["main"]) == (3, {"reader-1 (1)": True, "reader-2 (2)": False})
    assert listed["text"].startswith("The first paragraph of Moons")
    assert listed["page"].startswith("Moons-")
    assert "3 pages with two readers, who agree on 94.4% of the blocks" in printed.err
    assert "2 decided, 1 failed" in printed.err
    assert {record.title: record.who for record in load(tmp_path / "two.jsonl")} == {
        "Tides": "reader-1+reader-2", "Winds": "reader-1+reader-2",
    }  # fmt: skip

    assert main([*two, str(third), "-o", str(tmp_path / "three.jsonl")]) == 0
    decided = {record.title: record.labels for record in load(tmp_path / "three.jsonl")}
    assert decided == {"Moons": (2, 4), "Tides": (2, 3, 4), "Winds": (2, 3, 4)}
    assert main([*two, "-o", str(tmp_path / "three.jsonl")]) == 2
    assert main([*two[:-1], "-o", str(tmp_path / "one.jsonl")]) == 2
    assert "needs the labels of two readers or more, and a new file" in capsys.readouterr().err

    # Two against two decide nothing, even if the first two agree. A page that only one has read is counted.
    moons = [line for line in second.read_text("utf-8").splitlines(keepends=True) if "Moons" in line]
    third.write_text("".join(moons), encoding="utf-8")
    four = [str(first), str(first), str(third), str(third)]
    out = ("-o", str(tmp_path / "four.jsonl"))
    assert main(["annotate", "--adjudicate", *four, *out]) == 2
    assert not (tmp_path / "four.jsonl").exists(), "there were no pages"
    assert main(["annotate", str(labelled), "--adjudicate", *four, *out]) == 1
    assert "2 decided, 1 failed (Moons-" in capsys.readouterr().err
    second.write_text("".join(moons), encoding="utf-8")
    third.write_text("".join(moons), encoding="utf-8")
    assert main([*two[:-2], str(second), str(third), str(first), "-o", str(tmp_path / "once.jsonl")]) == 0
    assert "2 with one reader, 1 decided" in capsys.readouterr().err

    # A reader whose file has a page twice is one reader.
    second.write_text("".join(moons * 2), encoding="utf-8")
    assert main([*two, "-o", str(tmp_path / "twice.jsonl")]) == 2
    assert "is labelled twice" in capsys.readouterr().err


def test_a_person_who_decides_is_the_author(tmp_path: Path) -> None:
    """The labels then count in full. Labels of other blocks cannot be combined."""
    task = task_of(sheet_of(html()), "prompt")
    readings = [[record_of(task, ids, who)] for ids, who in ((MAIN, "a"), ([2], "b"), (MAIN, "human"))]
    [decided], disagreements, [agreement] = adjudicated(readings)
    assert (decided.who, list(decided.labels), len(disagreements)) == ("human", MAIN, 2)
    assert agreement == pytest.approx(4 / 6)
    assert adjudicated(readings[:2])[0] == []
    styles = [
        [replace(record, style=style)] for [record], style in zip(readings, ("", "normal", "normal"), strict=True)
    ]
    assert adjudicated(styles)[0][0].style == "normal"
    styles[0] = [replace(*styles[0], style="conversational")]
    assert adjudicated(styles)[0][0].style == "", "they differ"
    with pytest.raises(UsageError, match="was cut into other blocks for b than for a"):
        adjudicated([readings[0], [record_of({**task, "profile": "v1.0"}, [2], "b")]])


def test_readers_who_differ_on_every_block() -> None:
    """A file of labels may name as many blocks as it likes: membership is looked up in time that is not theirs."""
    task = {**task_of(sheet_of(html()), "prompt"), "blocks": 200_000}
    readings = [[record_of(task, ids, who)] for ids, who in ((list(range(1, 200_001)), "a"), ([], "b"))]
    assert len(adjudicated(readings)[1]) == 200_000


def test_section_4_2_export_in_the_form_of_the_benchmark(
    annotate: Annotate, fake: FakeEndpoint, pages: Path, tmp_path: Path, capsys: Any
) -> None:
    """A line has html, main_html, convert_main_content and meta. Pages whose blocks are all other are left out (4.1).
    ``evaluate`` reads the file.
    """
    pytest.importorskip("apted")
    path = pages / "Moons.html"
    path.write_text(path.read_text("utf-8").replace("<html>", "<html lang=de-AT>"), encoding="utf-8")
    fake.script = [lambda request: chat(json.dumps({"style": "conversational", **labels(request)})), good]
    assert annotate(pages, ask=True) == 0
    rewrite(tmp_path, labels=[])
    out = tmp_path / "bench.jsonl"
    assert annotate(pages, "--benchmark", out) == 0
    assert "2 exported, 1 without main content" in capsys.readouterr().err
    moons, winds = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    assert moons["html"] == (pages / "Moons.html").read_text(encoding="utf-8")
    assert moons["main_html"].startswith('<html lang="de-AT"><body> <article class="post"><h1>Moons</h1>')
    assert "Read more" not in moons["main_html"]
    assert moons["convert_main_content"].startswith("# Moons\n\nThe first paragraph of Moons")
    parts = {"table": "without", "code": "without", "equation": "without"}
    assert moons["meta"].pop("level") in ("simple", "mid", "hard")
    assert moons["meta"] == {**parts, "annotator": "reader-1", "language": "non_en", "style": "conversational"}
    assert "style" not in winds["meta"], "the endpoint has not said it"
    assert "language" not in winds["meta"], "not declared, and the text is too short to tell it"

    stored = [{"id": one["track_id"], "text": one["convert_main_content"]} for one in (moons, winds)]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(one) + "\n" for one in stored))
    assert main(["evaluate", str(out), "--predictions", str(tmp_path / "texts.jsonl"), "--jobs", "1"]) == 0
    assert "1.0000" in capsys.readouterr().out
    assert annotate(pages, "--benchmark", out) == 2


def test_pages_of_the_profile_of_qwen3(
    annotate: Annotate, fake: FakeEndpoint, pages: Path, tmp_path: Path, capsys: Any
) -> None:
    """They are cut, shown and exported by that profile; its labels do not fit other blocks."""
    fake.script = [good]
    assert annotate(pages, "--profile", "v1.0", ask=True) == 0
    assert {(record["profile"], record["blocks"]) for record in records(tmp_path)} == {("v1.0", 3)}
    assert annotate(pages, "--export", tmp_path / "native") == 1
    assert "labelled in the profile 'v1.0', expected 'native'" in capsys.readouterr().err
    assert annotate(pages, "--export", tmp_path / "more", "--profile", "v1.0") == 0
    truths = [sample.truth.split("\n") for sample in load_pages(tmp_path / "more")]
    assert [(truth[0], len(truth)) for truth in truths] == [("Moons", 3), ("Tides", 3), ("Winds", 3)]
