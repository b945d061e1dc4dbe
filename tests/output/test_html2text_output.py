"""Conversion of Main-HTML to Markdown with html2text."""

from __future__ import annotations

import pytest

from scrapy_dripper.output import html2text_markdown as markdown


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p><a href='/x'>link</a></p>", "[link](https://example.org/x)"),
        ("<p><a href='https://[x]/'>link</a></p>", "[link](https://\\[x\\]/)"),
        ("<p>" + "word " * 100 + "</p>", ("word " * 100).strip()),
        ("<p>é—“q”</p>", "é—“q”"),
        ("<p><b>b</b> <i>i</i></p>", "**b** *i*"),
    ],
)
def test_markdown(html: str, expected: str) -> None:
    """Links are absolute, lines are not wrapped, and characters stay Unicode."""
    assert markdown(f"<html><body>{html}</body></html>", "https://example.org/a/b") == expected


KATEX = (
    '<span class="katex"><span class="katex-mathml"><math><semantics><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow>'
    '<annotation encoding="application/x-tex">{}</annotation></semantics></math></span><span class="katex-html" '
    'aria-hidden="true"><span>x</span><span>2</span></span></span>'
)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (f"<p>Let {KATEX.format('x^2')} be.</p>", "Let $x^2$ be."),
        (f"<p>{KATEX.format('a_1')}, {KATEX.format('{*b*}')}</p>", "$a_1$, ${*b*}$"),
        ("<p>so <span class='katex-display'>" + KATEX.format(r"\left\{x\right\}") + "</span> and</p>",
         "so \n\n$$\\left\\{x\\right\\}$$\n\nand"),
        ("<p>a <math><msup><mi>x</mi><mn>2</mn></msup></math> b</p>", "a $x^2$ b"),
        ("<p>a\ufdd07\ufdd0b</p>", "ab"),
        ("<p>a<img src='/i.png' alt='alt'>b<script>x</script></p>", "a![alt](https://example.org/i.png)b"),
    ],
)  # fmt: skip
def test_formulas_are_their_latex(html: str, expected: str) -> None:
    """html2text itself writes x^2 of KaTeX as ``xx^2x2``, and escapes signs of LaTeX."""
    assert markdown(f"<html><body>{html}</body></html>", "https://example.org/") == expected
