"""Posts and links that a text embeds stay in it, although an engine takes them for teasers."""

from __future__ import annotations

import numpy as np
import pytest

from scrapy_dripper.page.vocabulary import NameIndex
from scrapy_dripper.structures.embeds import names, with_embeds
from scrapy_dripper.testing import page as page_of

TEXT = "The beavers of the upper valley have built a third dam this spring, and the meadow behind it is a lake now."
MORE = "Two families had to move their sheep, and the road to the mill is under water for a hundred steps."
SAID = "we counted nine beavers before breakfast in March"


def added(body: str) -> str:
    """Return the text that becomes main on a page of which an engine only takes the two paragraphs for main."""
    page = page_of(body, "https://example.org/dam")
    main = np.array([text in (TEXT, MORE) for text in page.blocks.text])
    labels = with_embeds(page, main, NameIndex(page.tree.names).matching(names))
    assert not (main & ~labels).any()
    return page.text_of(labels & ~main)


def in_text(markup: str) -> str:
    return added(f"<article><h1>Dams</h1><div><p>{TEXT}</p>{markup}<p>{MORE}</p></div></article>")


POSTS = [
    # Substack
    f"<div class=tweet ><a class=tweet-link-top href=/s/1><div class=tweet-header><span>Ann</span></div>"
    f"<div class=tweet-text>{SAID}</div></a><div class=tweet-ufi><span>12</span> Retweets</div></div>",
    f"<article class=tweet><header>Ann</header><p>{SAID}</p><footer class=tweet-actions>340 Likes</footer></article>",
    f"<div class=social-embed><p>{SAID}</p><div class=stats>12 replies</div></div>",
    f"<section class='static-tweet dark'><div>Ann</div><div>{SAID}</div></section>",
    f"<div class='bluesky-embed'><p>{SAID}</p></div>",
]


@pytest.mark.parametrize("markup", POSTS)
def test_a_post_stays_in_the_text(markup: str) -> None:
    """Also at its end. What counts the readers of the post is left out."""
    for text in (in_text(markup), added(f"<div><h1>Dams</h1><p>{TEXT}</p>{markup}</div>"), in_text(2 * markup)):
        assert SAID in text
        assert not any(word in text for word in ("Retweets", "Likes", "replies"))


LINKS = [
    # Ghost
    "<figure class=kg-bookmark-card><a class=kg-bookmark-container href=/b><div class=kg-bookmark-content>"
    f"<div class=title>Nine beavers</div><div class=kg-bookmark-description>{SAID}</div></div></a></figure>",
    # Substack
    f"<div class=embedded-post-wrap><a href=/b><div>Nine beavers</div><div>{SAID}</div></a></div>",
    f"<div class=graf--mixtapeEmbed><a href=/b><strong>Nine beavers</strong><br><em>{SAID}</em></a></div>",
    f"<aside class=onebox><h3><a href=/b>Nine beavers</a></h3><p>{SAID}</p></aside>",
    # An export of Notion
    "<figure id=1f><a href=/b class='bookmark source'><div class=bookmark-info><div class=bookmark-text><div "
    f"class=bookmark-title>Nine beavers</div><div class=bookmark-description>{SAID}</div></div><div "
    "class=bookmark-href><img src=b.ico class='icon bookmark-icon'>https://dam.example.org/b</div></div></a></figure>",
    f"<div class='internal-blogcard'><a href=/b><div>Nine beavers</div><div>{SAID}</div></a></div>",
]


@pytest.mark.parametrize("markup", LINKS)
def test_a_card_of_a_link_stays_in_the_text(markup: str) -> None:
    text = in_text(markup)
    assert "Nine beavers" in text
    assert SAID in text


@pytest.mark.parametrize("markup", [*POSTS, *LINKS])
@pytest.mark.parametrize("around", ["<h2>Elsewhere</h2>{}", "<div><h2>More</h2>{}</div>", "<aside>{}{}</aside>"])
def test_what_no_text_embeds_is_left_out(markup: str, around: str) -> None:
    assert added(f"<h1>Dams</h1><p>{TEXT}</p><p>{MORE}</p>{around.format(markup, markup)}") == ""


def test_an_embed_has_the_length_of_a_post() -> None:
    """A shorter one is a button, and a longer one a part of the page."""
    sizes = {size: in_text(f"<div class=tweet>{'beaver ' * size}</div>").count("beaver") for size in (7, 8, 300, 301)}
    assert sizes == {7: 0, 8: 8, 300: 300, 301: 0}
    bookmark = "<a href=/b class='bookmark source'><div>Nine beavers</div><div>{}</div></a>"
    assert "Nine beavers" in in_text(bookmark.format("https://dam.example.org/b"))
    assert in_text(bookmark.format("Save")) == ""


def test_cards_at_the_end_of_a_text_lead_elsewhere() -> None:
    assert added(f"<div><h1>Dams</h1><p>{TEXT}</p><p>{MORE}</p>{LINKS[0]}</div>") == ""
    assert SAID in in_text(LINKS[0] + 2 * "<p>Ad</p>")
    assert in_text(LINKS[0] + 3 * "<p>Ad</p>") == ""
