"""WebMainBench: its pages, and the metrics of its toolkit, on cases worked out by hand."""

from __future__ import annotations

import csv
import json
import lzma
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("apted", reason="needs the extra [evaluate]")
pytest.importorskip("jieba", reason="needs the extra [evaluate]")

from lab.tests.evaluation.test_evaluate_command import model as fake_model  # a fixture
from scrapy_dripper.cli import main
from scrapy_dripper_lab.evaluation.peers import canonical_markdown
from scrapy_dripper_lab.evaluation.webmainbench import (
    KINDS,
    code,
    first_table,
    formulas,
    html_tables,
    markdown_tables,
    part_scores,
    read_page,
    without_annotation,
)

model = fake_model

PROSE = "river stone winter harbour letter engine garden bridge copper market window candle"
PAGE = {
    "track_id": "one",
    "url": "https://host.example/one",
    "html": '<html><body><a href="/">Home</a><p cc-select="true" class="x">'
    f"<marked-text>{PROSE}</marked-text></p></body></html>",
    "main_html": f"<html><body><p>{PROSE}</p></body></html>",
    "convert_main_content": f"{PROSE}\n",
    "groundtruth_content": PROSE,
    "meta": {"language": "en", "style": "Article", "level": "mid", "table": [], "code": ["inline"], "equation": []},
}
TABLE = "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>"
MARKDOWN_TABLE = "| a | b |\n|---|---|\n| 1 | 2 |"


def write(path: Path, *pages: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(page) + "\n" for page in pages), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```py\na = 1\n\nb = 2\n```", "a = 1\n\nb = 2"),
        ("`a` and ```b```", ""),
        ("x\n\n    a\n      b\n\ny", "a\n  b"),
        ("x\n\n    - a\n    - b", ""),
        ("x\n\n    1. a\n    b", ""),
        ("x\n\n    a $5\n    b", ""),
        ("x\n\n    two Million\n    b", ""),
        ("x\n\n    a\n    b\n\n```\nc\n```", "c\na\nb"),
    ],
)
def test_code(text: str, expected: str) -> None:
    """Fenced code comes first. Indented blocks must not look like lists or sums of money."""
    assert code(text) == expected


INDENTED = re.compile(r"(?:\n\s*\n)((?:(?: {4,}|\t+)[^\n]*(?:\n|$)){2,})(?=\n\s*\n|$)", re.M)
BETWEEN = [
    re.compile(rf"(?<!\\){opening}(.*?)(?<!\\){closing}", re.S)
    for opening, closing in ((r"\$\$", r"\$\$"), (r"\\\[", r"\\\]"), (r"\$", r"\$"), (r"\\\(", r"\\\)"))
]


@given(st.lists(st.sampled_from(["\n", "\n\n", "    ", "\t", " ", "a", "    a\n", "\r"]), max_size=14).map("".join))
def test_indented_code_is_what_the_expression_finds(text: str) -> None:
    """The toolkit's regular expression takes quadratic time, so it is not used. Both find the same blocks."""
    wanted = []
    for match in INDENTED.finditer(text):
        lines = [line for line in match[1].split("\n") if line.strip()]
        if len(lines) > 1:
            wanted += [line[1:] if line.startswith("\t") else line[4:] for line in lines]
    assert code(text) == "\n".join(wanted)


@given(st.lists(st.sampled_from(["$", "\\", "\\[", "\\]", "\\(", "\\)", "x", "\n", " "]), max_size=14).map("".join))
def test_formulas_are_what_the_expressions_find(text: str) -> None:
    """Each kind of mark is searched for in turn, outside of code. Two prices in dollars are a formula."""
    assert formulas("`$x$` ```\n$y$\n``` costs $5 or $6") == "5 or"
    found = [match[1].strip() for pattern in BETWEEN for match in pattern.finditer(text)]
    assert formulas(text) == "\n".join(filter(None, found))


def test_tables() -> None:
    """HTML tables that are not inside another one come first. The second row of a Markdown table must be a rule."""
    nested = f"<table><tr><td>{TABLE}</td></tr></table>"
    assert len(html_tables(f"x\n\n{MARKDOWN_TABLE}\n\n{nested}\ny")) == 1
    assert markdown_tables(f"x\n\n{MARKDOWN_TABLE}\n\n{nested}\ny") == [MARKDOWN_TABLE]
    assert markdown_tables("a | b\nc | d") == html_tables("no table") == []
    assert first_table(TABLE) == first_table(MARKDOWN_TABLE) == "a b\n1 2"
    assert first_table(f"{MARKDOWN_TABLE}\n\nx | y\n--- | ---\n3 | 4") == "a b\n1 2\nx y\n3 4"
    assert first_table(f"{TABLE}\n\n{MARKDOWN_TABLE}\n\n{TABLE}") == "a b\n1 2", "only the first table of HTML"
    assert first_table("") == ""


def test_section_3_2_1_edit_similarities() -> None:
    """1 - distance / length of the longer text (MinerU-HTML, section 3.2.1): kitten and sitting have distance 3."""
    assert part_scores("kitten", "sitting") == {
        "text_edit": pytest.approx(1 - 3 / 7),
        **dict.fromkeys(("code_edit", "formula_edit", "table_edit", "table_TEDS")),
    }
    scores = part_scores("```\nkitten\n```\n$x+1$", "```\nsitting\n```\n$x-1$ $y$")
    assert scores["code_edit"] == pytest.approx(1 - 3 / 7)
    assert scores["formula_edit"] == pytest.approx(1 - 3 / 5), "x+1 and x-1, a line break, y"
    assert scores["table_edit"] is None
    assert part_scores("", "```\nx\n```")["code_edit"] == 0
    assert set(part_scores("", "").values()) == {None}, "what neither has is left out of the mean"


@pytest.mark.parametrize(
    ("other", "nodes"),
    [
        (TABLE.replace("2", "3"), 1),
        (TABLE.replace(">a", ">x").replace(">b", ">y").replace("1", "8").replace("2", "9"), 4),
        (TABLE.replace("<td>1", "<td colspan=2>1"), 1),
    ],
    ids=["one cell", "all cells", "a span"],
)
def test_section_3_2_1_tables_are_compared_as_trees(other: str, nodes: int) -> None:
    """A table has 7 nodes: itself, 2 rows and 4 cells. Each cell that differs is a distance of 1."""
    assert part_scores(TABLE, other)["table_TEDS"] == pytest.approx(1 - nodes / 7)


@pytest.mark.parametrize("depth", [200, 5_000])
def test_tables_in_tables(depth: int) -> None:
    """They took minutes, or ended the run."""
    deep = "<table><tr><td>x" * depth
    assert part_scores(deep, TABLE)["table_TEDS"] is not None
    assert part_scores(deep, deep)["text_edit"] == 1


def test_texts_with_and_without_tables() -> None:
    """Markdown and HTML of the same table are equal. A lost table is a score of 0."""
    scores = part_scores(TABLE, TABLE.replace("2", "3"))
    assert scores["table_edit"] == pytest.approx(1 - 1 / 7), "'a b' and '1 2' on two lines"
    lost = part_scores("no table", TABLE)
    assert (lost["table_edit"], lost["table_TEDS"]) == (0, 0)
    same = part_scores(MARKDOWN_TABLE, TABLE)
    assert (same["table_edit"], same["table_TEDS"]) == (1, 1)
    twice = part_scores(f"{TABLE}<p>x</p>{TABLE}", TABLE)
    assert twice["table_TEDS"] == pytest.approx(1 - 7 / 14), "every table counts"
    padded = TABLE.replace("</table>", "<tr><td></td><td> </td></tr></table>")
    assert part_scores(MARKDOWN_TABLE, padded)["table_TEDS"] == 1, "a row without text does not"


def test_a_page_is_read_without_the_annotation() -> None:
    """The annotators' marks, which include the answer, are removed, and their elements do not separate texts."""
    page = read_page(PAGE)
    assert page.html == f'<html><body><a href="/">Home</a><p class="x">{PROSE}</p></body></html>'
    assert page.groups == ("all", "mid", "English", "code", "not conversational")
    assert page.converted == canonical_markdown(PAGE["main_html"]) == f"{PROSE}\n"
    assert without_annotation("<p data-anno-uid='a b' id=c>x<marked-tail>y</marked-tail></p>") == "<p id=c>xy</p>"
    forum = {**PAGE, "meta": {"style": "Forum_or_Article_with_commentsection", "language": "zh"}}
    assert read_page(forum).groups == ("all", "other languages", "conversational")
    without = {**PAGE, "meta": {"table": "without", "code": "with", "equation": ""}}
    assert read_page(without).groups == ("all", "code"), "what a page is said to be without"


def test_appendix_a_figure_9_an_entry_of_the_benchmark() -> None:
    """MinerU-HTML's example: the answer is not in the page that is measured, and its level has another word."""
    heading = "<h1{}>Hello world!</h1>"
    page = {
        "track_id": "XXXX",
        "html": f"<html><body>{heading.format(' cc-select=True')}<aside>advertisement</aside></body></html>",
        "main_html": f"<html><body>{heading.format('')}</body></html>",
        "convert_main_content": "# Hello world!",
        "meta": {"language": "en", "style": "Normal", "level": "easy", **dict.fromkeys(KINDS, "without")},
    }
    found = read_page(page)
    assert found.html == f"<html><body>{heading.format('')}<aside>advertisement</aside></body></html>"
    assert found.groups == ("all", "simple", "English", "not conversational")
    assert canonical_markdown(str(found.main_html)).strip() == found.converted
    assert canonical_markdown("<p>a <a href='/x'>b</a> <img src='c' alt='d'> <b>e</b></p>") == "a b **e**\n"
    assert canonical_markdown(" ") == ""


def test_the_model_and_a_peer_on_a_file(tmp_path: Path, model: Path, capsys: Any) -> None:
    """All prose of the page is extracted, in one process or two. The peer also returns the link."""
    data = write(tmp_path / "bench.jsonl", PAGE, {**PAGE, "track_id": "two", "groundtruth_content": None})
    out = tmp_path / "out" / "figures.json"
    arguments = ["evaluate", str(data), "--model", str(model), "--peers", "html2text", "--jobs", "1"]
    assert main([*arguments, "--json", str(out), "--csv", str(tmp_path / "new" / "rows.csv")]) == 0

    printed = capsys.readouterr().out
    found = json.loads(out.read_text())
    (ours, peer), (fine, _), answered = found["tables"].values()
    assert answered == [{"system": ours["system"], "source": "fake", "pages": 2}]
    assert ours["all (2)"] == ours["code (2)"] == 1
    assert fine["text_edit"] == 1
    assert fine["overall"] == pytest.approx(1 / 5), "as in the toolkit, metrics without pages count as 0"
    assert found["data"] == {"file": "bench.jsonl", "pages": 2}
    first, of_peer, second, _ = found["pages"]
    assert (first["system"], first["source"], of_peer["system"]) == ("ours", "fake", "html2text")
    assert (first["overall"], first["text_edit"], first["table_TEDS"]) == (1, 1, None)
    assert (second["overall"], second["text_edit"]) == (None, None)
    with (tmp_path / "new" / "rows.csv").open(newline="") as file:
        assert [row["overall"] for row in csv.DictReader(file)] == ["1.0", str(of_peer["overall"]), "", ""]
    assert peer["mid (2)"] < 1
    assert "2 pages of bench.jsonl, 1 with Markdown by annotators" in printed
    assert "1.0000" in printed


def test_stored_texts_in_two_processes(tmp_path: Path, capsys: Any) -> None:
    """Half of the prose has all of its 5-grams in the truth; a page without a text counts as empty."""
    half = " ".join(PROSE.split()[:6])
    data = write(tmp_path / "bench.jsonl", PAGE, {**PAGE, "track_id": "two"})
    stored = write(tmp_path / "stored.jsonl", {"id": "one", "text": half})
    out = tmp_path / "figures.json"
    assert main(["evaluate", str(data), "--predictions", str(stored), "--jobs", "2", "--json", str(out)]) == 0

    one, two = json.loads(out.read_text())["pages"]
    assert (one["id"], two["id"]) == ("one", "two"), "in the order of the file"
    # 12 words with 11 spaces and a line break are 24 tokens, so 20 5-grams; 6 words are 11 tokens, so 7.
    assert (one["rouge_precision"], one["rouge_recall"]) == (1, pytest.approx(7 / 20))
    assert one["text_edit"] == pytest.approx(len(half) / len(PROSE))
    assert (two["rouge_precision"], two["rouge_recall"], two["rouge_f1"]) == (0, 0, 0)
    assert "count as empty" in capsys.readouterr().err
    write(stored, {"id": "three", "text": half})
    assert main(["evaluate", str(data), "--predictions", str(stored), "--jobs", "1"]) == 2
    assert "no id of" in capsys.readouterr().err, "and so all texts would be empty"


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (['{"url": "x"}'], [], "expected an object with 'html' (got 'url')"),
        (['{"html": "<p>x"}'], [], "expected 'main_html', 'convert_main_content' or 'groundtruth_content'"),
        (['{"html": "<p>x", "main_html": 1}'], [], "expected text as 'main_html' (got int)"),
        (["[]"], [], "line 1: expected a page of WebMainBench"),
        (["[" * 100_000], [], "line 1: expected a page of WebMainBench"),
        (["[" * 100_000], ["--check"], "line 1: expected a page with results"),
        (['{"a_success": 1, "a_content": 5}'], ["--check"], "line 1: expected a page with results"),
        ([""], [], "has no pages"),
        ([json.dumps(PAGE)], ["--peers", "nobody"], "expected peers from"),
        ([json.dumps({**PAGE, "meta": "mid"})], [], "expected an object as 'meta' (got str)"),
        ([json.dumps(PAGE)], ["--nodes"], "--nodes is for folders of pages, not for bench.jsonl"),
        ([json.dumps(PAGE)], ["--endpoint-model", "x"], "--endpoint-model needs --endpoint URL"),
    ],
)
def test_wrong_data(
    lines: list[str],
    options: list[str],
    message: str,
    tmp_path: Path,
    model: Path,
    capsys: Any,
) -> None:
    data = tmp_path / "bench.jsonl"
    data.write_text("\n".join(lines), encoding="utf-8")
    assert main(["evaluate", str(data), "--model", str(model), "--jobs", "1", *options]) == 2
    assert message in capsys.readouterr().err


def stored(path: Path, **scores: object) -> Path:
    """Write what the toolkit writes: a page with the text of an extractor and its scores, compressed."""
    page = {"id": "one", "groundtruth_content": "kitten", "groundtruth_content_list": [[{"type": "paragraph"}]]}
    page |= {"some_content": "sitting", "some_success": True, "other_content": "x", "other_success": False, **scores}
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.write(json.dumps(page) + "\n")
    return path


@pytest.mark.parametrize(
    ("scores", "code", "message"),
    [
        ({"some_text_edit_score": 4 / 7, "some_overall_score": 0.57143}, 0, "2 stored scores compared to 4 digits; 0"),
        ({"some_text_edit_score": 0.5716}, 1, "one: text_edit of some is 0.571429, stored is 0.571600"),
        ({"id": "", "some_text_edit_score": 0.5716}, 1, "page 1: text_edit of some is 0.571429"),
        ({"some_code_edit_score": 0.5}, 1, "code_edit of some does not apply, stored is 0.500000"),
        ({"other_text_edit_score": 1}, 1, "0 stored scores compared to 4 digits; 0 differ\nexpected a page with"),
    ],
)
def test_stored_scores_are_computed_again(
    scores: dict[str, object], code: int, message: str, tmp_path: Path, capsys: Any
) -> None:
    """To four digits; a difference, or a file with nothing to compare, is a failure. An extractor that failed has no
    score.
    """
    assert main(["evaluate", str(stored(tmp_path / "results.jsonl.xz", **scores)), "--check"]) == code
    assert message in capsys.readouterr().out


def test_a_missing_file(tmp_path: Path, capsys: Any) -> None:
    assert main(["evaluate", str(tmp_path / "none.jsonl")]) == 2
    assert "does not exist" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path), "--check"]) == 2
    assert "expected one .jsonl file" in capsys.readouterr().err
    (tmp_path / "cut.jsonl.xz").write_bytes(lzma.compress(b"{}")[:-8])
    assert main(["evaluate", str(tmp_path / "cut.jsonl.xz"), "--check"]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "apted", None)
    for name in [name for name in sys.modules if name.startswith("scrapy_dripper_lab.evaluation.webmainbench")]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["evaluate", str(write(tmp_path / "bench.jsonl", PAGE))]) == 2
    assert "'lab[evaluate]'" in capsys.readouterr().err
