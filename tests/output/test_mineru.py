"""The content list in the schema of MinerU's tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.cli import main
from scrapy_dripper.output.content_json import from_json, to_json, to_mineru
from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.page.parse import parse


def nodes(html: str) -> list[tuple[str, Any]]:
    """Return type and content of the nodes of a fragment. Their HTML and their place are never given."""
    [page] = to_mineru(content_list(parse(f"<body>{html}</body>"), "https://e.org/"))
    assert {(node["raw_content"], node["bbox"]) for node in page} <= {(None, None)}
    return [(node["type"], node["content"]) for node in page]


TEX = '<annotation encoding="application/x-tex">n^2</annotation>'
MATH = f'<math display="{{}}"><semantics><mi>n</mi>{TEX}</semantics></math>'


CASES = json.loads(Path(__file__).with_name("mineru_cases.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["rule"])
def test_section_2_2_the_nodes_of_the_reference(case: dict[str, Any]) -> None:
    assert nodes(case["body"]) == [(node["type"], node["content"]) for node in case["nodes"]]


def test_appendix_a_2_figures_7_and_8() -> None:
    """The title of the paper's example, and its Markdown: a mark for each level, and a blank line between nodes."""
    html = "<h1>Tides</h1><pre>x = 1</pre>"
    title, code = nodes(html)
    assert title == ("title", {"title_content": "Tides", "level": 1})
    assert code[0] == "code"
    found = content_list(parse(f"<body>{html}</body>"), "https://e.org/")
    assert markdown(found) == "# Tides\n\n```\nx = 1\n```"


def test_section_2_2_1_tables_are_simple_or_complex() -> None:
    """A table with spans is complex. Both are given as HTML."""
    simple, spanned = (nodes(f"<table><tr><th{span}>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>")[0]
                       for span in ("", " rowspan=2"))  # fmt: skip
    assert (simple[0], simple[1]["is_complex"], simple[1]["table_nest_level"]) == ("simple_table", False, "1")
    assert (spanned[0], spanned[1]["is_complex"]) == ("complex_table", True)
    assert "<td>1</td>" in simple[1]["html"]


def test_section_2_2_1_display_formulas_are_nodes() -> None:
    [(kind, content)] = nodes(MATH.format("block"))
    assert (kind, content["math_content"], content["math_type"]) == ("equation-interline", "n^2", "latex")


BOX = 'data-bbox="{}"'.format
AT = BOX("8,20,784,40.5")
HERE = [8.0, 20.0, 792.0, 60.5]
NO_BOXES = (
    *("", "8,20,784", "8,20,784,40,1", "8 20 784 40", "8,20,,40", "8,20,-1,40", "8,20,784,-40", "8,20,1e309,40"),
    *("nan,20,784,40", "8,20,784,4" + "0" * 200),
)


@pytest.mark.parametrize(
    ("html", "boxes"),
    [
        (f"<h1 {AT}>Tides</h1><p>They rise.</p>", [HERE, None]),
        (f"<pre {AT}>x</pre><hr><table {AT}><tr><td>1<td>2<tr><td>3<td>4</table>", [HERE, HERE]),
        (f"<ul {AT}><li>one<li>two</ul><figure {AT}><img src=i><figcaption>It.</figcaption></figure>", [HERE, HERE]),
        # The innermost block that holds nothing else.
        (f"<div {BOX('0,0,9,9')}><div {AT}><p>They rise.</p></div></div>", [HERE]),
        (f"<div {AT}><p {BOX('8,20,x,9')}>They <b {BOX('8,20,784,40.5')}>rise</b>.</p></div>", [HERE]),
        (f"<div {AT}><p>They rise.</p><p>They fall.</p></div>", [None, None]),
        (f"Before it.<p {AT}>They rise.</p>Behind it.", [None, HERE, None]),
        (f"<blockquote {BOX('0,0,9,9')}><p {AT}>They rise.</p></blockquote>", [HERE]),
        # An item over several elements, and several items of one.
        (f"<p><b {BOX('8,40,20,20.5')}>They</b> <i {BOX('300,20,492,9')}>rise.</i></p>", [HERE]),
        (f"<ul><li {BOX('8,20,9,20')}>one<li {BOX('8,40,784,20.5')}>two</ul>", [HERE]),
        (f"<p {AT}>They rise.<br><br>They fall.</p>", [HERE, HERE]),
        (f"<p {AT}>{MATH.format('inline')} {MATH.format('block')} is.</p>", [HERE, HERE, HERE]),
        # What makes no sense.
        *((f"<p {BOX(value)}>They rise.</p>", [None]) for value in NO_BOXES),
    ],
)
def test_appendix_a_2_figure_7_the_places_of_nodes(html: str, boxes: list[list[float] | None]) -> None:
    """They are those that a browser has written into the page. The content is the same without them."""
    items = content_list(parse(f"<body>{html}</body>"), "https://e.org/")
    [page] = to_mineru(from_json(json.loads(json.dumps(to_json(items)))))
    assert [node["bbox"] for node in page] == boxes
    assert items == content_list(parse(f"<body>{html.replace('data-bbox', 'data-x')}</body>"), "https://e.org/")


def test_the_option_of_extract(tmp_path: Path, capsys: Any) -> None:
    """--content-schema mineru includes --content."""
    page = tmp_path / "page.html"
    text = "The tide rises and falls twice a day, and this is the whole story of the harbour at noon."
    page.write_text(f"<article><h1>Tides</h1><p>{text}</p><p>{text[:60]}</p></article>")
    assert main(["extract", str(page), "-f", "json", "--content-schema", "mineru"]) == 0
    [[first, *_]] = json.loads(capsys.readouterr().out)[0]["content"]
    assert first == {
        "type": "title", "bbox": None, "raw_content": None, "content": {"title_content": "Tides", "level": 1}
    }  # fmt: skip
