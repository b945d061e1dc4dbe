"""Export of labelled pages as training data."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.tests.annotation.conftest import MAIN, Desk, html, sheet_of
from lab.tests.fake_endpoint import Reply, Request, chat, good, labels
from scrapy_dripper.cli import main
from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines.tagger.learnt import LEARNT
from scrapy_dripper.inspection.answers import LabelsError, record_of, task_of
from scrapy_dripper.page import read
from scrapy_dripper_lab.alignment import align
from scrapy_dripper_lab.annotation.labels import adjudicated, load, write_page
from scrapy_dripper_lab.sets import DataError, load_pages
from scrapy_dripper_lab.training.prepare import example
from tests.learning.conftest import corrections  # noqa: F401 (a fixture)
from tests.learning.test_learn_command import learn, learnt  # noqa: F401 (a fixture)


@pytest.fixture
def labelled(desk: Desk) -> Desk:
    """Three pages with their labels."""
    assert desk.annotate(desk.pages, ask=True) == 0
    desk.said()
    return desk


def rewrite(desk: Desk, **values: Any) -> None:
    """Change the record of the page Tides."""
    found = [record | (values if record["title"] == "Tides" else {}) for record in desk.records()]
    text = "".join(json.dumps(record) + "\n" for record in found)
    desk.labels.write_text(text, encoding="utf-8")


def test_export_is_what_the_training_reads(labelled: Desk) -> None:
    """Training gets the labelled.pages, URLs, labels and confidences as they were given."""
    out = labelled.folder / "more"
    assert labelled.annotate(labelled.pages, "--export", out) == 0
    samples = load_pages(out)
    assert [sample.title for sample in samples] == ["Moons", "Tides", "Winds"]
    tides = samples[1]
    assert (tides.host, tides.sure) == ("example.com", 0.5)
    assert tides.id == labelled.records()[1]["id"]
    assert tides.truth.split("\n")[0] == "Tides"
    assert tides.path.read_bytes() == (labelled.pages / "Tides.html").read_bytes()
    page = read(Document(tides.path.read_bytes()), Config())
    assert (np.flatnonzero(align(page.blocks.text, tides.truth).main) + 1).tolist() == MAIN
    made = example(tides)
    assert made is not None
    assert made.main.tolist() == [i + 1 in MAIN for i in range(6)]
    truth = json.loads((out / "ground-truth" / f"{tides.id}.json").read_text(encoding="utf-8"))
    assert (truth["source"], truth["reviewed"], truth["prompt"]) == ("reader-1", False, labelled.records()[1]["prompt"])


def test_section_4_1_pages_without_main_content_do_not_train_qwen3(labelled: Desk) -> None:
    """The export has them, because the tagger and ``learn`` know such pages. A person's labels count in full."""
    pytest.importorskip("tokenizers")
    from scrapy_dripper_lab.training.token_sequences import labelled_pages

    rewrite(labelled, who="human", labels=[])
    assert labelled.annotate(labelled.pages, "--export", labelled.folder / "more") == 0
    samples = load_pages(labelled.folder / "more")
    assert [(sample.sure, bool(sample.truth)) for sample in samples] == [(0.5, True), (1.0, False), (0.5, True)]
    found = labelled_pages(samples, "v1.0", 200, 1)
    assert [any(page.main) for page in found] == [True, True]
    assert "1 pages without main content are left out" in labelled.capsys.readouterr().out
    with pytest.raises(DataError, match="no page has main content"):
        labelled_pages([sample for sample in samples if not sample.truth], "v1.0", 200, 1)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8-sig"])
def test_pages_are_exported_as_utf8(encoding: str, desk: Desk) -> None:
    """Training reads the text that was labelled, also of zipped pages and other encodings."""
    text = html("Marées", "<p>Le café ouvre à midi, près de la jetée où l'eau est déjà haute.</p>")
    text = text.replace("<head>", f"<head><meta charset={encoding.removesuffix('-sig')}>")
    page = desk.folder / 'b:c*"<>|.html.gz'  # its id is the name of a file on any system
    page.write_bytes(gzip.compress(text.encode(encoding)))
    assert desk.annotate(page, ask=True) == 0
    assert desk.annotate(page, "--export", desk.folder / "more") == 0
    [sample] = load_pages(desk.folder / "more")
    assert (sample.id[:4], "Le café ouvre à midi" in sample.read_html()) == ("b-c-", True)
    made = example(sample)
    assert made is not None
    assert made.main.tolist() == [False, True, True, True, True, False, False]


def test_changed_and_missing_pages_are_named(labelled: Desk) -> None:
    """A page that has changed since is refused, and so are labels without their page."""
    (labelled.pages / "Tides.html").write_text(html("Tides", "<p>Added since</p>"), encoding="utf-8")
    (labelled.pages / "Winds.html").unlink()
    (labelled.pages / "New.html").write_text(html("New"), encoding="utf-8")
    assert labelled.annotate(labelled.pages, "--export", labelled.folder / "more") == 1
    error = labelled.said()
    assert f"{labelled.pages / 'Tides.html'}: has changed since it was labelled" in error
    assert "its page is not among the inputs" in error
    assert "1 exported, 1 without labels, 2 failed" in error
    assert [sample.title for sample in load_pages(labelled.folder / "more")] == ["Moons"]


def test_an_export_that_cannot_start(labelled: Desk) -> None:
    """Earlier labelled.pages would be trained on unnoticed. Of two labellings of a page, a person has to choose."""
    assert labelled.annotate(labelled.pages, "--export", labelled.pages) == 2
    assert "is not empty" in labelled.said()
    path = labelled.labels
    path.write_text(path.read_text(encoding="utf-8") * 2, encoding="utf-8")
    assert labelled.annotate(labelled.pages, "--export", labelled.folder / "more") == 2
    assert "is labelled twice" in labelled.said()


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
def test_broken_records_are_refused(values: dict[str, Any], says: str, labelled: Desk) -> None:
    """A file that was edited or received is checked before anything is written; ids cannot lead out of the folder. A
    page with labels of other blocks is named and left out, and the others are exported.
    """
    rewrite(labelled, **values)
    of_page = says.startswith("Tides.html")
    assert labelled.annotate(labelled.pages, "--export", labelled.folder / "more") == (1 if of_page else 2)
    error = labelled.said()
    assert says in error
    assert ("labels.jsonl, line 2: expected" in error) == (not of_page) == (not (labelled.folder / "more").exists())
    if of_page:
        assert [sample.title for sample in load_pages(labelled.folder / "more")] == ["Moons", "Winds"]


def test_labels_of_another_page_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is exported has the blocks that were labelled."""
    page = sheet_of(html())
    record = record_of(task_of(page, "prompt"), MAIN, "reader")
    monkeypatch.setattr("scrapy_dripper_lab.annotation.labels.in_utf8", lambda _: b"")
    with pytest.raises(LabelsError, match="its blocks are not the same when it is written as UTF-8"):
        write_page(tmp_path, record, page)
    assert not list(tmp_path.iterdir())


def read_with(desk: Desk, name: str, *, other: str = "", who: str) -> Path:
    """Have the pages read again, by a reader who takes the blocks with a word for other, into a file of its own."""

    def answer(request: Request) -> Reply:
        found = labels(request)
        found |= {str(one["id"]): "other" for one in request.blocks if other and other in one["text"]}
        return chat(json.dumps(found))

    desk.fake.script = [answer]
    asking = ["--endpoint", desk.fake.url, "--model", who, "--concurrency", "1"]
    assert main(["annotate", str(desk.pages), *asking, "-o", str(desk.folder / name)]) == 0
    return desk.folder / name


def test_appendix_a_5_a_second_reader_and_an_adjudicator(labelled: Desk) -> None:
    """What two readers agree on is decided. Where they differ, the blocks are listed, and a third one decides."""
    first = labelled.labels
    second = read_with(labelled, "second.jsonl", other="of Moons", who="reader-2")
    third = read_with(labelled, "third.jsonl", other="of Moons", who="reader-3")
    labelled.said()

    def adjudicate(out: str, *files: Path, pages: Path | None = labelled.pages) -> int:
        given = [] if pages is None else [str(pages)]
        return main(["annotate", *given, "--adjudicate", *map(str, files), "-o", str(labelled.folder / out)])

    assert adjudicate("two.jsonl", first, second) == 1
    printed = labelled.capsys.readouterr()
    [listed] = map(json.loads, printed.out.splitlines())
    assert (listed["block"], listed["main"]) == (3, {"reader-1 (1)": True, "reader-2 (2)": False})
    assert listed["text"].startswith("The first paragraph of Moons")
    assert listed["page"].startswith("Moons-")
    assert "3 pages with two readers, who agree on 94.4% of the blocks" in printed.err
    assert "2 decided, 1 failed" in printed.err
    decided = {record.title: record.who for record in load(labelled.folder / "two.jsonl")}
    assert decided == dict.fromkeys(("Tides", "Winds"), "reader-1+reader-2")

    assert adjudicate("three.jsonl", first, second, third) == 0
    ids = {record.title: record.labels for record in load(labelled.folder / "three.jsonl")}
    assert ids == {"Moons": (2, 4), "Tides": (2, 3, 4), "Winds": (2, 3, 4)}
    assert adjudicate("three.jsonl", first, second) == 2
    assert adjudicate("one.jsonl", first) == 2
    assert "needs the labels of two readers or more, and a new file" in labelled.said()

    # Two against two decide nothing, even if the first two agree. A page that only one has read is counted.
    moons = [line for line in second.read_text("utf-8").splitlines(keepends=True) if "Moons" in line]
    third.write_text("".join(moons), encoding="utf-8")
    assert adjudicate("four.jsonl", first, first, third, third, pages=None) == 2
    assert not (labelled.folder / "four.jsonl").exists(), "there were no pages"
    assert adjudicate("four.jsonl", first, first, third, third) == 1
    assert "2 decided, 1 failed (Moons-" in labelled.said()
    second.write_text("".join(moons), encoding="utf-8")
    assert adjudicate("once.jsonl", second, third, first) == 0
    assert "2 with one reader, 1 decided" in labelled.said()

    # A reader whose file has a page twice is one reader.
    second.write_text("".join(moons * 2), encoding="utf-8")
    assert adjudicate("twice.jsonl", first, second) == 2
    assert "is labelled twice" in labelled.said()


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


def test_section_4_2_export_in_the_form_of_the_benchmark(desk: Desk) -> None:
    """A line has html, main_html, convert_main_content and meta. Pages whose blocks are all other are left out (4.1).
    ``evaluate`` reads the file.
    """
    pytest.importorskip("apted")
    path = desk.pages / "Moons.html"
    path.write_text(path.read_text("utf-8").replace("<html>", "<html lang=de-AT>"), encoding="utf-8")
    desk.fake.script = [lambda request: chat(json.dumps({"style": "conversational", **labels(request)})), good]
    assert desk.annotate(desk.pages, ask=True) == 0
    rewrite(desk, labels=[])
    out = desk.folder / "bench.jsonl"
    assert desk.annotate(desk.pages, "--benchmark", out) == 0
    assert "2 exported, 1 without main content" in desk.said()
    moons, winds = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    assert moons["html"] == (desk.pages / "Moons.html").read_text(encoding="utf-8")
    assert moons["main_html"].startswith('<html lang="de-AT"><body> <article class="post"><h1>Moons</h1>')
    assert "Read more" not in moons["main_html"]
    assert moons["convert_main_content"].startswith("# Moons\n\nThe first paragraph of Moons")
    parts = {"table": "without", "code": "without", "equation": "without"}
    assert moons["meta"].pop("level") in ("simple", "mid", "hard")
    assert moons["meta"] == {**parts, "annotator": "reader-1", "language": "non_en", "style": "conversational"}
    assert "style" not in winds["meta"], "the endpoint has not said it"
    assert "language" not in winds["meta"], "not declared, and the text is too short to tell it"

    stored = [{"id": one["track_id"], "text": one["convert_main_content"]} for one in (moons, winds)]
    (desk.folder / "texts.jsonl").write_text("".join(json.dumps(one) + "\n" for one in stored))
    assert main(["evaluate", str(out), "--predictions", str(desk.folder / "texts.jsonl"), "--jobs", "1"]) == 0
    assert "1.0000" in desk.capsys.readouterr().out
    assert desk.annotate(desk.pages, "--benchmark", out) == 2


def test_pages_of_the_profile_of_qwen3(desk: Desk) -> None:
    """They are cut, shown and exported by that profile; its labels do not fit other blocks."""
    desk.fake.script = [good]
    assert desk.annotate(desk.pages, "--profile", "v1.0", ask=True) == 0
    assert {(record["profile"], record["blocks"]) for record in desk.records()} == {("v1.0", 3)}
    assert desk.annotate(desk.pages, "--export", desk.folder / "native") == 1
    assert "labelled in the profile 'v1.0', expected 'native'" in desk.said()
    assert desk.annotate(desk.pages, "--export", desk.folder / "more", "--profile", "v1.0") == 0
    truths = [sample.truth.split("\n") for sample in load_pages(desk.folder / "more")]
    assert [(truth[0], len(truth)) for truth in truths] == [("Moons", 3), ("Tides", 3), ("Winds", 3)]


def test_exported_labels_and_true_texts_teach_the_same(
    corrections: Path,  # noqa: F811
    learnt: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    """``annotate --export`` writes the true text of the labels."""
    store, exported = tmp_path / "labels.jsonl", tmp_path / "exported"
    assert main(["annotate", "--read-answers", str(corrections), "-o", str(store)]) == 0
    pages = [str(path) for path in corrections.glob("*.html")]
    assert main(["annotate", *pages, "-o", str(store), "--export", str(exported)]) == 0
    assert learn(exported / "html", "-o", tmp_path / "by-text") == 0

    assert json.loads((tmp_path / "by-text" / LEARNT).read_text()) == json.loads((learnt / LEARNT).read_text())
