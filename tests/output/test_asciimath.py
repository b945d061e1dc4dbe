"""AsciiMath to LaTeX."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.output.math.asciimath import latex
from scrapy_dripper.output.math.tex import balanced


@pytest.mark.parametrize(
    ("source", "tex"),
    [
        ("x^2+y_1=z", "x^2 + y_1 = z"),
        ("sum_(i=1)^n i^3=((n(n+1))/2)^2", r"\sum_{i=1}^n i^3 = \left(\frac{n(n + 1)}{2}\right)^2"),
        ("(a+b)/(c-d)", r"\frac{a + b}{c - d}"),
        ("sqrt(x/2)", r"\sqrt{\frac{x}{2}}"),
        ("root(3)(x)", r"\sqrt[3]{x}"),
        ("lim_(h->0) f(h)", r"\lim_{h \to 0} f(h)"),
        ("[[a,b],[c,d]]", r"\begin{bmatrix} a & b \\ c & d \end{bmatrix}"),
        ("{(1,if x>0),(0,text(else)):}", r"\begin{cases} 1 & \text{ if }x > 0 \\ 0 & \text{else} \end{cases}"),
        ("hat(x) vec v bar(ab)", r"\hat{x}\vec{v}\overline{ab}"),
        ("x in RR", r"x \in \mathbb{R}"),
        ('"for all " x', r"\text{for all }x"),
        ("abs(x) |y|", "|x||y|"),
        ("alpha beta oo", r"\alpha\beta\infty"),
        ("a// b", "a/b"),
        ("sin x", r"\sin x"),
        ("x^(2n)", "x^{2n}"),
        ("(", "("),
        ("a^", "a^{}"),
        ("50%", r"50\%"),
        ("", ""),
    ],
)
def test_latex(source: str, tex: str) -> None:
    """The examples of asciimath.org, and cases that it does not define."""
    assert latex(source) == tex


PIECES = [
    *'()[]{}|/^_"\\$%&#,;x1 é',
    "sqrt",
    "frac",
    "root",
    "text(",
    "(:",
    ":)",
    "{:",
    ":}",
    "sum",
    "hat",
    "[[",
    "),(",
]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_braces_are_balanced_property(source: str) -> None:
    """The LaTeX of any text between backticks has balanced braces."""
    assert balanced(latex(source))
