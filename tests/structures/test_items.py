"""Every type of item is handled wherever types are distinguished."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, get_args

import pytest

from scrapy_dripper.output.chunks import chunks, split_item
from scrapy_dripper.output.content_json import from_json, to_json
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.output.urls import outlinks
from scrapy_dripper.structures.items import (
    Audio,
    Card,
    Cell,
    CodeBlock,
    Footnote,
    Footnotes,
    Formula,
    Image,
    Item,
    Items,
    Link,
    List,
    ListItem,
    Paragraph,
    Post,
    Quote,
    Runs,
    Table,
    Text,
    ThematicBreak,
    Title,
    Video,
    inside,
    only,
    plain_text,
)
from scrapy_dripper.structures.tables import linear, table_html

URL = "https://example.org/a"


def linked(text: str) -> Runs:
    return (Link(f"{URL}#{text}", (Text(text),)),)


WORD = Paragraph(linked("word"))
EXAMPLES: dict[type, Item] = {
    Title: Title(2, (Text("word"),)),
    Paragraph: WORD,
    CodeBlock: CodeBlock("word"),
    Formula: Formula("word", "annotation", display=True),
    Table: Table(((Cell((WORD,)), Cell(())),), caption=linked("caption")),
    List: List("definition", (ListItem((WORD,), (linked("term"),)),)),
    Image: Image(URL, caption=linked("caption")),
    Video: Video(URL, title="word", caption=linked("caption")),
    Audio: Audio(URL, title="word", caption=linked("caption")),
    Quote: Quote((WORD,), caption=linked("caption")),
    ThematicBreak: ThematicBreak(),
    Post: Post(1, "word", "2024-05-06"),
    Card: Card("word", URL, "more words", "5 €"),
    Footnotes: Footnotes((Footnote("1", (WORD,)),)),
}
"""An item of each type; what it holds has a link each."""


def test_there_is_an_example_of_each_type() -> None:
    """A new type fails here first. The docstring of ``items`` lists the places that must handle it."""
    assert set(EXAMPLES) == set(get_args(Item))


def in_a_table(item: Item) -> Table:
    return Table(((Cell((item,)), Cell(())),), simple=False)


HANDLERS: dict[str, Callable[[Item], Any]] = {
    "inside": inside,
    "text": lambda item: plain_text((item,)),
    "Markdown": lambda item: markdown((item,)),
    "links": lambda item: outlinks((item,)),
    "chunks": lambda item: chunks((item,), URL, size=50),
    "parts": lambda item: split_item(item, lambda _items: False),
    "HTML": lambda item: table_html(in_a_table(item)),
    "a line of a cell": lambda item: linear(in_a_table(item)),
    "no images": lambda item: only((item,), [kind.type for kind in EXAMPLES if kind is not Image]),
    "JSON": lambda item: from_json(json.loads(json.dumps(to_json((item,))))),
}


@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_each_type_is_handled(kind: type, handler: str) -> None:
    HANDLERS[handler](EXAMPLES[kind])


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_no_word_is_lost(kind: type) -> None:
    """Every form has the text of an item, and the links of all that it contains."""
    item = EXAMPLES[kind]
    if kind in (Image, ThematicBreak, Post, Card):
        return
    assert "word" in markdown((item,))
    assert "word" in table_html(in_a_table(item))
    words = [name for name in ("caption", "term", "word") if f"#{name}" in json.dumps(to_json((item,)))]
    assert [link.text for link in outlinks((item,))] == words


def test_inside_has_terms_and_captions() -> None:
    def texts(items: Items) -> tuple[str, ...]:
        return tuple(plain_text((item,)) for item in items)

    found = {kind: texts(tuple(inside(item))) for kind, item in EXAMPLES.items()}
    assert found == {
        **dict.fromkeys((Title, Paragraph, CodeBlock, Formula, ThematicBreak, Post, Card), ()),
        **dict.fromkeys((Image, Video, Audio), ("caption",)),
        **dict.fromkeys((Table, Quote), ("caption", "word")),
        List: ("term", "word"),
        Footnotes: ("word",),
    }
