"""Articles into which a structure is inserted, so that the tagger's labels affect the result."""

from __future__ import annotations

from pathlib import Path

PARAGRAPHS = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
BEFORE, AFTER = PARAGRAPHS[3][:60], PARAGRAPHS[4][:60]
"""The beginnings of the paragraphs around the structure, by which it is found in the output."""

_MENU = "".join(f'<li><a href="/{name.lower()}">{name}</a></li>' for name in ("Home", "Courses", "Yarn", "About us"))
_CARDS = "".join(
    f'<div class="card"><a href="/post/{i}"><h3>{title}</h3></a><p>Read more in our journal.</p></div>'
    for i, title in enumerate(("Dyeing with onions", "A loom from driftwood", "Ten shops that sell flax"))
)
_FOOTER = "<p>© 2026 Loom and Reed. All rights reserved.</p><a href='/privacy'>Privacy</a> <a href='/terms'>Terms</a>"


def _paragraphs(first: int, last: int) -> str:
    return "".join(f"<p>{text}</p>" for text in PARAGRAPHS[first:last])


def _blog(structure: str) -> str:
    return (
        f"<header class='site-header'><nav><ul>{_MENU}</ul></nav></header><main><article class='post'>"
        f"<h1>How a cloth is made</h1><p class='meta'>12 March 2026 by Jo</p><div class='entry-content'>"
        f"{_paragraphs(0, 4)}{structure}{_paragraphs(4, 7)}</div></article>"
        f"<section class='related'><h2>Related posts</h2>{_CARDS}</section></main><footer>{_FOOTER}</footer>"
    )


def _documentation(structure: str) -> str:
    return (
        f"<div class='sidebar'><ul>{_MENU}</ul></div><div class='content' role='main'><h1>How a cloth is made</h1>"
        f"{_paragraphs(0, 2)}<h2 id='warp'>The warp</h2>{_paragraphs(2, 4)}{structure}{_paragraphs(4, 5)}"
        f"<h2 id='end'>The end</h2>{_paragraphs(5, 7)}</div>"
        f"<div class='prev-next'><a href='/a'>Previous</a> <a href='/b'>Next</a></div>"
        f"<div class='footer'>{_FOOTER}</div>"
    )


def _plain(structure: str) -> str:
    return (
        f"<div id='top'><ul>{_MENU}</ul></div><div id='page'><h1>How a cloth is made</h1>{_paragraphs(0, 4)}{structure}"
        f"{_paragraphs(4, 7)}</div><div id='bottom'>{_FOOTER}</div>"
    )


def articles(structure: str) -> list[str]:
    """Return three pages (a blog, a documentation, and a page without telling class names) with a structure in each."""
    head = "<!DOCTYPE html><html lang='en'><head><title>How a cloth is made</title></head>"
    return [f"{head}<body>{made(structure)}</body></html>" for made in (_blog, _documentation, _plain)]


def within(markdown: str) -> str | None:
    """Return the text between the paragraphs around the structure, with the page's footnotes; None if it is lost."""
    start, end = markdown.find(BEFORE), markdown.find(AFTER)
    if start < 0 or end < start:
        return None
    held = markdown[start:end].partition("\n\n")[2].strip()
    notes = markdown[end:].partition("\n\n[^")
    return f"{held}\n\n[^{notes[2]}" if notes[1] else held
