"""Detection of formulas, of their copies and of their LaTeX, beside the generators of tests/structured."""

from __future__ import annotations

import pytest
from lxml import html

from scrapy_dripper.structures import formulas
from scrapy_dripper.structures.formulas import formula
from scrapy_dripper.structures.items import Formula

MATHML = "<math><msup><mi>x</mi><mn>2</mn></msup></math>"
ANNOTATED = (
    "<math><semantics><msup><mi>x</mi><mn>2</mn></msup>"
    '<annotation encoding="application/x-tex">x^{2}</annotation></semantics></math>'
)
SCRIPT = "<script type='math/tex'>x</script>"


def first(markup: str) -> Formula | None:
    """Return the formula of the first element."""
    return formula(html.fragment_fromstring(f"<div>{markup}</div>")[0])


@pytest.mark.parametrize(
    ("markup", "latex", "origin", "display"),
    [
        (MATHML.replace("<math>", "<math display='block'>"), "x^2", "mathml", True),
        (ANNOTATED, "x^{2}", "annotation", False),
        (ANNOTATED.replace("x^{2}<", "x^{2<"), "x^2", "mathml", False),
        (ANNOTATED.replace("x-tex", "mathml+xml"), "x^2", "mathml", False),
        ("<math alttext='\\frac{a}{b}'><mi>z</mi></math>", r"\frac{a}{b}", "alttext", False),
        (f"<span class='katex'><span class='katex-mathml'>{ANNOTATED}</span></span>", "x^{2}", "katex", False),
        ("<mjx-container><mjx-math data-latex='x^2'></mjx-math></mjx-container>", "x^2", "mathjax3", False),
        ("<span class='math-container'>$\\$5$</span>", r"\$5", "delimiters", False),
        ("<img src='https://latex.codecogs.com/svg.latex?%5Clarge%20x^2'>", "x^2", "image", False),
        ("<img class='mwe-math-fallback-image-inline' alt='{\\displaystyle x}'>", "x", "wikipedia", False),
        ("<x:math><mi>x</mi></x:math>", "x", "mathml", False),
        # A preview is only a copy if no text separates it from the formula. Otherwise, it is the formula.
        (f"<span class='MathJax_Preview'>\\theta</span> and {SCRIPT}", r"\theta", "mathjax2", False),
        # LaTeX never ends in a backslash, which would escape the delimiter after it.
        ("<script type='math/tex'>x \\ </script>", "x", "mathjax2", False),
        ("<img class='latex' alt='x\\'>", "x", "image", False),
        (
            "<span class='MathJax' data-mathml='<math><mi>x</mi><mtext>é</mtext></math>'>x</span>",
            *("x\\text{é}", "mathjax2", False),
        ),
    ],
)  # fmt: skip
def test_formula(markup: str, latex: str, origin: str, display: bool) -> None:
    """The formula has the author's LaTeX if the page contains it, and its origin."""
    assert first(markup) == Formula(latex, origin, display)


def test_mathml_of_an_attribute_is_bounded() -> None:
    """A page can have thousands of such attributes, so the parser's limits are those of each."""
    for hostile in ("<math>" + "<mrow>" * 20_000 + "</x>" * 20_000, "<math " + "a " * 20_000 + ">"):
        found = formulas._parsed(hostile)
        assert found is None or sum(1 for _ in found.iter()) < 300


@pytest.mark.parametrize("code", ["FFFE", "1FFFF", "D800", "85", "7"])
def test_drawn_codes_that_are_no_characters_are_left_out(code: str) -> None:
    """In the output of MathJax 3, the characters are the codes of glyphs."""
    glyphs = "".join(f'<mjx-mi><mjx-c class="mjx-c{one}"></mjx-c></mjx-mi>' for one in ("41", code))
    found = first(f"<mjx-container jax='CHTML'><mjx-math>{glyphs}</mjx-math></mjx-container>")
    assert found is not None
    assert found.latex == "A"
