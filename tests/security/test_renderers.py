"""Markdown of a page is safe in any renderer, even if that allows raw HTML and any URL. Nothing in it runs.

CommonMark in Python and JavaScript, GitHub's dialect, mistune with its plugins, Python-Markdown with its extensions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from html import escape, unescape

import pytest

from scrapy_dripper import markdown as one_page
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction, Metadata
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.output.content_json import to_json
from scrapy_dripper.output.markdown import front_matter
from scrapy_dripper.structures.items import (
    Audio,
    Cell,
    CodeBlock,
    Image,
    Paragraph,
    Post,
    Quote,
    Table,
    Text,
    Title,
    Video,
)
from scrapy_dripper.testing import FakeEngine
from tests.security.checks import dangers, elements
from tests.security.rendering import WHY_NOT, in_javascript, in_python
from tests.security.vectors import MARKDOWN, VECTORS, page

Render = Callable[[Sequence[str]], dict[str, list[str]]]
RENDERERS = [
    pytest.param(in_python, id="Python"),
    pytest.param(in_javascript, id="JavaScript", marks=pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)),
]

OPTIONS = {
    way: Config(fallback="empty", chunks_field="chunks", chunks={"size": 100}, markdown={"front_matter": True, **form})
    for way, form in {
        "keep": {},
        "drop": {"links": "drop", "callouts": "quotes", "posts": "named"},
        "citations": {"links": "citations", "posts": "named"},
        "linear": {"tables": "linear", "callouts": "quotes"},
        "together": {"links": "citations", "tables": "linear", "posts": "named"},
    }.items()
}
BODIES = [
    *(page(i) for i in range(len(VECTORS))),
    *(f"<h1>Words</h1>{body}<p>words</p>".replace("RUN", "ran(1)") for body in MARKDOWN),
]
TEXTS = [
    *(text.replace("RUN", "ran(1)") for vector in (*VECTORS, *MARKDOWN) for text in (vector, unescape(vector))),
    *("[x]: javascript:ran(1) [x]", "*a* **a** _a_ __a__ ~a~ ~~a~~ `a` ^a^ $a$ ![a](b) [[a]] a | b | c", "a_b __a"),
    *("www.x.y ftp://x.y/z mailto:a@b.c a@b.c http://x.y/?a=1&b=2 https://x/~a_b", "\\", "\\`", "a \\[", '"', '\\"<b>'),
    "<h1>x</h1>){</em></strong> `x`</code> {href=javascript:ran()}^<img src=x.png><b>x</b>[www.x.y1. <a href=x>||---",
    *("--- # x", "---", "> x", "- x", "1. x", "&lt;b&gt; &amp;lt;b> &copy &#60;b>", "{#x .y onclick=ran(1)}", "<!--"),
]
"""Texts for values, raw and with their character references resolved."""
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
    "<p>{}<b>{}</b>{}<i>{}</i>{}</p>",
    "<p>a<b>{}</b>b<s><i>{}</i></s>c</p>",
    "<div class='admonition note'><p class=admonition-title>{}</p><p>{}</p></div>",
    "<title>{}</title><meta name=author content='{}'><meta property=og:site_name content='{}'>",
    "<meta property=og:title content='{}'><meta name=description content='{}'><html lang='{}'>",
    "<meta property=article:published_time content='{}'><link rel=canonical href='https://x/{}'>",
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
    """Return the Markdown of pages, of which the title and the author are the same as their content."""
    heads = (f"<title>{escape(html)}</title><meta name=author content='{escape(html)}'>" for html in htmls)
    pages = [Document(head + html, f"https://x/{html}") for head, html in zip(heads, htmls, strict=True)]
    found = Extractor(OPTIONS[way], engine=FakeEngine()).extract(pages)
    return [one for page in found for one in (page.markdown or "", *(chunk["markdown"] for chunk in page.chunks or ()))]


def of_values(text: str) -> str:
    """Return the Markdown of a page that has a text in all values that are not text of the page."""
    words = (Text(text),)
    paragraph = Paragraph(words)
    items = (
        *(Post(1, text, text), paragraph, Title(2, words), CodeBlock("x", text), Video("/x", "/x", text, words)),
        *(Quote((paragraph,), "note", words), Image("/x", text, text, words, "/x"), Audio("/x", text, words)),
        Table(((Cell((paragraph,), 2), Cell((paragraph,))), (Cell((paragraph,)),)), 0, words, False),
    )
    known = Metadata(text, (text, text), text, text, text, text, text, text, text, text)
    page = Extraction(text, text, None, "x", None, "model", content=to_json(items), metadata=known)
    return one_page(page, "citations", "linear", "alerts", "named", front_matter=True)


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

    assert len(documents) > 2_000
    assert live(render(documents), documents) == []


@pytest.mark.parametrize("render", RENDERERS)
def test_values(render: Render) -> None:
    """Metadata, alternative texts, titles, names of posts and languages are from the page, too."""
    texts = TEXTS + [line for body in by_chance(150) for line in body.splitlines()]
    documents = list(map(of_values, texts))

    assert live(render(documents), documents) == []


@pytest.mark.parametrize("render", RENDERERS)
def test_front_matter_is_text(render: Render) -> None:
    """Renderers that know no front matter show a heading, in which only web addresses may be links."""
    documents = [front_matter([("title", text), ("author", text), ("url", f"https://x/{text}")]) for text in TEXTS]

    for name, htmls in render(documents).items():
        for html in htmls:
            made = elements(html)
            assert {tag for tag, _ in made} <= {"html", "head", "body", "hr", "p", "h2", "br", "a"}, (name, html)
            links = [attributes["href"] for tag, attributes in made if tag == "a"]
            assert all(link.startswith(("http://", "https://", "//")) for link in links), (name, html)


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
    html = f"<p>Words.<sup><a href=#fn1>1</a></sup></p><ol><li id=fn1>{note}</ol>"
    (found,) = Extractor(Config(fallback="empty"), engine=FakeEngine()).extract([html])

    assert found.markdown == f"Words.[^1]\n\n{expected}"
