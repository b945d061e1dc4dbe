"""MathML to LaTeX."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree, html

from scrapy_dripper.structures.formulas import balanced
from scrapy_dripper.structures.mathml import latex


def of(inner: str) -> str:
    return latex(html.fragment_fromstring(f"<math>{inner}</math>"))


TABLE = (
    "<mtable><mtr><mtd><mi>a</mi></mtd><mtd><mi>b</mi></mtd></mtr>"
    "<mtr><mtd><mn>0</mn></mtd><mtd><mn>1</mn></mtd></mtr></mtable>"
)
ROWS = r"a & b \\ 0 & 1"


@pytest.mark.parametrize(
    ("mathml", "tex"),
    [
        # Letters, numbers, operators with their spaces, names, fonts and text.
        ("<mi>x</mi><mo>+</mo><mn>1</mn><mo>=</mo><mo>-</mo><mi>y</mi>", "x + 1 = -y"),
        ("<mo>−</mo><mi>a</mi>", "-a"),
        ("<mi>α</mi><mi>b</mi><mi>Γ</mi>", r"\alpha b\Gamma"),
        ("<mi>sin</mi><mo>&#x2061;</mo><mi>x</mi>", r"\sin x"),
        ("<mi>rank</mi><mo>&#x2061;</mo><mi>A</mi>", r"\operatorname{rank}A"),
        ("<mi>Re</mi>", r"\mathrm{Re}"),
        ("<mi mathvariant='normal'>d</mi><mi>x</mi>", r"\mathrm{d}x"),
        ("<mi>ℝ</mi><mi>𝐯</mi><mi>𝒜</mi>", r"\mathbb{R}\mathbf{v}\mathcal{A}"),
        ("<mi mathvariant='bold'>β</mi>", r"\boldsymbol{\beta}"),
        ("<mi>速度</mi>", r"\text{速度}"),
        ("<mn>1,000.5</mn><mo>,</mo><mn>2,5</mn>", "1{,}000.5, 2,5"),
        ("<mi>a</mi><mo>&#x2062;</mo><mi>b</mi>", "ab"),
        ("<mo>{</mo><mn>5</mn><mo>%</mo><mo>}</mo>", r"\{5\%\}"),
        ("<mi>n</mi><mo>!</mo>", "n!"),
        ("<mi>a</mi><mo>≤</mo><mi>b</mi><mo>∉</mo><mi>C</mi>", r"a \leq b \notin C"),
        ("<mi>p</mi><mspace width='-0.08em'/><mi>q</mi><mspace width='-0.03em'/><mi>r</mi>", r"p\!qr"),
        ("<mi>p</mi><mspace width='1ex'/><mi>q</mi><mspace width='16px'/><mi>r</mi>", r"p\;q\quad r"),
        ("<mi>p</mi><mspace width='12pt'/><mi>q</mi><mspace width='18mu'/><mi>r</mi>", r"p\quad q\quad r"),
        ("<mi>p</mi><mspace width='1em'/><mi>q</mi><mspace width='0.167em'/><mi>r</mi>", r"p\quad q\,r"),
        ("<mtext>for all </mtext><mi>x</mi>", r"\text{for all }x"),
        ("<mtext>50% of $9</mtext>", r"\text{50\% of \$9}"),
        ("<mtext>−</mtext>", "-"),
        # Scripts above and below, with braces where they are needed.
        ("<msup><mi>x</mi><mn>2</mn></msup>", "x^2"),
        ("<msup><mi>x</mi><mn>10</mn></msup>", "x^{10}"),
        ("<msub><mi>x</mi><mrow><mi>i</mi><mo>+</mo><mn>1</mn></mrow></msub>", "x_{i+1}"),
        ("<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>", "x_i^2"),
        ("<msup><msup><mi>x</mi><mn>2</mn></msup><mn>3</mn></msup>", "{x^2}^3"),
        ("<msup><mrow><mo>(</mo><mi>a</mi><mo>+</mo><mi>b</mi><mo>)</mo></mrow><mn>2</mn></msup>", "(a + b)^2"),
        ("<msup><mrow><mi>a</mi><mi>b</mi></mrow><mn>2</mn></msup>", "{ab}^2"),
        ("<msup><mi>f</mi><mo>′</mo></msup>", "f'"),
        ("<msup><mi>f</mi><mrow><mo>′</mo><mo>′</mo></mrow></msup>", "f''"),
        ("<msup><mn>90</mn><mo>∘</mo></msup>", r"90^{\circ}"),
        ("<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover><mi>i</mi>",
         r"\sum_{i=1}^n i"),
        ("<munder><mi>lim</mi><mrow><mi>n</mi><mo>→</mo><mi>∞</mi></mrow></munder>", r"\lim_{n\to\infty}"),
        ("<munder><mi>argmax</mi><mi>x</mi></munder>", r"\operatorname*{argmax}_x"),
        ("<mover><mi>x</mi><mo>^</mo></mover>", r"\hat{x}"),
        ("<mover><mrow><mi>x</mi><mi>y</mi></mrow><mo>^</mo></mover>", r"\widehat{xy}"),
        ("<mover><mi>v</mi><mo>→</mo></mover>", r"\vec{v}"),
        ("<mover><mi>z</mi><mo>―</mo></mover>", r"\overline{z}"),
        ("<munder><mi>a</mi><mo>_</mo></munder>", r"\underline{a}"),
        ("<mover><mover><mi>a</mi><mo>⏞</mo></mover><mi>n</mi></mover>", r"\overbrace{a}^n"),
        ("<munder><mi>a</mi><munder><mo>⏟</mo><mi>n</mi></munder></munder>", r"\underbrace{a}_n"),
        ("<mover><mo>=</mo><mtext>def</mtext></mover>", r"\overset{\text{def}}{=}"),
        ("<munderover><mo>→</mo><mi>g</mi><mi>f</mi></munderover>", r"\xrightarrow[g]{f}"),
        ("<mmultiscripts><mi>C</mi><mi>a</mi><none/><mprescripts/><mn>6</mn><mn>14</mn></mmultiscripts>",
         "{}_6^{14}C_a"),
        # Fractions, roots, growing delimiters, and tables in their environments.
        ("<mfrac><mi>a</mi><mrow><mi>b</mi><mo>+</mo><mn>1</mn></mrow></mfrac>", r"\frac{a}{b + 1}"),
        ("<mo>(</mo><mfrac linethickness='0'><mi>n</mi><mi>k</mi></mfrac><mo>)</mo>", r"\binom{n}{k}"),
        ("<msqrt><mi>x</mi><mo>+</mo><mn>1</mn></msqrt>", r"\sqrt{x + 1}"),
        ("<mroot><mi>x</mi><mn>3</mn></mroot>", r"\sqrt[3]{x}"),
        ("<mo>(</mo><mfrac><mi>a</mi><mi>b</mi></mfrac><mo>)</mo>", r"\left(\frac{a}{b}\right)"),
        ("<mo stretchy='false'>(</mo><mfrac><mi>a</mi><mi>b</mi></mfrac><mo>)</mo>", r"(\frac{a}{b})"),
        ("<mo>[</mo><mn>0</mn><mo>,</mo><mn>1</mn><mo>)</mo>", "[0, 1)"),
        ("<mo>|</mo><mi>x</mi><mo>|</mo>", "|x|"),
        ("<mi>P</mi><mo>(</mo><mi>A</mi><mo>∣</mo><mi>B</mi><mo>)</mo>", r"P(A \mid B)"),
        ("<mrow><mo fence='true'></mo><mfrac><mi>a</mi><mi>b</mi></mfrac><mo fence='true'>|</mo></mrow>",
         r"\left.\frac{a}{b}\right|"),
        ("<mfenced><mi>a</mi><mi>b</mi></mfenced>", "(a, b)"),
        ("<mfenced open='⟨' close='⟩' separators='|'><mi>a</mi><mi>b</mi></mfenced>", r"\langle a| b\rangle"),
        (TABLE, rf"\begin{{matrix}} {ROWS} \end{{matrix}}"),
        (f"<mo>(</mo>{TABLE}<mo>)</mo>", rf"\begin{{pmatrix}} {ROWS} \end{{pmatrix}}"),
        (f"<mfenced open='[' close=']'>{TABLE}</mfenced>", rf"\begin{{bmatrix}} {ROWS} \end{{bmatrix}}"),
        (f"<mi>f</mi><mo>=</mo><mrow><mo>{{</mo>{TABLE}</mrow>", rf"f = \begin{{cases}} {ROWS} \end{{cases}}"),
        (TABLE.replace("<mtable>", "<mtable columnalign='right left'>"), rf"\begin{{aligned}} {ROWS} \end{{aligned}}"),
        ("<menclose notation='box'><mi>E</mi></menclose>", r"\boxed{E}"),
        ("<mphantom><mi>x</mi></mphantom>", ""),
        ("<maction><mi>x</mi><mi>y</mi></maction>", "x"),
        ("<mfrac linethickness='0'><mi>n</mi><mi>k</mi></mfrac>", r"{n \atop k}"),
        ("<mfenced><mfrac><mi>x</mi><mi>y</mi></mfrac></mfenced>", r"\left(\frac{x}{y}\right)"),
        ("<mo>(</mo><mo>|</mo><mi>x</mi><mo>)</mo>", "(|x)"),
        ("<mo>)</mo><mi>x</mi><mo>(</mo>", ")x("),
        ("<semantics><mi>x</mi><annotation encoding='text/plain'>no</annotation></semantics>", "x"),
        # Broken markup loses no content.
        ("<mfrac><mi>a</mi></mfrac>", r"\frac{a}{}"),
        ("<msup></msup>", "{}"),
        ("x+1", "x+1"),
        ("<mi>x</mi>+1", "x+1"),
        ("<unknown><mi>x</mi></unknown>", "x"),
        ("<mtable><mi>x</mi></mtable>", r"\begin{gathered} x \end{gathered}"),
        ("<mtext>}{\\</mtext>", r"\text{\}\{\textbackslash{}}"),
        ("", ""),
    ],
)  # fmt: skip
def test_latex(mathml: str, tex: str) -> None:
    assert of(mathml) == tex


def test_prefixes_and_namespaces() -> None:
    """MathML in XML is converted in the same way."""
    xml = '<m:math xmlns:m="http://www.w3.org/1998/Math/MathML"><m:msqrt><m:mi>x</m:mi></m:msqrt></m:math>'
    assert latex(etree.fromstring(xml)) == r"\sqrt{x}"
    assert latex(html.fragment_fromstring(xml)) == r"\sqrt{x}"


def test_depth_is_bounded() -> None:
    """Elements that are too deep keep their characters, and nothing is duplicated."""
    depth = 5_000
    root = etree.Element("math")
    node = root
    for _ in range(depth):
        node = etree.SubElement(node, "msup")
        etree.SubElement(node, "mi").text = "a"
    written = latex(root)
    assert written.count("a") == depth
    assert 40 < written.count("^") <= 60
    assert balanced(written)


TAGS = (
    "math mrow mi mn mo mtext ms mspace mfrac msqrt mroot mfenced menclose mstyle mphantom maction semantics "
    "annotation mtable mtr mtd mlabeledtr msub msup msubsup munder mover munderover mmultiscripts mprescripts none "
    "mglyph span x"
).split()
ATTRIBUTES = st.dictionaries(
    st.sampled_from("mathvariant open close separators linethickness notation columnalign columnlines width selection "
                    "stretchy fence minsize alt lquote data-mjx-texclass form bevelled".split()),
    st.sampled_from(["", "bold", "{", "}", "\\", "0", "true", "false", "1.5em", "box", "right left", "solid", "OPEN",
                     "CLOSE", "normal", "(", "[", "|", "-3px", "9" * 30, "thinmathspace"]),
    max_size=2,
)  # fmt: skip
TOKENS = st.sampled_from([*"(){}[]|\\^_~&%$# xα∑∫′→⏞⏟∣‖+-=,ℝ𝐱é中", "sin", "foo", "\u2061", "lim", "a b", "mod", ""])


@st.composite
def trees(draw: st.DrawFn, depth: int = 0) -> etree._Element:
    """Return a tree of MathML tags, mostly in wrong places."""
    element = etree.Element(draw(st.sampled_from(TAGS)), draw(ATTRIBUTES))
    element.text = draw(TOKENS)
    for _ in range(draw(st.integers(0, 4 if depth < 4 else 0))):
        child = draw(trees(depth + 1))
        child.tail = draw(st.sampled_from(["", "", "}", "x"]))
        element.append(child)
    return element


@given(trees())
def test_braces_are_balanced_property(tree: etree._Element) -> None:
    """For any tree, the LaTeX has balanced braces, so that it can be part of any formula."""
    written = latex(tree)
    assert balanced(written)
    assert not written.endswith("\\")
    assert len(re.findall(r"\\left(?![a-z])", written)) == len(re.findall(r"\\right(?![a-z])", written))
