"""Detection of formulas, of their copies and of their LaTeX; MathML to LaTeX; and formulas between delimiters in text.

They stand beside the generators and ``variants/mathml.html`` of tests/structured.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree, html

from scrapy_dripper.declared import Notation
from scrapy_dripper.structures import formulas
from scrapy_dripper.structures.formulas import NOTATION, balanced, formula, join_formulas, spans
from scrapy_dripper.structures.items import Code, Emphasis, Formula, LineBreak, Run, Strong, Sub, Sup, Text
from scrapy_dripper.structures.mathml import latex

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


@pytest.mark.parametrize("code", ["FFFE", "1FFFF", "D800", "85", "9F", "7"])
def test_drawn_codes_that_are_no_characters_are_left_out(code: str) -> None:
    """In the output of MathJax 3, the characters are the codes of glyphs."""
    glyphs = "".join(f'<mjx-mi><mjx-c class="mjx-c{one}"></mjx-c></mjx-mi>' for one in ("41", code))
    found = first(f"<mjx-container jax='CHTML'><mjx-math>{glyphs}</mjx-math></mjx-container>")
    assert found is not None
    assert found.latex == "A"


# ---------------------------------------------------------------------- MathML to LaTeX
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


# ---------------------------------------------------------------------- between delimiters
DOLLARS = Notation(["MathJax = {tex: {inlineMath: [['$', '$']]}};"])
LOADED = Notation(["https://cdn.example.org/MathJax.js"])


def latex_between(text: str, notation: Notation = NOTATION) -> list[str]:
    """Return the LaTeX of latex_between; of those on display in dollar signs."""
    return [f"${found.latex}$" if found.display else found.latex for _, _, found in spans(text, notation)]


@pytest.mark.parametrize(
    ("text", "notation", "found"),
    [
        # The page's own configuration of dollar signs is used.
        ("a $10$ and $abc$", DOLLARS, ["10", "abc"]),
        ("only $5 and $6", DOLLARS, []),
        # If MathJax or KaTeX is loaded, a Chinese letter beside a dollar sign is not part of the same word.
        ("（$a$），US$x$", LOADED, ["a"]),
        ("设a$x$b", LOADED, []),
    ],
)
def test_notation_of_the_page(text: str, notation: Notation, found: list[str]) -> None:
    assert latex_between(text, notation) == found


@pytest.mark.parametrize(
    ("script", "dollars", "loaded"),
    [
        ("MathJax.Hub.Config({tex2jax: {inlineMath: [['$','$'], ['\\\\(','\\\\)']]}});",
         True, True),
        ("MathJax = {tex: {inlineMath: [['\\\\(', '\\\\)'], ['$', '$']]}};", True, True),
        ("MathJax = {tex: {inlineMath: {'[+]': [['$', '$']]}}};", True, True),
        ("renderMathInElement(e, {delimiters: [{left: '$$', right: '$$'}, {left: '$', right: '$'}]})",
         True, False),
        ("MathJax = {tex: {inlineMath: [['\\\\(', '\\\\)']], displayMath: [['$$', '$$']]}};", False, True),
        ("https://cdn.example.org/MathJax.js?config=AM_HTMLorMML-full", False, True),
        ("https://cdn.example.org/npm/katex@0.16/dist/contrib/auto-render.min.js", False, True),
        ("jQuery('$').hide()", False, False),
    ],
)  # fmt: skip
def test_notation(script: str, dollars: bool, loaded: bool) -> None:
    """The settings of MathJax 2, 3 and 4 and of KaTeX."""
    found = Notation(["var a = 1;", script])
    assert (found.dollars, found.loaded) == (dollars, loaded)


def test_formulas_over_runs() -> None:
    """A formula can contain line breaks, or have lost its underscores to emphasis. The text around it is kept."""
    assert join_formulas((Text("a $$\\sum"), Emphasis((Text("{i}^n x"),)), Text("i$$ b"))) == (
        Text("a "), Formula("\\sum_{i}^n x_i", "delimiters", True), Text(" b"),
    )  # fmt: skip
    assert join_formulas((Text("\\[a"), LineBreak(), Text("b\\] c"), Strong((Text("d"),)))) == (
        Formula("a\nb", "delimiters", True), Text(" c"), Strong((Text("d"),)),
    )  # fmt: skip
    assert join_formulas((Text("\\(x"), Sub((Text("1"),)), Text("\\)"))) == (Formula("x_{1}", "delimiters"),)
    code = (Text("\\(a"), Code("b"), Text("c\\)"))
    assert join_formulas(code) == code


PIECES = st.sampled_from(["$", "$$", "\\(", "\\)", "\\[", "\\]", "\\begin{align}", "\\end{align}", "`", "\\", "[tex]",
                          "[/tex]", "x", "5", " ", "_", "word", "\n", "{", "}", "é"])  # fmt: skip


@given(st.lists(PIECES, max_size=25).map("".join), st.booleans())
def test_formulas_are_in_order_property(text: str, dollars: bool) -> None:
    """No two latex_between share a character."""
    end = 0
    for start, stop, _ in spans(text, DOLLARS if dollars else NOTATION):
        assert end <= start < stop <= len(text)
        end = stop


RUNS = st.lists(
    st.one_of(
        PIECES.map(Text),
        st.just(LineBreak()),
        PIECES.map(lambda text: Emphasis((Text(text),))),
        PIECES.map(lambda text: Sup((Text(text),))),
        st.just(Code("c")),
    ),
    max_size=15,
)


@given(RUNS)
def test_runs_are_kept_property(runs: list[Run]) -> None:
    """Code is never part of a formula, and all other runs are kept in order."""
    joined = join_formulas(tuple(runs))
    assert [run for run in joined if isinstance(run, Code)] == [run for run in runs if isinstance(run, Code)]
    rest = "".join(run.text for run in joined if isinstance(run, Text))
    remaining = iter("".join(run.text for run in runs if isinstance(run, Text)))
    assert all(char in remaining for char in rest)
