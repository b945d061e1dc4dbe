"""Formulas between delimiters in text, beside those of tests/structured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.declared import Notation
from scrapy_dripper.structures.formulas import NOTATION, join_formulas, spans
from scrapy_dripper.structures.items import Code, Emphasis, Formula, LineBreak, Run, Strong, Sub, Sup, Text

DOLLARS = Notation(["MathJax = {tex: {inlineMath: [['$', '$']]}};"])
LOADED = Notation(["https://cdn.example.org/MathJax.js"])


def formulas(text: str, notation: Notation = NOTATION) -> list[str]:
    """Return the LaTeX of formulas; of those on display in dollar signs."""
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
    assert formulas(text, notation) == found


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
    """No two formulas share a character."""
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
