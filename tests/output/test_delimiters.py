"""Formulas between delimiters in text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.output.delimiters import (
    Notation,
    join_formulas,
    notation,
    spans,
)
from scrapy_dripper.output.items import Code, Emphasis, Formula, LineBreak, Run, Strong, Sub, Sup, Text


def formulas(text: str, **settings: bool) -> list[tuple[str, bool]]:
    return [(found.latex, found.display) for _, _, found in spans(text, Notation(**settings))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"a \(x\) b", [("x", False)]),
        (r"a \[ x \] b", [("x", True)]),
        ("$$x = 1$$", [("x = 1", True)]),
        (r"\begin{align} a &= b \end{align}", [(r"\begin{align} a &= b \end{align}", True)]),
        (r"\begin{equation*}\begin{cases} a \end{cases}\end{equation*}",
         [(r"\begin{equation*}\begin{cases} a \end{cases}\end{equation*}", True)]),
        ("[tex]x[/tex] [itex]y[/itex]", [("x", True), ("y", False)]),
        (r"$latex \pi r^2$", [(r"\pi r^2", False)]),
        (r"\(a\)\(b\)", [("a", False), ("b", False)]),
        ("$x$", [("x", False)]),
        ("so $f(x) = y_1$, and $n > 0$.", [("f(x) = y_1", False), ("n > 0", False)]),
        (r"\$5 and $\alpha$", [(r"\alpha", False)]),
        (r"$\text{if } x$", [(r"\text{if } x", False)]),
    ],
)  # fmt: skip
def test_formulas(text: str, found: list[tuple[str, bool]]) -> None:
    """LaTeX and forum delimiters, and dollar signs around text that looks like a formula."""
    assert formulas(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5, or $50 a year.",
        "$1,000-$2,000",
        "$5M–$10M, US$20, A$30 and R$ 40",
        "from $20/month to $200/year (was $250)",
        "($5) (x $6)",
        "$10$",
        "$5-$10$",
        "$HOME/bin:$PATH",
        "echo $a $b",
        "$foo_bar and $baz_qux$",
        "$this$is",
        "Lunch $$ · Italian, dinner $$$ · French $$",
        "$ 5 and $ 6",
        r"the regex \( and \) or \[ and \]",
        r'find . \( -name "*.js" -o -name "*.ts" \) -print',
        r"\(unclosed",
        r"\begin{document} text \end{document}",
        r"\begin{align} a \end{equation}",
        r"\[ \]",
        "$$$$",
        "`code`",
        "",
    ],
)
def test_no_formulas(text: str) -> None:
    """Money, shell variables, price classes, regular expressions and unclosed delimiters stay text."""
    assert formulas(text) == []


def test_notation_of_the_page() -> None:
    """The page's own configuration of dollar signs is used."""
    assert formulas("a $10$ and $abc$", dollars=True) == [("10", False), ("abc", False)]
    assert formulas("only $5 and $6", dollars=True) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("设$x$为实数，则$y_1$成立。", [("x", False), ("y_1", False)]),
        ("令$f(x)$，（$a$）", [("f(x)", False), ("a", False)]),
        ("변수$n$은 정수", [("n", False)]),
        ("价格$5和$6，US$x$", []),
        ("设a$x$b", []),
    ],
)
def test_dollars_beside_scripts_without_spaces(text: str, found: list[tuple[str, bool]]) -> None:
    """If MathJax or KaTeX is loaded, a Chinese letter beside a dollar sign is not part of the same word."""
    assert formulas(text, loaded=True) == found


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("MathJax.Hub.Config({tex2jax: {inlineMath: [['$','$'], ['\\\\(','\\\\)']]}});",
         Notation(dollars=True, loaded=True)),
        ("MathJax = {tex: {inlineMath: [['\\\\(', '\\\\)'], ['$', '$']]}};", Notation(dollars=True, loaded=True)),
        ("MathJax = {tex: {inlineMath: {'[+]': [['$', '$']]}}};", Notation(dollars=True, loaded=True)),
        ("renderMathInElement(e, {delimiters: [{left: '$$', right: '$$'}, {left: '$', right: '$'}]})",
         Notation(dollars=True)),
        ("MathJax = {tex: {inlineMath: [['\\\\(', '\\\\)']], displayMath: [['$$', '$$']]}};", Notation(loaded=True)),
        ("https://cdn.example.org/MathJax.js?config=AM_HTMLorMML-full", Notation(loaded=True)),
        ("https://cdn.example.org/npm/katex@0.16/dist/contrib/auto-render.min.js", Notation(loaded=True)),
        ("jQuery('$').hide()", Notation()),
    ],
)  # fmt: skip
def test_notation(script: str, found: Notation) -> None:
    """The settings of MathJax 2, 3 and 4 and of KaTeX."""
    assert notation(["var a = 1;", script]) == found


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
    for start, stop, _ in spans(text, Notation(dollars)):
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
