"""Random trees of the structures that readers and writers follow by calling themselves, nested hundreds deep."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

MATH = (
    "mrow mstyle mstyle:mathvariant=bold mfrac mfrac:linethickness=0 msqrt mroot mfenced mfenced:open=[ menclose "
    "mphantom maction semantics mtable mtr mtd mlabeledtr mmultiscripts msub msup msubsup munder mover munderover "
    "mtext mpadded math mi mn mo ms mspace merror annotation mprescripts:x=y none:x=y annotation-xml:x=y"
).split()
MATHJAX = (
    "mjx-mrow mjx-mstyle mjx-mfrac mjx-frac mjx-num mjx-den mjx-msqrt mjx-sqrt mjx-root mjx-mroot mjx-msub mjx-msup "
    "mjx-script mjx-base mjx-mtable mjx-itable mjx-mtr mjx-mtd mjx-munder mjx-mover mjx-under mjx-over mjx-texatom "
    "mjx-mi mjx-mo mjx-mn mjx-menclose mjx-mpadded mjx-TeXAtom mjx-row mjx-box"
).split()
BLOCKS = (
    "div section article blockquote ul ol li dl dt dd table tr td th caption figure figcaption details summary "
    "aside p h2 h4 pre code center aside:class=note div:class=warning div:class=footnote div:role=doc-endnotes "
    "ul:role=list fieldset form main header footer nav address hgroup "
    "h1 h3 h5 h6 thead tbody tfoot menu dir search legend dialog hr noscript"
).split()
INLINE = (
    "span b i em strong a:href=/x u s del ins sub sup code kbd ruby rt rp q cite mark small font abbr:title=x label "
    "span:style=font-weight:bold button bdo samp var a:href=#fn1 br:x=y img:src=/i.png math mi dfn tt strike "
    "picture video"
).split()
NOTES = (
    "div:class=footnote li:id=fn1 li:id=fn2 ol:class=footnotes section:role=doc-endnotes a:href=#fn1 a:href=#fn2 p "
    "aside"
).split()
KEYS = (
    "@graph @id @type about author articleBody headline name body b_ody content text rendered children blocks"
).split()


def tree(rng: Random, tags: list[str], depth: int, nodes: int) -> str:
    """Return nested elements in random order, with at most a number of nodes beside the chain of the given depth."""
    left = nodes

    def element(inner: str) -> str:
        nonlocal left
        tag, _, attribute = rng.choice(tags).partition(":")
        name, _, value = attribute.partition("=")
        own = f' {name}="{value}"' if name else ""
        beside = ""
        while left > 0 and rng.random() < 0.5:
            left -= 1
            other = rng.choice(tags).partition(":")[0]
            beside += f"<{other}>{rng.choice(['x', 'word', '1', ''])}</{other}>"
        text = rng.choice(["x", "a word", "", "1"])
        return (
            f"<{tag}{own}>{text}{beside}{inner}</{tag}>"
            if rng.random() < 0.5
            else f"<{tag}{own}>{inner}{beside}</{tag}>"
        )

    made = "x"
    for _ in range(depth):
        made = element(made)
    return made


def data(rng: Random, depth: int, _nodes: int = 0) -> str:
    """Return a page whose text is in data: JSON-LD, or the state of a framework, of nested objects and lists."""
    keys = rng.sample(KEYS, rng.choice((1, 2, 4, len(KEYS))))
    value: Any = "word " * rng.choice((1, 40, 400))
    for _ in range(depth):
        beside = [rng.choice(("x", "word " * 40, 1, None)) for _ in range(rng.choice((0, 0, 1)))]
        value = [value, *beside] if rng.random() < 0.3 else {rng.choice(keys): value, **dict.fromkeys(keys[:1], beside)}
    kind = rng.choice(('type="application/ld+json"', 'id="__NEXT_DATA__"'))
    return f"<script {kind}>{json.dumps(value)}</script><div id=root></div>"


def _tree(before: str, tags: list[str], after: str = "") -> Callable[[Random, int, int], str]:
    return lambda rng, depth, nodes: before + tree(rng, tags, depth, nodes) + after


KINDS: dict[str, Callable[[Random, int, int], str]] = {
    "MathML": _tree("<p>A<math>", MATH, "</math> b</p>"),
    "MathJax": _tree('<p>A<mjx-container jax="CHTML"><mjx-math>', MATHJAX, "</mjx-math></mjx-container></p>"),
    "blocks": _tree("", BLOCKS),
    "inline": _tree("<p>", INLINE, "</p><p id=fn1>1. A note.</p>"),
    "all": _tree("", [*BLOCKS, *INLINE, *MATH]),
    "lists in tables": _tree("", "table tr td ul ol li th dl dd blockquote p".split()),
    "notes": _tree('<p>A<sup><a href="#fn1">1</a></sup> b<sup><a href="#fn2">2</a></sup></p>', NOTES),
    "data": data,
}
"""By name: a function that returns a page, given the depth and the number of other nodes."""


def nested(rng: Random) -> str:
    """Return a page of trees of one kind, or of two kinds after each other."""
    kinds = rng.choices(list(KINDS.values()), k=rng.choice((1, 1, 2)))
    return "".join(kind(rng, rng.choice((3, 10, 40, 100, 250)), rng.choice((0, 10, 100))) for kind in kinds)
