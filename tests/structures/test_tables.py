"""Tables: what their cells hold, and limits. tests/structured has their grids, headers and layouts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.output.markdown import Tables, markdown
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures.items import (
    Item,
    Items,
    List,
    Quote,
    Table,
    plain_text,
)
from tests.structured.measures import Rendered


def items_of(html: str) -> Items:
    return content_list(parse(html), "https://example.org/")


def row(*cells: str, tag: str = "td") -> str:
    return "<tr>" + "".join(cell if cell.startswith("<t") else f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


@pytest.mark.parametrize(("words", "is_data"), [(500, True), (800, False)])
def test_cells_of_data_are_no_long_texts(words: int, is_data: bool) -> None:
    """A table with longer ones only arranges them."""
    found = items_of(f"<table>{row('a', 'b', tag='th')}{row('c', 'long ' * words)}</table>")
    assert any(isinstance(item, Table) for item in found) == is_data
    assert "a b c long".split() == plain_text(found).split()[:4]


def test_a_row_with_nothing_but_a_rule_is_a_line_of_the_table() -> None:
    """A rule between the texts that a table arranges stays."""
    rule = "<tr><td colspan=2><hr>"
    data = row("Wood", "Weight") + rule + row("Ash", "0.7") + row("Elm", "0.6")
    assert written(f"<table>{data}</table>") == written(f"<table>{data.replace(rule, '')}</table>")
    assert written(f"<table>{row('<h2>Ash</h2>')}{rule}{row('<h2>Elm</h2>')}</table>") == "## Ash\n\n---\n\n## Elm"


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
