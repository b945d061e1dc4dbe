"""What stands beside a text, or is laid over the page, is left out, and so are the lines by which a reader turns the
pages of a manual, at its head and foot, and only there. The headline never goes with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scrapy_dripper import Document, Extractor
from scrapy_dripper.page.vocabulary import NameIndex
from scrapy_dripper.structures.asides import without_asides, without_dialogs
from scrapy_dripper.testing import page as page_of

TEXT = "The beavers of the upper valley have built a third dam this spring, and the meadow behind it is a lake now."
MORE = "Two families had to move their sheep, and the road to the mill is under water for a hundred steps."
HEAD = "<title>Dams in the valley</title><style>.layer, p.away{display:none}.open{display:block}</style>"
SOURCE = f"<h2>Republish</h2><p>Leave it as it is.</p><pre>{'&lt;p&gt;Dams&lt;/p&gt; ' * 300}</pre>"


def kept(body: str, head: str = HEAD) -> list[str]:
    """Return the texts that are left of a page of which a model takes everything for main."""
    page = page_of(f"<html><head>{head}</head><body>{body}</body></html>", "https://example.org/dam")
    matching = NameIndex(page.tree.names).matching
    labels = without_asides(page, without_dialogs(page, np.ones(len(page.blocks), dtype=np.bool_), matching), matching)
    return page.text_of(labels).split("\n")


def around(markup: str) -> str:
    return f"<article><h1>Dams in the valley</h1>{markup}<p>{TEXT}</p>{markup}<p>{MORE}</p></article>{markup}"


def asides() -> dict[str, list[str]]:
    """Return the asides of the file beside this one, which has one a line, by the kind in the comment above them."""
    found: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("asides.html").read_text(encoding="utf-8").splitlines():
        if line.startswith("<!--"):
            kind = found.setdefault(line.strip("<!-> "), [])
        else:
            kind.append(line.replace("SOURCE", SOURCE))
    return found


ASIDES = asides()
LONG = [
    f"<div class=consent><p>{'Your privacy matters to us. ' * 40}</p></div>",
    f"<div><form><input></form><div class=error><p>{'It was an error. ' * 15}</p></div></div>",
]


@pytest.mark.parametrize("markup", [one for some in (*ASIDES.values(), LONG) for one in some])
def test_an_aside_is_left_out(markup: str) -> None:
    assert kept(around(markup)) == ["Dams in the valley", TEXT, MORE]


@pytest.mark.parametrize(
    "markup",
    [
        # Dialogs that are open, and what no dialog hides.
        "<dialog open>The council meets in May.</dialog>",
        "<div class='modal open'>The council meets in May.</div>",
        "<div class=layer>The council meets in May.</div>",
        # Text about cookies, and long or missing evidence.
        "<p>We have used cookies to bait the beavers.</p>",
        f"<div class=consent><p>{'The council values your privacy. ' * 51}</p></div>",
        # Lines that go on, or do not lead elsewhere.
        "<p>Read also what <a href=/d>the mill</a> has to say about the water in the upper valley.</p>",
        "<p>Recommended by <a href=/c>the council of the upper valley</a></p>",
        "<p>Read more <a href=/c>about beavers and the law</a></p>",
        "<p>Unsubscribe from it as soon as you can.</p>",
        # Names of messages without a form near them.
        "<div><form></form><div><div><div><p class=success>It is a success.</div></div></div></div>",
        f"<div><form><input></form><div class=error><p>{'It was an error. ' * 24}</p></div></div>",
        # Names of invitations without a form in them, and a text in one.
        "<div class=newsletter><p>The council sends a letter every month.</p></div><form><input></form>",
        f"<div class=signup>{'<p>The council has a list of all who want to help.</p>' * 8}<form><input></form></div>",
        # What is sold by subscription: its form has no field for a text.
        "<div class='card subscription'><p>Coffee of it.</p><form action=/cart><input type=hidden></form></div>",
        # A quotation that says something new.
        "<blockquote class=pullquote>We have never seen so much water.</blockquote>",
    ],
)
def test_what_only_looks_like_one_stays(markup: str) -> None:
    before = page_of(markup).blocks.text
    assert kept(around(markup).replace(markup, "", 1)) == [
        "Dams in the valley", TEXT, *before, MORE, *before,
    ]  # fmt: skip


@pytest.mark.parametrize("others", [2, 3])
def test_a_page_about_cookies_stays(others: int) -> None:
    """Its subject is what it says outside of a panel."""
    about = "".join(
        f"<p>The cookie of page {i} is gone when you close the window, as all of them are.</p>" for i in range(others)
    )
    assert ("We use cookies." in kept(f"<p>We use cookies.</p><p>{TEXT}</p>{about}")) == (others > 2)


def test_the_headline_stays_and_so_does_a_page_with_nothing_else() -> None:
    everything = f"<div class=modal aria-hidden=true><h1>Dams in the valley</h1><p>{TEXT}</p></div>"
    assert kept(everything) == ["Dams in the valley", TEXT]
    assert kept(f"{everything}<p>{MORE}</p>") == ["Dams in the valley", MORE]


@pytest.mark.parametrize("kind", ASIDES)
def test_the_tagger_leaves_them_out(kind: str) -> None:
    """Also at the top of the text, where a lead would be."""
    [page] = Extractor().extract([Document(f"<html><head>{HEAD}</head><body>{around(ASIDES[kind][0])}</body></html>")])
    assert (page.text or "").split("\n") == ["Dams in the valley", TEXT, MORE]


# ---------------------------------------------------------------------- by which a reader turns the pages of a manual
LOOM = "The warp has to be measured, wound and tied to the loom, which takes most beginners a whole day of their week."
SHED = "The shuttle goes through the shed, the reed beats the new thread into its place, and the next shed opens."


TURNS = {
    "Texinfo": "<div class=header><p>Next: <a href=n rel=next>Weft</a>, Previous: <a href=p rel=prev>Loom</a>, Up: <a "
    "href=u rel=up>Top</a> &nbsp; [<a href=c rel=contents>Contents</a>][<a href=i rel=index>Index</a>]</p></div>",
    "Texinfo, old": "<p>Node:<a name=W>Warp</a>, Next:<a href=n>Weft</a>, Up:<a href=u>Top</a><hr>",
    "texi2html": "<table><tr><td>[<a href=p> &lt; </a>]<td>[<a href=u> Up </a>]<td>[<a href=c>Contents</a>]</table>",
    "LaTeX2HTML": "<a href=n><img alt=next src=n.png></a><br><b> Next:</b> <a href=n>The weft</a> <b> Up:</b> <a "
    "href=u>Weaving</a> <b> Previous:</b> <a href=p>The loom</a> <b> <a href=c>Contents</a></b><hr>",
    "TeX4ht": "<div class=crosslinks><p>[<a href=n>next</a>] [<a href=p>prev</a>] [<a href=t>prev-tail</a>]</p></div>",
    "DocBook": "<div class=navfooter><table><tr><td><a href=p>Předcházející</a><td><a href=n>Další</a><tr><td>The loom"
    "<td>The weft</table></div>",
    "DocBook, without classes": "<table><tr><td><a href=p>Prev</a><td><a href=i>Home</a><td><a href=n>Next</a><tr><td>"
    "The loom<td><a href=u>Up</a><td>The weft</table>",
    "indexes": "<p><a href=i>Main index</a> | <a href=v>Vector index</a> | <a href=f>Full index</a></p>",
    "by rel": "<p><a rel=prev href=p>The loom</a> <a rel=next href=n>The weft</a></p>",
    "list": "<ul><li><a href=p>Previous chapter</a><li><a href=n>Next chapter</a></ul>",
    "way back": "<p><a href=i>Back to the index</a></p>",
    "German": "<p><a href=p>Zurück</a> | <a href=i>Stichwortverzeichnis</a> | <a href=n>Weiter</a></p>",
    "French": "<p><a href=p>Précédent</a> | <a href=i>Sommaire</a> | <a href=n>Suivant</a></p>",
    "Spanish": "<p><a href=p>Anterior</a> | <a href=i>Índice</a> | <a href=n>Siguiente</a></p>",
    "Russian": "<p><a href=p>Назад</a> | <a href=i>Содержание</a> | <a href=n>Вперёд</a></p>",
    "Japanese": "<p><a href=p>前のページ</a> | <a href=i>目次</a> | <a href=n>次へ</a></p>",
    "Chinese": "<p><a href=p>上一页</a> | <a href=i>目录</a> | <a href=n>下一页</a></p>",
}


@pytest.mark.parametrize("line", TURNS.values(), ids=TURNS)
def test_lines_at_head_and_foot_are_left_out(line: str) -> None:
    around = f"{line}<h1>Warp</h1>{line}<h2>Wind</h2><p>{LOOM}</p><p>{SHED}</p>{line}<p>© 2026 Reed</p>"

    assert kept(around, "<title>Warp</title>") == ["Warp", "Wind", LOOM, SHED, "© 2026 Reed"]


@pytest.mark.parametrize(
    "markup",
    [
        # What a heading announces, entries of a list, and what is said in sentences.
        "<h2>See also</h2><p><a href=i>Price index</a>, <a href=h>House index</a></p>",
        "<h2>Indices</h2><ul><li><a href=i>Index</a><li><a href=m>Module index</a></ul>",
        "<ul><li><a href=l>The loom</a><li><a href=w>The weft</a><li><a href=i>Index</a></ul>",
        "<p>Next: <a href=n>the weft</a>, which the shuttle carries, and then the <a href=h>hem</a> of the cloth.</p>",
        "<p><a href=p>Consumer price index</a></p>",
        # Words without a link, and a line within the text.
        "<p>Next | Previous | Up</p>",
        "<dl><dt><a name=home></a>Home</dt><dd>The first page.</dd></dl>",
        "<p>Start<a name=start></a></p>",
        f"<p><a href=n>Next</a></p>{''.join(f'<p>Row {i} is red.</p>' for i in range(6))}",
        # More than a line.
        f"<p><a href=p>Previous</a> | <a href=n>Next</a> {LOOM} {SHED} {LOOM} {SHED}</p>",
    ],
)
def test_content_stays(markup: str) -> None:
    first = [f"<p>Row {i} is blue.</p>" for i in range(6)]
    page = f"<h1>Warp</h1>{''.join(first)}<p>{LOOM}</p>{markup}"

    assert kept(page, "<title>Warp</title>") == "\n".join(page_of(page, "https://example.org/warp").blocks.text).split(
        "\n"
    )
