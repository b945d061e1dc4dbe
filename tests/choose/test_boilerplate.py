"""What stands within a text but is not of it is left out: controls, signatures, and texts for no scripts."""

from __future__ import annotations

import numpy as np
import pytest

from scrapy_dripper import Config, Document, Extractor
from scrapy_dripper.choose import Labels, ScoredPage, without_notes
from scrapy_dripper.choose.boilerplate import without_boilerplate
from scrapy_dripper.page import read
from scrapy_dripper.testing import FakeEngine

TEXT = "The beavers of the upper valley have built a third dam this spring, and the meadow behind it is a lake now."
MORE = "Two families had to move their sheep, and the road to the mill is under water for a hundred steps."


def kept(body: str, page: str = "https://example.org/dam") -> list[str]:
    """Return the lines that are written of a page on which an engine without probabilities takes all for main."""
    [extraction] = Extractor(engine=FakeEngine(main=lambda text: True)).extract([Document(body, url=page)])
    return (extraction.text or "").split("\n")


def around(markup: str) -> str:
    return f"<h1>Dams</h1><p>{TEXT}</p>{markup}<p>{MORE}</p>"


@pytest.mark.parametrize(
    "markup",
    [
        "<button>Print</button>",
        "<button>2x</button>",
        "<p><a href=/print>Print this page</a></p>",
        "<p><a href='#r'>Jump to Recipe</a></p>",
        "<p><a href='?reply=1' class=comment-reply-link>Reply</a></p>",
        "<p>Share this:</p>",
        "<p>You must be logged in to post a comment.</p>",
        "<div>Click to expand...</div>",
        "<div>Was this page helpful?</div>",
        "<p>War dieser Artikel hilfreich?</p>",
        "<p>Cette page vous a-t-elle été utile ?</p>",
        "<p>Font size: small | normal | larger</p>",
        "<p>Schriftgröße: <a href=#>kleiner</a> <a href=#>größer</a></p>",
        "<p>Tags: <a href=/t/dams>dams</a>, <a href=/t/lakes>lakes</a></p>",
        "<ul><li>Tags:<li><a href=/t/dams>dams</a><li><a href=/t/lakes>lakes</a></ul>",
        "<p><a href=/druck>Drucken</a></p>",
        "<p>Schlagwörter: <a href=/t/biber>Biber</a></p>",
        "<p><a href=/r>Répondre</a></p>",
        "<p><a href=/r>Responder</a></p>",
        "<p><a href=/r>Rispondi</a></p>",
        "<button>Stampa</button>",
        "<button>Afdrukken</button>",
        "<button>Drukuj</button>",
        "<button>Печать</button>",
        "<button>印刷</button>",
        "<button>打印</button>",
        "<button>인쇄</button>",
        "<button>Show more</button>",
        "<p><a href=/dams/3>View details</a></p>",
        "<button>Mehr anzeigen</button>",
        "<div role=treeitem aria-expanded=true><button>Reply</button></div>",
        "<button data-toggle=collapse data-target='#r1'>Reply</button>",
        "<button>Voir plus</button>",
        "<button>Ver más</button>",
        "<button>展开全文</button>",
        "<figure><img src=dam.jpg><button>이미지 확대보기</button></figure>",
    ],
)
def test_a_control_is_left_out(markup: str) -> None:
    assert kept(around(markup)) == ["Dams", TEXT, MORE]


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>Print</p>", "Print"),
        ("<p>Font size</p>", "Font size"),
        ("<button>Show details of the dam</button>", "Show details of the dam"),
        ("<p>Book now, or the boats are full.</p>", "Book now, or the boats are full."),
        ("<h2>Reply</h2><p>They will not.</p>", "Reply\nThey will not."),
        ("<p>Tags: a wooden board on each tree says who owns it.</p>", None),
        ("<p>Tags:</p>", "Tags:"),
        ("<p><a href=/print>Print shops of the valley</a></p>", None),
        ("<pre><code>copy</code></pre>", "copy"),
        ("<p>Share this water with your neighbours, says the old law of the valley.</p>", None),
    ],
)
def test_words_of_a_text_stay(markup: str, text: str | None) -> None:
    found = kept(around(markup))

    assert len(found) > 3
    assert text is None or text in "\n".join(found)


DAM = "<button>Build a dam</button>"


@pytest.mark.parametrize(
    ("markup", "p", "stays"),
    [
        (DAM, 0.2, False),
        (DAM, 0.5, True),
        ("<a role=button href=#>Build a dam</a>", 0.2, False),
        ("<button>Add to cart</button>", 0.9, False),
        ("<p><span role=button>Dams</span> rose.</p>", 0.2, True),
        ("<button>Who builds a dam?</button>", 0.2, True),
        ("<dl><dt><button>Dam</button></dt><dd>Of oak</dd></dl>", 0.2, True),
        ("<p><a class=button role=button href=/dam><b>Build</b> a dam</a></p>", 0.2, False),
        ("<button>Dams from $ 9</button>", 0.2, True),
        ("<div role=button><h3>A dam</h3><p>Of oak</p></div>", 0.2, True),
        ("<button aria-expanded=false><span>Who builds?</span></button><p>Ask the mayor.</p>", 0.2, True),
        ("<div role=tablist><button role=tab>Plan<button role=tab>Build</div>", 0.2, True),
        ("<ul><li><a role=button href=#plan>Plan<li><a role=button href=#pay>Pay</ul>", 0.2, True),
        ("<table><tr><th><div><a role=button>Dam</a></div><th>Bits<tr><td>A<td>8</table>", 0.2, True),
        ("<button class='accordion x'>Build a dam</button><div>Write to us.</div>", 0.2, True),
        ("<button data-bs-toggle=collapse>Build a dam</button><div>Call us.</div>", 0.2, True),
        ("<h3 class=accordion-header><button aria-controls=p>Build</button></h3><div id=p>Call us.</div>", 0.2, True),
        ("<pre><code>do <button>copy</button></code></pre>", 0.2, True),
        ("<p>Build a dam</p>", 0.2, True),
    ],
)
def test_a_button_is_not_kept_by_what_is_around_it(markup: str, p: float, stays: bool) -> None:
    """A card or a list is kept as a whole, but not those of its buttons that the model takes for no content."""
    page = read(Document(around(markup), "https://example.org/dam"), Config())
    p_of = np.array([0.9 if text in ("Dams", TEXT, MORE) else p for text in page.blocks.text], dtype=np.float32)
    main = np.ones(len(p_of), dtype=np.bool_)

    assert without_boilerplate(ScoredPage(page, Labels(p_of)), main).all() == stays


def post(text: str, signature: str, name: str) -> str:
    return f"<div class=post><p>{text}</p><div class='{name}'>{signature}</div></div>"


@pytest.mark.parametrize("name", ["signature", "sig", "post-signature", "message-signature", "signature sig12"])
def test_the_signature_of_a_post_is_left_out(name: str) -> None:
    found = kept("<h1>Dams?</h1>" + post(TEXT, "Keep your feet dry.", name) + post(MORE, "Gone fishing.", name))

    assert found == ["Dams?", TEXT, MORE]


@pytest.mark.parametrize(
    "body",
    [
        f"<h1>Dams</h1><p>{TEXT}</p><p class=signature>Ada Example, editor</p>",
        f"<h1>Dams</h1>{'<dl><dt class=sig>build(height)<dd>Builds a dam.</dl>' * 2}",
        f"<h1>Dams</h1>{'<div class=signature><code>build(height)</code></div><p>Builds a dam.</p>' * 2}",
        "<h1>Dams</h1>" + post(TEXT, MORE * 4, "signature") * 2,
    ],
)
def test_other_things_with_such_a_name_stay(body: str) -> None:
    found = "\n".join(kept(body))

    assert "editor" in found or "build(height)" in found or MORE in found


FORUM_POST = "<div class=post><b class=author>{}</b><p class=date>6 May 2024</p><p>{}</p>{}</div>"


def left_out(body: str, page_type: str = "forum") -> list[str]:
    """Return the lines of a thread that are left out, although the model is sure of all."""
    page = read(Document(body, "https://example.org/"), Config())
    p = np.full(len(page.blocks), 0.9, dtype=np.float32)
    scored = ScoredPage(page, Labels(p, page_types={page_type: 1.0}))
    main = without_boilerplate(scored, without_notes(scored, p > 0))
    return [text for text, stays in zip(page.blocks.text, main, strict=True) if not stays]


@pytest.mark.parametrize(
    "note",
    [
        f"<div class=signature>{MORE * 4}</div>",
        f"<div data-role=memberSignature>{MORE}</div>",
        *(f"<div class={name}>{MORE}</div>" for name in ("ipsEntry__signature", "ksig", "signature-content-wrapper")),
        "<div class=message-lastEdit>Last edited: 3 May</div>",
        "<div class=member-signature>public void build(int height)</div>",
    ],
)
def test_what_a_forum_adds_to_posts_is_left_out(note: str) -> None:
    """On other pages, things with these names are content, such as what methods are called with."""
    thread = FORUM_POST.format("Ada", TEXT * 4, note) + FORUM_POST.format("Bo", MORE, "")
    assert len(left_out(thread)) == 1
    assert not left_out(thread, "article")


THREAD = FORUM_POST.format("Ada", TEXT, "") + FORUM_POST.format("Bo", MORE, "")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"<div id=announcement205><p>Closed on Monday.</p></div>{THREAD}", ["Closed on Monday."]),
        # around the thread, a post of a thread about it, a heading, and without posts
        (f"<div id=announcement>{THREAD}</div>", []),
        (THREAD.replace("class=post", "class='post announcement'"), []),
        (THREAD.replace("class=post", "class='post lastedit'"), []),
        (f"<h1 id=announcements>News</h1><div id=signature><h2>Dams</h2><p>{TEXT}</p></div>{THREAD}", []),
        (f"<div class=announcement><p>{TEXT}</p></div>", []),
        # the headline, a post, and all that a post says
        (f"<title>Closed on Monday</title><div class=announcement><h1>Closed on Monday</h1></div>{THREAD}", []),
        (f"<div class=announcement><b class=author>Cy</b><p>We close on Monday.</p></div>{THREAD}", []),
        (
            "".join(FORUM_POST.format(name, "", f"<div class=edit-info>{MORE}</div>") for name in ("Ada", "Bo", "Cy")),
            [],
        ),
    ],
)
def test_announcements_of_a_forum(body: str, expected: list[str]) -> None:
    assert left_out(body) == expected


@pytest.mark.parametrize(
    "text",
    [
        "You need to enable JavaScript to run this app.",
        "Bitte aktivieren Sie JavaScript, um diese Seite zu sehen.",
        "本サイトを表示するには JavaScript を有効にしてください。",
    ],
)
@pytest.mark.parametrize("rest", [f"<p>{TEXT}</p>", f"<p>{TEXT}</p><p>{MORE}</p>"])
def test_what_is_for_no_scripts_is_left_out_after_they_have_run(text: str, rest: str) -> None:
    html = f"<html><body><noscript>{text}</noscript><div id=root><h1>Dams</h1>{rest}</div></body></html>"
    [page] = Extractor().extract([Document(html, url="https://example.org/dam")])

    assert page.fallback_reason is None
    assert (page.text or "").startswith(f"Dams\n{TEXT}")


def test_no_later_step_brings_back_what_is_for_no_scripts() -> None:
    """Not even the one that keeps figures whole."""
    copy = "<noscript>\n&lt;img src='/200/dam.jpg' srcset='/400/dam.jpg 2x' alt='The dam in spring'&gt;\n</noscript>"
    figure = (
        f"<figure><img src=/610/dam.jpg alt='The dam in spring'>{copy}<figcaption>The third dam</figcaption></figure>"
    )
    html = f"<article><h1>Dams</h1><p>{TEXT}</p>{figure}<p>{MORE}</p>{figure}<p>{TEXT} {MORE}</p></article>"
    [page] = Extractor().extract([Document(html, url="https://example.org/dam")])

    assert "The third dam" in (page.text or "")
    assert "srcset" not in (page.text or "")


def test_a_text_that_is_only_for_no_scripts_stays() -> None:
    [page] = Extractor().extract([Document(f"<noscript><h1>Dams</h1><p>{TEXT}</p><p>{MORE}</p></noscript>")])

    assert MORE in (page.text or "")
