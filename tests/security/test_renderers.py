"""Markdown of a page is safe in any renderer, even if that allows raw HTML and any URL. Nothing in it runs.

CommonMark in Python and JavaScript, GitHub's dialect, mistune with its plugins, Python-Markdown with its extensions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from html import escape

import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.testing import FakeEngine
from tests.security.checks import dangers
from tests.security.rendering import WHY_NOT, in_javascript, in_python
from tests.security.vectors import MARKDOWN, VECTORS, page

Render = Callable[[Sequence[str]], dict[str, list[str]]]
RENDERERS = [
    pytest.param(in_python, id="Python"),
    pytest.param(in_javascript, id="JavaScript", marks=pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)),
]

OPTIONS = {
    "keep": Config(fallback="empty"),
    "drop": Config(fallback="empty", markdown={"links": "drop"}),
    "citations": Config(fallback="empty", markdown={"links": "citations"}),
    "linear": Config(fallback="empty", markdown={"tables": "linear"}),
}
BODIES = [
    *(page(i) for i in range(len(VECTORS))),
    *(f"<h1>Words</h1>{body}<p>words</p>".replace("RUN", "ran(1)") for body in MARKDOWN),
]
LIVE = [
    "[^1]: javascript:ran(1)\n\n[^1]",
    "[a](javascript:ran(1))",
    "<img src=x onerror=ran(1)>",
    "www.a.b <img src=x onerror=ran(1)>",
]
"""Markdown that is dangerous in every renderer. Otherwise, the tests would prove nothing."""

PIECES = [
    "`", "``", "<img src=x onerror=ran()>", "](javascript:ran())", "[x]", "[1]", "\n", "\n\n", "$", "\\(", "\\)", "|",
    "\\", "&lt;", "!", "[", "]", "<", ">", "*", "_", "~~~", "```", "    ", "- ", "> ", "1. ", "<div onclick=ran()>",
    "[1]: javascript:ran()", "[x]: javascript:ran()", "-->", "<!--", "</pre>", "<javascript:ran()>", "x", " ", ":",
    "\r", "\u2028", "&#96;", "---", "<script>ran()</script>", "javascript:ran()", "data:text/html,x",
    "[^1]: javascript:ran()", "[^1]", "[1]: ", "[x]:\njavascript:ran()", "{onclick=ran()}", "{: onclick=ran() }",
    " {href=javascript:ran()}", "{", "}", "=", "*[x]: x", "(", ")", '"', "'", "\t", "javascript&colon;ran()",
    "<a href=javascript:ran()>", "<x:y/onclick=ran()>", "[x][x]", "[x](javascript:ran())", "![x](javascript:ran())",
    "[[x]]", "**", "#", "&amp;", "~", "^", "||", "$$", "\\[", "\\]", "%%", "1) ", "+ ", "<?", "?>", "<![CDATA[",
    "]]>", "> ```\n", "<b>", "</div>", "<pre>", "<style>", "http://a.b/", "www.x.y",
]  # fmt: skip
PLACES = [
    "<p>{}</p>",
    "<p>x <code>{}</code> x</p>",
    "<pre>{}</pre>",
    "<pre class=language-js><code>{}</code></pre>",
    "<table><tr><td>{}<td>x<tr><td>x<td>{}</table>",
    "<table><tr><td rowspan=2>{}<td>x<tr><td>x</table>",
    "<ul><li>{}<li><p>{}</p><p>x</p></ul>",
    "<p><em>{}</em><strong>{}</strong></p>",
    "<dl><dt>{}<dd>{}</dl>",
    "<blockquote>{}</blockquote>",
    "<h2>{}</h2>",
    "<p>x<sup>{}</sup><sub>{}</sub></p>",
    "<p><a href='{}'>{}</a></p>",
    "<p>x <span class=math>\\({}\\)</span> x</p>",
    "<p>x <img alt='{}' title='{}' src='{}'> x</p>",
    "<p>x <script type=math/tex>{}</script> x</p>",
    "<p>x</p><div class=math>\\[{}\\]</div><p>x</p>",
    "<p>x</p><math display=block alttext='{}' class=ltx_Math><mi>x</mi></math><p>x</p>",
    "<p><ruby>{}<rt>{}</rt></ruby></p>",
    "<p>x<br>{}<br>{}</p>",
    "<details><summary>{}</summary>{}</details>",
    "<video src=x.mp4 title='{}'></video>",
    "<figure><img src=x.png><figcaption>{}</figcaption></figure>",
    "<p>x<sup><a href=#fn1>1</a></sup></p><ol><li id=fn1>{}</ol>",
    "<p>x<sup><a href=#fn1>1</a></sup> {}</p><ol><li id=fn1><p>{}<p>{}</ol>",
    "<ul><li>{}<pre>{}</pre></ul>",
    "<blockquote><pre>{}\n\n{}</pre></blockquote>",
    "<ol><li>x<ul><li><pre>{}\n\n{}</pre></ul></ol>",
    "<p><a href='http://x/' title='{}'>x</a>{}</p>",
    "<p><code>x</code>{}<img src=x.png>{}<b>x</b>{}<i>y</i>{}</p>",
    "<h2>x {}</h2><h3><a href=/x>y</a>{}</h3>",
    "<table><tr><th>a<th>b<tr><td>{}<td>{}<tr><td><b>x</b>{}<td>x</table>",
    "<ul><li><table><tr><td rowspan=2>{}<td><pre>{}</pre><tr><td><a href='{}'>x</a></table></ul>",
    "<dl><dt>x<dd>{}<dd><pre>{}</pre></dl>",
    "<p><a href='{}'>x</a> <a href='x:{}'>x:{}</a></p>",
    "<pre class='language-{}'>x {}</pre>",
]


def filled(place: str, texts: list[str]) -> str:
    """Return a piece of HTML with texts filled into it."""
    for text in texts:
        place = place.replace("{}", text.replace("</", "") if "script" in place else escape(text), 1)
    return place


def by_chance(count: int) -> list[str]:
    """Return a number of random bodies, the same in each run."""
    chance = random.Random(5)
    written = []
    for _ in range(count):
        place = "".join(chance.choices(PLACES, k=chance.randint(1, 3)))
        texts = ["".join(chance.choices(PIECES, k=chance.randint(0, 5))) for _ in range(place.count("{}"))]
        written.append("<h1>x</h1>" + filled(place, texts))
    return written


def markdown(htmls: list[str], way: str) -> list[str]:
    return [one.markdown or "" for one in Extractor(OPTIONS[way], engine=FakeEngine()).extract(htmls)]


def live(rendered: dict[str, list[str]], documents: list[str]) -> list[tuple[str, str, list[str]]]:
    """Return the dangers in rendered documents, each with the renderer and the document."""
    return [
        (name, document, bad)
        for name, htmls in rendered.items()
        for document, html in zip(documents, htmls, strict=True)
        if (bad := [one for one in dangers(html) if "data-" not in one])
    ]


@pytest.mark.parametrize("render", RENDERERS)
@pytest.mark.parametrize("document", LIVE)
def test_the_renderers_let_everything_through(document: str, render: Render) -> None:
    assert any(dangers(html[0]) for html in render([document]).values())


@pytest.mark.parametrize("render", RENDERERS)
@pytest.mark.parametrize("way", OPTIONS)
def test_vectors(way: str, render: Render) -> None:
    documents = markdown(BODIES, way)

    assert live(render(documents), documents) == []


@pytest.mark.parametrize("render", RENDERERS)
def test_texts(render: Render) -> None:
    """Footnotes, brackets, colons and braces come in places where they have a special meaning."""
    pages = by_chance(1_000)
    documents = [one for i, way in enumerate(OPTIONS) for one in markdown(pages[i :: len(OPTIONS)], way)]

    assert len(documents) == 1_000
    assert live(render(documents), documents) == []


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        ("Ek, A. (1988).", "[^1]: Ek, A. (1988)."),
        ("Ibid.", "[^1]: Ibid."),
        ("<a href=https://e.org/x>https://e.org/x</a>", "[^1]: <https://e.org/x>"),
        ("https://e.org/x", "[^1]: https://e.org/x"),
        ("Data: Eurostat, 2019.", "[^1]: Data: Eurostat, 2019."),
        ("javascript: the good parts", "[^1]: javascript: the good parts"),
        ("javascript:alert(1)", "\\[^1]: javascript:alert(1)"),
        ("JavaScript\\:alert(1) 'title'", "\\[^1]: JavaScript\\\\:alert(1) 'title'"),
        ("data:text/html,x", "\\[^1]: data:text/html,x"),
        ("&lt; vbscript:x &gt;", "\\[^1]: < vbscript:x >"),
    ],
)
def test_footnotes_stay_footnotes(note: str, expected: str) -> None:
    """Footnotes that would define a live link are text."""
    (written,) = markdown([f"<p>Words.<sup><a href=#fn1>1</a></sup></p><ol><li id=fn1>{note}</ol>"], "keep")

    assert written == f"Words.[^1]\n\n{expected}"
