"""Chunks lose and move no text, keep to their size, and know their position."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.derived import with_derived
from scrapy_dripper.output.chunks import Chunk, chunks, counter, joined
from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures.items import (
    Cell,
    Code,
    CodeBlock,
    Deleted,
    Emphasis,
    Item,
    Items,
    LineBreak,
    Link,
    List,
    ListItem,
    Paragraph,
    Quote,
    Runs,
    Strong,
    Table,
    Text,
    Title,
)

TOKENIZER = Path(__file__).parents[1] / "engines/qwen3/prepared/tokenizer.json"

_letters = re.compile(r"(?:<[^>]*>)|([^\W_]+)").findall  # <strong>, where asterisks would be none
_numbered = re.compile(r"[tw]\d+x").findall

WORDS = st.lists(
    st.sampled_from("cat. sat, mat! (on) *the* 1. - # 猫坐在垫子上。 naïve? supercalifragilistic".split()), max_size=12
)
FORMATS = (Strong, Emphasis, Deleted, partial(Link, "/x"))
ENDS = st.sampled_from(["", ".", "。", "。」", "! ", " "])
LONG = st.builds(lambda word, times, end: word * times + end, st.sampled_from("很a"), st.integers(1, 500), ENDS)
TEXT = (WORDS.map(" ".join) | LONG).filter(bool).map(Text)
LINE = st.recursive(
    st.lists(TEXT | st.just(LineBreak()), min_size=1, max_size=4).map(tuple),
    lambda inner: st.lists(
        TEXT | st.builds(lambda wrap, runs: wrap(runs), st.sampled_from(FORMATS), inner), min_size=1, max_size=4
    ).map(tuple),
    max_leaves=12,
)
PARAGRAPH = st.builds(Paragraph, LINE)
INSIDE = st.lists(PARAGRAPH, min_size=1, max_size=3).map(tuple)
LISTS = st.builds(
    List,
    st.sampled_from(["unordered", "ordered"]),
    st.lists(st.builds(ListItem, INSIDE), min_size=1, max_size=6).map(tuple),
    st.integers(1, 12),
)
CODE = st.lists(st.sampled_from(["x = 1", "", "def f():", "    return 2"]), min_size=1, max_size=30).map(
    lambda lines: CodeBlock("\n".join(lines))
)
TITLE = st.builds(
    lambda level, word: Title(level, (Text(word),)), st.integers(1, 4), st.sampled_from(["One", "Two", "Six"])
)
ITEMS = st.lists(PARAGRAPH | LISTS | CODE | TITLE | st.builds(Quote, INSIDE), max_size=10).map(tuple)
SIZES = st.integers(80, 400)


@given(ITEMS, SIZES)
def test_together_they_hold_the_whole_once(items: Items, size: int) -> None:
    """Every letter occurs once and in order, whatever was cut."""
    whole = "".join(_letters(markdown(items, links="drop")))
    assert "".join(_letters(joined(chunks(items, size=size, write=partial(markdown, links="drop"))))) == whole


@given(ITEMS, SIZES, st.integers(0, 300))
def test_none_is_over_the_size(items: Items, size: int, overlap: int) -> None:
    """All items here can be cut."""
    for chunk in chunks(items, size=size, overlap=overlap):
        assert chunk.size == len(chunk.markdown) <= size
        assert chunk.overlap <= overlap


def numbered(kinds: str, *, every_word: bool = False) -> Items:
    """Return one item for each character: a title of that level for a digit, a paragraph for a letter."""
    return tuple(
        Title(int(kind), (Text(f"t{i}x"),))
        if kind.isdigit()
        else Paragraph((Text(f"w{i}x " * 14 if every_word else f"w{i}x " + "word " * 12),))
        for i, kind in enumerate(kinds)
    )


@given(LINE, st.integers(1, 80))
def test_the_smallest_pieces(line: Runs, size: int) -> None:
    """What exceeds a tiny size are a few characters, and nested calls are no more for a longer text."""
    for chunk in chunks((Paragraph(line),), size=size, write=partial(markdown, links="drop")):
        assert chunk.size <= size or sum(map(str.isalnum, re.sub("<[^>]*>", "", chunk.markdown))) <= 8


@given(st.text("1234pp", max_size=14), st.integers(70, 500))
def test_the_headings_are_those_above(kinds: str, size: int) -> None:
    """The path has the headings above all words of a chunk. For a chunk from one section, these are all its
    headings."""
    above: dict[str, tuple[str, ...]] = {}
    path: list[tuple[int, str]] = []
    for i, kind in enumerate(kinds):
        if kind.isdigit():
            path = [(level, text) for level, text in path if level < int(kind)] + [(int(kind), f"t{i}x")]
        above[f"{'t' if kind.isdigit() else 'w'}{i}x"] = tuple(text for _, text in path)
    seen: list[str] = []
    for chunk in chunks(numbered(kinds, every_word=True), size=size):
        words = _numbered(chunk.markdown)
        seen += [word for word in dict.fromkeys(words) if word not in seen[-1:]]
        paths = {above[word] for word in words if above[word]}
        assert all(path[: len(chunk.headings)] == chunk.headings for path in paths)
        if len(paths) == 1:
            assert chunk.headings == next(iter(paths))
    assert seen == list(above)


@pytest.mark.parametrize(
    ("kinds", "size", "expected"),
    [
        ("1p2p2p1p", 10_000, [("t0x w1x t2x w3x t4x w5x t6x w7x", "")]),
        ("1p2p2p1p", 200, [("t0x w1x t2x w3x", "t0x"), ("t4x w5x", "t0x t4x"), ("t6x w7x", "t6x")]),
        ("2pppp2p", 220, [("t0x w1x w2x w3x", "t0x"), ("w4x", "t0x"), ("t5x w6x", "t5x")]),
    ],
)
def test_small_sections_share_a_chunk_up_to_the_size(kinds: str, size: int, expected: list[tuple[str, str]]) -> None:
    """Sections beside and below the first one are added, but none above it, and none to one that continues: the rest of
    a section is only identified by its path.
    """
    found = chunks(numbered(kinds), size=size)
    assert [(" ".join(_numbered(chunk.markdown)), " ".join(chunk.headings)) for chunk in found] == expected


def test_where_a_chunk_is() -> None:
    """The URL has the id of the heading, of its section, or of the heading above."""
    html = """<h1 id="top">Guide</h1><p>Text of the guide goes on here, for a while.</p>
    <section id="set-up"><h2>Set up</h2><p>Text of it goes on here, for a while.</p></section>
    <h2>No id</h2><p>Text of that goes on here, for a while.</p>
    <h2><a id="größe"></a>Size</h2><p>More text goes on here, for a while.</p>"""
    found = chunks(content_list(parse(html)), "https://e.org/x?y=1#old", size=60)
    assert [(chunk.headings[-1], chunk.anchor, chunk.url) for chunk in found] == [
        ("Guide", "top", "https://e.org/x?y=1#top"),
        ("Set up", "set-up", "https://e.org/x?y=1#set-up"),
        ("No id", "top", "https://e.org/x?y=1#top"),
        ("Size", "größe", "https://e.org/x?y=1#gr%C3%B6%C3%9Fe"),
    ]
    assert chunks(content_list(parse(html)), size=50)[0].url == ""


def rows(table: Item, size: int) -> list[str]:
    """Return the chunks of one item."""
    return [chunk.markdown for chunk in chunks((table,), size=size)]


def cell(text: str, header: bool = False, rowspan: int = 1) -> Cell:
    """Return a cell of text."""
    return Cell((Paragraph((Text(text),)),), header=header, rowspan=rowspan)


def test_code_is_cut_between_lines_and_fenced_again() -> None:
    """It is only cut if it exceeds the size. Otherwise, it moves as a whole."""
    code = CodeBlock("\n".join(f"line_{i} = {i}" for i in range(10)), "python")
    assert rows(code, 70) == [
        "```python\nline_0 = 0\nline_1 = 1\nline_2 = 2\nline_3 = 3\nline_4 = 4\n```",
        "```python\nline_5 = 5\nline_6 = 6\nline_7 = 7\nline_8 = 8\nline_9 = 9\n```",
    ]
    found = chunks((Paragraph((Text("Words before it. " * 4),)), code), size=140)
    assert [chunk.markdown.count("line_") for chunk in found] == [0, 10]
    assert rows(CodeBlock("x" * 500), 100) == ["```\n" + "x" * 500 + "\n```"]  # a line of code is never cut


def test_a_table_has_its_header_again() -> None:
    """It is cut between rows, but never within the span of a cell."""
    head = (cell("Name", True), cell("Size", True))
    table = Table((head, *((cell(f"row {i}"), cell(str(i))) for i in range(6))), header_rows=1)
    found = rows(table, 80)
    assert len(found) > 1
    assert all(part.startswith("| Name | Size |\n| --- | --- |\n| row ") for part in found)
    assert re.findall(r"row \d", "".join(found)) == [f"row {i}" for i in range(6)]

    spanned = tuple(row for i in range(6) for row in ((cell(f"row {i}", rowspan=2), cell("a")), (cell(f"and {i}"),)))
    table = Table((head, *spanned), header_rows=1, simple=False)
    found = rows(replace(table, simple=False), 260)
    assert len(found) > 1
    for part in found:
        assert part.count("<th>Name</th>") == 1
        assert part.count("row ") == part.count("and ") == part.count('rowspan="2"')


def test_a_list_continues_its_numbers() -> None:
    """Each part begins with the number of its first entry. An entry that is too long is cut itself."""
    items = tuple(ListItem((Paragraph((Text(f"Item number {i}."),)),)) for i in range(3, 9))
    found = rows(List("ordered", items, 3), 60)
    assert found == [
        "3. Item number 3.\n4. Item number 4.\n5. Item number 5.",
        "6. Item number 6.\n7. Item number 7.\n8. Item number 8.",
    ]
    long = ListItem((Paragraph((Text("A first sentence. " * 4),)), CodeBlock("x = 1")))
    found = rows(List("unordered", (long,)), 60)
    assert found[0].startswith("- A first sentence.")
    assert "```\nx = 1\n```" in found[-1]


def test_paragraphs_are_cut_between_sentences() -> None:
    """Both halves keep formats and links. Languages without spaces have their own sentence ends."""
    text = "The first sentence is here. The second one is longer (so it is.) And the third?"
    found = rows(Paragraph((Strong((Link("/u", (Text(text),)),)),)), 60)
    assert found == [
        "**[The first sentence is here.](/u)**",
        "**[The second one is longer (so it is.)](/u)**",
        "**[And the third?](/u)**",
    ]
    assert all(part[-1] in "。！" for part in rows(Paragraph((Text("今天天气很好。我们去散步吧！" * 9),)), 50))
    assert rows(Paragraph((Text("很" * 60 + "。"),)), 50) == ["很" * 48, "很" * 12 + "。"]  # once cut without an end


def test_code_in_a_line_is_cut_between_words() -> None:
    """Inline code can be a whole log."""
    found = rows(Paragraph((Text("It says: "), Code("error at line 7 " * 20))), 100)
    assert all(len(part) <= 100 for part in found)
    assert all("`" in part for part in found[1:])
    assert "".join(found).count("error") == 20


def test_the_overlap_is_the_end_of_the_chunk_before() -> None:
    """It consists of whole sentences of the same section. After a heading, there is none."""
    sentences = [f"This is sentence number {i}." for i in range(8)]
    items = (
        Title(1, (Text("One"),)),
        Paragraph((Text(" ".join(sentences)),)),
        Title(1, (Text("Two"),)),
        *numbered("p"),
    )
    found = chunks(items, size=120, overlap=30)
    for before, chunk in pairwise(found):
        repeated = chunk.markdown[: chunk.overlap]
        assert before.markdown.endswith(repeated)
        assert bool(repeated) == (chunk.headings == ("One",))
    assert joined(found).count("sentence") == 8


def test_tokens_of_a_tokenizer() -> None:
    """Sizes are numbers of tokens, as counted by the tokenizer."""
    count = counter(str(TOKENIZER))
    items = numbered("1pp2pppp")
    found = chunks(items, size=60, measure=count)
    assert len(found) > 2
    assert all(chunk.size == count(chunk.markdown) <= 60 for chunk in found)
    assert counter(str(TOKENIZER.parent))("one two") == count("one two")


def test_an_invalid_tokenizer(tmp_path: Path) -> None:
    """The error is one sentence that names the setting and its valid values."""
    (tmp_path / "tokenizer.json").write_text("{}")
    for path in (tmp_path, tmp_path / "nothing.json"):
        with pytest.raises(ConfigError, match=r'DRIPPER_CHUNKS\["tokenizer"\] must be the path of'):
            counter(str(path))


def test_no_more_than_the_page_allows() -> None:
    """Many small chunks would take more space than the page, so there are fewer and larger ones. No text is lost."""
    items = tuple(item for i in range(12) for item in (*numbered("1"), Paragraph((Text(f"w{i}x " + "a b " * 500),))))

    def found(**options: Any) -> list[Chunk]:
        one = Extraction("https://e.org/" + "x" * 200, None, "", "m", "t", "all")
        document = Document("x" * 25_000, one.url)
        made = with_derived(one, items, document, Config(chunks_field="c", chunks={"size": 50}, **options)).chunks
        assert made is not None
        return [Chunk(**values) for values in made]

    assert len(found(limits={"output": 20})) > 400
    few = found(limits={"output": 2})
    assert 12 <= len(few) < 200
    assert sum(len(chunk.markdown) + len(chunk.url) for chunk in few) <= 2 * 25_000
    assert "".join(_letters(joined(few))) == "".join(_letters(markdown(items)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Paragraph((Text("a. " * 10_000),)),
        lambda: Paragraph((Text("a" * 50_000),)),
        lambda: Quote((Paragraph((Strong((Emphasis((Text("a" * 50_000),)),)),)),)),
        lambda: List("ordered", (ListItem((Paragraph((Link("/x", (Text("很" * 50_000 + "。"),)),)),)),)),
        lambda: CodeBlock("x\n" * 20_000),
        lambda: List("ordered", tuple(ListItem((Paragraph((Text("a"),)),)) for _ in range(3_000))),
        lambda: Table(tuple((cell("a"), cell("b")) for _ in range(2_000)), header_rows=1),
    ],
    ids=["sentences", "one word", "one word in formats", "one entry", "code", "list", "table"],
)
def test_long_items_take_n_log_n_time(make: Callable[[], Item]) -> None:
    """With these lengths, anything slower than n log n would exceed the time of a test run."""
    found = chunks((make(),), size=200, overlap=50)
    assert len(found) > 100
    assert all(chunk.size <= 200 for chunk in found)
