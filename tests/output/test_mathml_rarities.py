"""Conversion to LaTeX of MathML that is rare, broken, or specific to one generator."""

from __future__ import annotations

import pytest
from lxml import html

from scrapy_dripper.output.math.mathml import latex


def of(inner: str) -> str:
    return latex(html.fragment_fromstring(f"<math>{inner}</math>"))


@pytest.mark.parametrize(
    ("mathml", "tex"),
    [
        ("<mi>a</mi><mo>mod</mo><mi>n</mi>", r"a \bmod n"),
        ("<mi>a</mi><mo>max</mo><mi>b</mi>", r"a\max b"),
        ("<mi>A</mi><mo>span</mo><mi>B</mi>", r"A\operatorname{span}B"),
        ("<mi>a</mi><mo>such that:</mo><mi>b</mi>", r"a\text{such that:}b"),
        ("<mi>A</mi><mo>⟺</mo><mi>B</mi><mo>⟹</mo><mi>C</mi>", r"A \iff B \Longrightarrow C"),
        ("<mtext>a <b>b</b> c</mtext>", r"\text{a b c}"),
        ("<mo minsize='2em'>(</mo><mi>x</mi><mo minsize='2em'>)</mo>", r"\bigg(x\bigg)"),
        ("<mo minsize='1.2em'>[</mo><mi>x</mi><mo minsize='1.2em'>]</mo>", r"\big[x\big]"),
        ("<mi>∥</mi><mi>v</mi><mi>∥</mi>", r"\|v\|"),
        ("<mi>x</mi><mtext>&#xa0;</mtext><mi>y</mi>", r"x\ y"),
        ("<mtext> </mtext><mi>x</mi>", r"\ x"),
        ("<mtext></mtext><mi>x</mi>", "x"),
        ("<mi>a</mi><mspace linebreak='newline'/><mi>b</mi>", r"a \\ b"),
        ("<mi>a</mi><mspace width='-0.2em'/><mi>b</mi>", r"a\!b"),
        ("<mi>a</mi><mspace width='negativethinmathspace'/><mi>b</mi>", r"a\!b"),
        ("<mi>a</mi><mspace width='thickmathspace'/><mi>b</mi>", r"a\;b"),
        ("<mi>a</mi><mspace width='auto'/><mi>b</mi>", r"a\quad b"),
        ("<mglyph alt='smile'/>", r"\text{smile}"),
        ("<mi><mglyph alt='x'/></mi>", r"\text{x}"),
        ("<mi>ab<!-- c -->c</mi>", r"\mathrm{abc}"),
        ("<maction>x</maction>", "x"),
        ("<maction selection='2'><mi>x</mi><mi>y</mi></maction>", "y"),
    ],
)
def test_tokens(mathml: str, tex: str) -> None:
    """Operators that are words, delimiters of a given size, named spaces, images, and comments within a token."""
    assert of(mathml) == tex


@pytest.mark.parametrize(
    ("mathml", "tex"),
    [
        ("x<mo>+</mo>y", "x + y"),
        ("<mrow>x</mrow><mo>(</mo>y<mo>)</mo>", "x(y)"),
        ("<msub></msub>", "{}"),
        ("<msup><mi>x</mi></msup>", "x"),
        ("<msup><mi>x</mi><mn>2</mn><mn>3</mn></msup>", "x^23"),
        ("<munderover><mi>x</mi></munderover>", "x"),
        ("<mover><mi>x</mi><mrow></mrow></mover>", "x"),
        ("<munder><mi>x</mi><mrow></mrow></munder>", "x"),
        ("<munder><mi>x</mi><mi>y</mi></munder>", r"\underset{y}{x}"),
        ("<munder><mi>x</mi><munder><mi>y</mi><mi>z</mi></munder></munder>", r"\underset{\underset{z}{y}}{x}"),
        ("<mover><mi>x</mi><mover><mo>⏞</mo><mi>n</mi></mover></mover>", r"\overbrace{x}^n"),
        ("<munder><mi>x</mi><munder><mo>⏟</mo><mi>n</mi></munder></munder>", r"\underbrace{x}_n"),
        ("<mfrac linethickness='0'><mi>n</mi><mi>k</mi></mfrac>", r"{n \atop k}"),
        ("<mmultiscripts><mi>F</mi><mn>3</mn><none/><none/><mi>a</mi></mmultiscripts>", "F_3{}^a"),
        ("<mmultiscripts><mprescripts/><mn>1</mn></mmultiscripts>", "{}_1{}"),
        ("<mroot><mi>x</mi><mrow><mo>[</mo><mn>3</mn><mo>]</mo></mrow></mroot>", r"\sqrt[{[3]}]{x}"),
        ("<mroot><mi>x</mi><mrow></mrow></mroot>", r"\sqrt{x}"),
        ("<mrow>" * 12 + "<mo>+</mo>" + "</mrow>" * 12, "+"),
    ],
)
def test_elements_with_too_much_or_too_little_in_them(mathml: str, tex: str) -> None:
    """Text between elements, scripts without a base or with too many parts, and a root whose degree has brackets."""
    assert of(mathml) == tex


@pytest.mark.parametrize(
    ("mathml", "tex"),
    [
        ("<mo fence='true'></mo><mi>x</mi><mo>|</mo>", r"\left.x\right|"),
        ("<mfrac><mi>a</mi><mi>b</mi></mfrac><mo fence='true'>|</mo>", r"\left. \frac{a}{b}\right|"),
        ("<mo form='prefix'>|</mo><mi>x</mi><mo form='postfix'>|</mo>", "|x|"),
        ("<mo data-mjx-texclass='OPEN'>∣</mo><mi>x</mi><mo data-mjx-texclass='CLOSE'>∣</mo>", r"\left|x\right|"),
        ("<mo fence='true'>∥</mo><mi>x</mi><mo fence='true'>∥</mo>", r"\|x\|"),
        ("<mo>(</mo><mo>|</mo><mi>x</mi><mo>)</mo>", "(|x)"),
        ("<mo>)</mo><mi>x</mi><mo>(</mo>", ")x("),
        ("<mo>(</mo>n<mo>)</mo>", "(n)"),
        ("<mfenced open='|' close='|'><mi>x</mi></mfenced>", "|x|"),
        ("<mfenced separators=''><mi>x</mi><mi>y</mi></mfenced>", "(xy)"),
        ("<mfenced separators=';,'><mi>x</mi><mi>y</mi><mi>z</mi><mi>w</mi></mfenced>", "(x; y, z, w)"),
        ("<mfenced><mfrac><mi>x</mi><mi>y</mi></mfrac></mfenced>", r"\left(\frac{x}{y}\right)"),
    ],
)
def test_delimiters_that_do_not_match(mathml: str, tex: str) -> None:
    """A delimiter without a counterpart, an invisible one, and bars with an explicit side."""
    assert of(mathml) == tex
