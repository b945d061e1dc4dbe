"""The influence of a group of features is the change of a block's probability without the group."""

from __future__ import annotations

from scrapy_dripper import Config, Document
from scrapy_dripper.engines.tagger.engine import Tagger
from scrapy_dripper.engines.tagger.features import features
from scrapy_dripper.engines.tagger.model import GROUPS, SAME_FOR_ALL, group_of
from scrapy_dripper.page import Page, read

PAGE = """<title>Tides</title><nav><a href=/>Home</a></nav><nav><a href=/a>About the harbour</a></nav>
<article><h1>Tides</h1><p>Tides are the rise and fall of sea levels, caused by the Moon and, less so, by the Sun.</p>
<p>Most coasts see two high waters and two low waters in a little more than a day, as everybody there knows.</p>
<p>The range between them is largest twice a month, when the Sun and the Moon pull along one line.</p></article>"""


def page_of(html: str) -> Page:
    return read(Document(html), Config())


def test_every_feature_is_in_a_group_and_no_group_is_empty() -> None:
    names = features([page_of(PAGE)]).names

    groups = {name: group_of(name) for name in names}

    assert set(groups.values()) == {*GROUPS, SAME_FOR_ALL}
    assert {name for name, group in groups.items() if group == SAME_FOR_ALL} == {
        name for name in names if name.startswith(("page_", "about_"))
    }
    assert (groups["words"], groups["words:shop"], groups["words+1"]) == (GROUPS[0], "wording", "blocks around")


def test_what_all_blocks_share_has_no_influence(tagger: Tagger) -> None:
    """On a page with a single block, the block itself is typical."""
    found = tagger.influences(page_of("<p>A page of one block, which is all there is to it and to say of it.</p>"))

    assert set(found) == set(GROUPS)
    assert all(change.tolist() == [0.0] for change in found.values())


def test_links_speak_against_a_menu_and_not_against_a_paragraph(tagger: Tagger) -> None:
    page = page_of(PAGE)

    links = tagger.influences(page)["links"]

    menu, text = 0, len(page.blocks) - 2
    assert links[menu] < 0
    assert links[text] >= links[menu]
