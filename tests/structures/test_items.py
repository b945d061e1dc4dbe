"""Every type of item is handled wherever types are distinguished."""

from __future__ import annotations

import json
from typing import get_args

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
    only,
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


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_each_type_is_handled_and_loses_no_word(kind: type) -> None:
    """Every form has the text of an item, and the links of all that it contains."""
    item = EXAMPLES[kind]
    has_words = kind not in (Image, ThematicBreak, Post, Card)
    links = [name for name in ("caption", "term", "word") if f"#{name}" in json.dumps(to_json((item,)))]

    written = [markdown((item,)), table_html(in_a_table(item)), *(one.markdown for one in chunks((item,), size=50))]
    found = [link.text for link in outlinks((item,))]

    assert from_json(json.loads(json.dumps(to_json((item,))))) == (item,)
    assert split_item(item, lambda _items: False)
    assert linear(in_a_table(item)).rows
    assert bool(only((item,), [one.type for one in EXAMPLES if one is not Image])) == (kind not in (Image, Post))
    if has_words:
        assert all("word" in one for one in written)
        assert found == links
