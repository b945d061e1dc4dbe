"""Tables: spans, header rows, detection of layout, and limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.output.markdown import Tables, markdown
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures.items import (
    Code,
    Image,
    Item,
    Items,
    LineBreak,
    List,
    Paragraph,
    Quote,
    Table,
    Text,
    plain_text,
)
from scrapy_dripper.structures.tables import is_mostly_padding
from tests.structured.measures import Rendered


def items_of(html: str) -> Items:
    return content_list(parse(html), "https://example.org/")


def made(html: str) -> Table:
    """Return the only data table of some HTML."""
    (found,) = items_of(html)
    assert isinstance(found, Table)
    return found


def plain(items: Items) -> str:
    """Return the text of a cell."""
    return "/".join("".join(getattr(run, "text", "") for run in getattr(item, "runs", ())) for item in items)


def shown(found: Table) -> list[list[str]]:
    """Return the cells of a table: the text, ``rowspan x colspan`` if it spans, and ``#`` for a header."""
    return [
        [
            plain(cell.items)
            + (f" {cell.rowspan}x{cell.colspan}" if cell.rowspan * cell.colspan > 1 else "")
            + ("#" if cell.header else "")
            for cell in row
        ]
        for row in found.rows
    ]


def row(*cells: str, tag: str = "td") -> str:
    return "<tr>" + "".join(cell if cell.startswith("<t") else f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


# ---------------------------------------------------------------------- the grid
@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # Rows and columns without content go, and spans shrink with them.
        (row("<td rowspan=3>a</td>", "b") + row("") + row("c"), [["a 2x1", "b"], ["c"]]),
        # A cell of nothing that reaches into rows with content holds its place.
        (row("<td rowspan=2></td>", "<td></td>") + row("a") + row("b", "c"), [["", "a"], ["b", "c"]]),
        # Spans end with the table, and rowspans with their section.
        (f"<tbody>{row('<td rowspan=9>a</td>', 'b')}</tbody><tbody>{row('c', 'd')}</tbody>", [["a", "b"], ["c", "d"]]),
        (row("<td rowspan=0>a</td>", "b") + row("c"), [["a 2x1", "b"], ["c"]]),
        # A span that is no number is 1, as is a colspan of 0.
        (row("<td colspan=x rowspan=-2>a</td>", "<td colspan=0>b</td>") + row("c", "d"), [["a", "b"], ["c", "d"]]),
        (row("<td colspan='2 '>a</td>", "b") + row("c", "d", "e"), [["a 1x2", "b"], ["c", "d", "e"]]),
    ],
)
def test_grid(rows: str, expected: list[list[str]]) -> None:
    """Cells are placed as in browsers."""
    assert shown(made(f"<table>{rows}</table>")) == expected


def test_text_outside_of_cells() -> None:
    """Text outside of cells comes before the table, and rows inside a form are rows."""
    html = f"<table>one<form>{row('a', 'b')}two{row('c', 'd')}</form><p>three</p></table>"
    *before, found = items_of(html)
    assert sorted(plain((item,)) for item in before) == ["one", "three", "two"]
    assert isinstance(found, Table)
    assert shown(found) == [["a", "b"], ["c", "d"]]


# ---------------------------------------------------------------------- headers
@pytest.mark.parametrize(
    ("rows", "header_rows"),
    [
        (f"<thead>{row('a', 'b')}{row('c', 'd')}</thead>{row('1', '2')}", 2),
        (f"<thead>{row('', '')}</thead>{row('a', 'b', tag='th')}{row('1', '2')}", 1),
        (row("a", "b", tag="th") + row("<th>1</th>", "2"), 1),
        (row("<td></td>", "<th>b</th>") + row("<th>1</th>", "2"), 1),
        (row("<td scope=col>a</td>", "<td role=columnheader>b</td>") + row("1", "2"), 1),
        (row("<b>a</b>", "<b>b</b>") + row("<b>c</b>", "<b>d</b>"), 0),
        (row("<b>a</b>", "b") + row("1", "2"), 0),
        (row("shoe", "price", "for") + row("a", "$165", "trail") + row("b", "$90", "road"), 1),
        (row("shoe", "price", "for") + row("a", "$165", "trail") + row("b", "sold out", "road"), 0),
        (row("name", "Ida") + row("phone", "555") + row("box", "17"), 0),
        (row("a", "b") + row("1", "2"), 0),
        (row("a", "b", tag="th") + row("c", "d", tag="th"), 1),
        (f"<thead>{row('a', 'b')}{row('1', '2')}</thead>", 1),
    ],
)
def test_header_rows(rows: str, header_rows: int) -> None:
    """``<thead>``, rows of ``<th>``, or a bold first row. A column of ``<th>`` is not a header row."""
    found = made(f"<table>{rows}</table>")
    assert found.header_rows == header_rows
    assert all(cell.header for cell in found.rows[0]) or not header_rows


@pytest.mark.parametrize(
    ("rows", "caption", "header_rows"),
    [
        (row("<td colspan=2><h3>Prices</h3></td>") + row("<th>a</th>", "b") + row("<th>c</th>", "d"), "Prices", 0),
        (row("<th colspan=2>Prices</th>") + row("a", "b"), "", 1),
        (row("<th colspan=2>Prices</th>", "e") + row("a", "b", "f") + row("c", "d", "g"), "", 0),
        (row("<td colspan=2><img src=i.png></td>") + row("a", "b") + row("c", "d"), "", 0),
    ],
)
def test_first_row_as_caption(rows: str, caption: str, header_rows: int) -> None:
    """A first row with one cell of text across all columns, above at least two rows, is the caption."""
    found = made(f"<table>{rows}</table>")
    assert plain((Paragraph(found.caption),)) == caption
    assert found.header_rows == header_rows
    assert len(found.rows) == (2 if caption else rows.count("<tr>"))


# ---------------------------------------------------------------------- layout
@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<table></table>", []),
        (f"<table>{row('', '')}</table>", []),
        (f"<table><caption>Nothing</caption>{row('')}</table>", ["Nothing"]),
        (f"<table>{row('alone')}</table>", ["alone"]),
        (f"<table>{row('a', 'b')}</table>", ["a", "b"]),
        (f"<table>{row('a')}{row('b')}{row('c')}</table>", ["a", "b", "c"]),
        (f"<table>{row('a', '<h3>b</h3>')}{row('c', 'd')}</table>", ["a", "b", "c", "d"]),
        (f"<table>{row('a', 'b')}{row('c', 'long ' * 200)}</table>", ["a", "b", "c", ("long " * 200).strip()]),
        (
            f"<table>{row('a', 'b', tag='th')}{row('c', 'long ' * 800)}</table>",
            ["a", "b", "c", ("long " * 800).strip()],
        ),
        (f"<table>{row('•', 'first')}{row('(ii)', 'second<p>more</p>')}</table>", ["• first", "(ii) second", "more"]),
    ],
)
def test_layout(html: str, expected: list[str]) -> None:
    """A layout table is replaced by the content of its cells."""
    items = items_of(html)
    assert not any(isinstance(item, Table) for item in items)
    assert [plain((item,)) for item in items] == expected


@pytest.mark.parametrize(
    "html",
    [
        f"<table>{row('a', 'b', tag='th')}</table>",
        f"<table>{row('a', 'b', tag='th')}{row('<h3>c</h3>', 'd')}</table>",
        f"<table>{row('a', 'b', tag='th')}{row('c', 'long ' * 500)}</table>",
        f"<table>{row('Name', tag='th')}{row('Ida')}{row('Ole')}</table>",
        f"<table role=grid>{row('a', 'b')}{row('c', '<blockquote>d</blockquote>')}</table>",
        f"<table>{row('1', 'first')}{row('2', 'second')}</table>",
    ],
)
def test_data(html: str) -> None:
    """Tables with rows and columns, or with headers, are data."""
    assert any(isinstance(item, Table) for item in items_of(html))


def test_nested_tables() -> None:
    """A data table stays in its cell up to a limit. Beyond it, the outer table is layout."""
    html = f"<table>{row('a', 'b', tag='th')}{row('c', 'd')}</table>"
    for _ in range(5):
        html = f"<table>{row('a', 'b', tag='th')}{row('c', f'<td>{html}</td>')}</table>"
    items = items_of(html)
    assert plain(items[:3]) == "a/b/c"
    depth = 0
    while isinstance(items[-1], Table):
        depth += 1
        items = items[-1].rows[-1][-1].items
    assert depth == 4


# ---------------------------------------------------------------------- what Markdown can hold
def test_blocks_in_a_simple_cell() -> None:
    """Paragraphs, headings, images and short code become lines of one paragraph."""
    cells = row("<p>one</p><p>two</p>", "<h3>x</h3><img src=i.png><pre>y</pre>")
    found = made(f"<table>{row('a', 'b', tag='th')}{cells}</table>")
    assert found.simple
    assert found.rows[1][0].items == (Paragraph((Text("one"), LineBreak(), Text("two"))),)
    assert found.rows[1][1].items == (
        Paragraph((Text("x"), LineBreak(), Image("https://example.org/i.png"), LineBreak(), Code("y"))),
    )


# ---------------------------------------------------------------------- cells
NOTE = "<p>Behind it<ol><li id=fn1>note</ol>"


def written(html: str, tables: Tables = "html") -> str:
    return markdown(items_of(html), tables=tables)


@pytest.mark.parametrize(
    ("cell", "as_html", "as_line"),
    [
        ("k", "k", "k"),
        ("<p>p<p>q", "<p>p</p><p>q</p>", "p q"),
        ("<h3>t</h3>u", "<h3>t</h3><p>u</p>", "t u"),
        ("<pre>a\nb</pre>", "<pre><code>a\nb</code></pre>", "`a b`"),
        ("<ul><li>i<li>j</ul>", "<ul><li>i</li><li>j</li></ul>", "i j"),
        ("<dl><dt>T<dd>D</dl>", "<dl><dt>T</dt><dd>D</dd></dl>", "T D"),
        ("<math display=block><mi>x</mi></math>", "$$x$$", "$x$"),
        ("<blockquote>q</blockquote>", "<blockquote><p>q</p></blockquote>", "q"),
        ("<hr>", "<hr>", ""),
        ("a<br>b", "a<br>b", "a<br>b"),
        ("<ruby>漢<rt>kan</rt></ruby>", "<ruby>漢<rt>kan</rt></ruby>", "漢(kan)"),
        (
            "<a href=/l><img src=/i.png alt=I></a>",
            '<a href="https://example.org/l"><img src="https://example.org/i.png" alt="I"></a>',
            "[![I](https://example.org/i.png)](https://example.org/l)",
        ),
        ("a<sup><a href=#fn1>1</a></sup>", "a[^1]", "a[^1]"),
    ],
)
def test_what_is_in_a_cell(cell: str, as_html: str, as_line: str) -> None:
    """HTML loses nothing. In a simple table, the content is one line, repeated in each row and column of the span."""
    table = f"<table><tr><th>a<th>b<th>c<tr><td rowspan=3>{cell}<td>x<td>y<tr><td>1<td>2<tr><td colspan=2>3</table>"

    kept, lined = written(table + NOTE), written(table + NOTE, tables="linear")

    assert f'<tr><td rowspan="3">{as_html}</td><td>x</td><td>y</td></tr>' in kept
    assert '<tr><td colspan="2">3</td></tr>' in kept
    assert lined.startswith(
        f"| a | b | c |\n| --- | --- | --- |\n| {as_line} | x | y |\n| {as_line} | 1 | 2 |\n| {as_line} | 3 | 3 |\n"
    )


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (
            "<figure><img src=http://x.test/a.png><figcaption>An apple</figcaption></figure>",
            "![](http://x.test/a.png) An apple",
        ),
        ("<video src=http://x.test/a.mp4></video>", "[a.mp4](http://x.test/a.mp4)"),
        ("<audio src=http://x.test/a.mp3 title=Song></audio>", "[Song](http://x.test/a.mp3)"),
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "a b 1 2"),
    ],
)
def test_pictures_players_and_tables_within_a_cell_stand_in_its_line(cell: str, expected: str) -> None:
    """Captions are separated from them, players become links, and the cells of a table follow each other."""
    table = f"<table><tr><th>a<th>b<th>c<tr><td rowspan=2>1<td>{cell}<td>y<tr><td>1<td>2</table>"
    assert f"\n| 1 | {expected} | y |\n" in written(table, tables="linear")


# ---------------------------------------------------------------------- too much
@pytest.mark.parametrize(
    ("rows", "longest", "others", "found"),
    [(15, 60, 1, False), (20, 60, 1, True), (100, 20, 4, True), (100, 20, 6, False)],
)
def test_short_rows_are_padded_unless_that_adds_far_more_cells(
    rows: int, longest: int, others: int, found: bool
) -> None:
    """A thousand cells are no harm, and neither are four for each that there is."""
    assert is_mostly_padding(["x" * longest, *["x" * others] * (rows - 1)]) == found


def test_span_bombs() -> None:
    """Spans cover a limited number of slots in total. Further cells span one slot, and no cell is lost."""
    cells = "".join(f"<td rowspan=65534 colspan=1000>{number}</td>" for number in range(100))
    found = items_of(f"<table><tr><th>a</th><th>b</th></tr>{f'<tr>{cells}</tr>' * 100}</table>")[0]
    assert isinstance(found, Table)
    assert sum(len(row) for row in found.rows) == 2 + 100 * 100
    assert 10_100 < sum(cell.rowspan * cell.colspan for row in found.rows for cell in row) < 10_300


_tag = st.sampled_from("table tr td th thead tbody tfoot caption b p h3 img col form".split())
_span = st.sampled_from(["", " rowspan=2", " colspan=3", " rowspan=0", " colspan=1000", " rowspan=65534"])
_words = st.sampled_from(["", "word ", "two words "])


@given(st.lists(st.tuples(_tag, _span, _words, st.booleans()), max_size=40))
def test_any_markup(parts: list[tuple[str, str, str, bool]]) -> None:
    """For any markup, nothing raises, no word is lost or duplicated, and rows fit the grid."""
    html = "".join(f"<{tag}{span}>{words}" + (f"</{tag}>" if closed else "") for tag, span, words, closed in parts)
    element = parse(f"<table><tr><td>first {html}</table>")
    assert len(plain_text(content_list(element)).split()) == len(" ".join(map(str, element.itertext())).split())


_block = st.sampled_from("pre ul li blockquote div dl dt dd figure figcaption code a br p".split())
_attributes = st.sampled_from(["", " href='/x' title='a\n\nb'", " src=/i.png alt='a | b\n\nc'", " class=highlight"])
_marks = st.sampled_from(["", "a|b ", "$5 $6", "*", "&lt;b>", "`", "two\n\nlines"])


@given(st.lists(st.tuples(st.one_of(_tag, _block), st.one_of(_span, _attributes), _marks), max_size=30))
def test_a_renderer_finds_every_table(parts: list[tuple[str, str, str]]) -> None:
    """For any cells, rendered Markdown has the same tables as the content list."""
    html = "<table><tr><td>first" + "".join(f"<{tag}{attributes}>{text}" for tag, attributes, text in parts)
    content = content_list(parse(html), "https://example.org/")
    rendered = Rendered(markdown(content))
    assert len(rendered.tables) == sum(tables_in(item) for item in content)
    assert not [text for text in rendered.tree.itertext() if "<t" in text or "</t" in text]


def tables_in(item: Item) -> int:
    """Return the number of outermost tables in an item."""
    if isinstance(item, List):
        return sum(tables_in(inner) for entry in item.items for inner in entry.items)
    if isinstance(item, Quote):
        return sum(map(tables_in, item.items))
    return int(isinstance(item, Table))
