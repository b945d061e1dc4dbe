"""The lines by which a reader turns the pages of a manual are left out at its head and foot, and only there."""

from __future__ import annotations

import numpy as np
import pytest

from scrapy_dripper.choose.boilerplate import without_asides
from scrapy_dripper.page.vocabulary import NameIndex
from scrapy_dripper.testing import page as page_of

TEXT = "The warp has to be measured, wound and tied to the loom, which takes most beginners a whole day of their week."
MORE = "The shuttle goes through the shed, the reed beats the new thread into its place, and the next shed opens."


def kept(body: str) -> list[str]:
    """Return the texts that are left of a page of which a model takes everything for main."""
    page = page_of(f"<html><head><title>Warp</title></head><body>{body}</body></html>", "https://example.org/warp")
    labels = without_asides(page, np.ones(len(page.blocks), dtype=np.bool_), NameIndex(page.tree.names).matching)
    return page.text_of(labels).split("\n")


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
    around = f"{line}<h1>Warp</h1>{line}<h2>Wind</h2><p>{TEXT}</p><p>{MORE}</p>{line}<p>© 2026 Reed</p>"

    assert kept(around) == ["Warp", "Wind", TEXT, MORE, "© 2026 Reed"]


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
        f"<p><a href=n>Next</a></p>{''.join(f'<p>Row {i} is red.</p>' for i in range(6))}",
        # More than a line.
        f"<p><a href=p>Previous</a> | <a href=n>Next</a> {TEXT} {MORE} {TEXT} {MORE}</p>",
    ],
)
def test_content_stays(markup: str) -> None:
    first = [f"<p>Row {i} is blue.</p>" for i in range(6)]
    page = f"<h1>Warp</h1>{''.join(first)}<p>{TEXT}</p>{markup}"

    assert kept(page) == "\n".join(page_of(page, "https://example.org/warp").blocks.text).split("\n")
