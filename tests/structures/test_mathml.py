"""MathML to LaTeX, beside tests/structured/variants/mathml.html."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree, html

from scrapy_dripper.structures.formulas import balanced
from scrapy_dripper.structures.mathml import latex


def of(inner: str) -> str:
    return latex(html.fragment_fromstring(f"<math>{inner}</math>"))


def test_what_shows_nothing() -> None:
    assert [of("<mphantom><mi>x</mi></mphantom>"), of("<msup></msup>"), of("")] == ["", "{}", ""]


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
