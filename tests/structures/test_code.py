"""Code blocks that the pages of tests/structured do not have: detection, lines without numbers, and language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html

from scrapy_dripper import Document, Extractor
from scrapy_dripper.structures.code import code_block, code_of_lines, is_deep, without_numbers
from scrapy_dripper.structures.items import Code, CodeBlock, LineBreak, Text
from tests.html_strategies import markups


def first(markup: str) -> CodeBlock | None:
    """Return the code of the first element."""
    return code_block(html.fragment_fromstring(f"<div>{markup}</div>")[0])


NO_NUMBERS = ("1 a;\n2 b;", "1 a;\n3 b;\n4 c;", "1 a;\nb;\n2 c;", "1\n2\n3", "")
"""Two lines, lines that are not counted one by one, and numbers of nothing."""


@pytest.mark.parametrize(
    ("code", "without"),
    [
        ("1\ta();\n2\t\tb();\n3\tc();", "a();\n\tb();\nc();"),
        ("98 f()\n99   g()\n100 h()", "f()\n  g()\nh()"),
        *zip(NO_NUMBERS, NO_NUMBERS, strict=True),
    ],
)
def test_numbers_in_the_text(code: str, without: str) -> None:
    """Numbers before lines of code are removed with their padding if they count the lines."""
    assert without_numbers(code) == without


def test_code_in_many_elements_is_none_of_theirs() -> None:
    assert first(f"<div data-language=go>{'<div>' * 20}<pre>a</pre>") is None


@pytest.mark.parametrize(
    ("markup", "language", "by"),
    [
        ("<pre><code class='language-Brainfuck'>a</code></pre>", "brainfuck", "class"),
        ("<pre class='brush: c#; gutter: false'>a</pre>", "csharp", "brush"),
        ("<pre class='hljs go'>a</pre>", "go", "class"),
        ("<pre class='r'>a</pre>", None, None),
        ("<pre lang='ruby'>a</pre>", "ruby", "attribute"),
        ("<pre lang='en'>a</pre>", None, None),
        ("<pre class='language-none'>a</pre>", None, None),
        ("<div class='language-en code'><pre>a</pre></div>", None, None),
        ("<div class='language-switcher code'><pre>a</pre></div>", None, None),
        (f"<div data-language=go>{'<div>' * 12}<pre>a</pre>", "go", "attribute"),
    ],
)
def test_section_2_2_1_language(markup: str, language: str | None, by: str | None) -> None:
    """The language that the page names has its common name. Names for "no language" give none."""
    assert first(markup) == CodeBlock("a", language, by)


def test_section_2_2_1_code_of_lines() -> None:
    """A paragraph that consists of lines of inline code is a block."""
    lines = (Code("a"), LineBreak(), Text(" "), Code("b"), LineBreak(), LineBreak(), Code("c"))
    assert code_of_lines(lines) == CodeBlock("a\nb\n\nc")
    assert code_of_lines((Code("a"), LineBreak(), Text("b"))) is None
    assert code_of_lines((Code("a"),)) is None


WORDS = st.sampled_from(["a", "b = 1;", "\n", "  ", "\t", "1", "2 ", "x\ny\n", "{", ""])
TAGS = st.sampled_from("pre code span div table tbody tr td ol li br p b button img h2 listing a samp".split())
CLASSES = st.sampled_from(
    ["", "", "highlight", "line", "lineno", "gutter", "language-js", "hljs-ln", "blob-num", "linenos", "copy", "code",
     "syntaxhighlighter js", "crayon-syntax", "enlighter-default", "lntable", "CodeMirror", "brush:"]
)  # fmt: skip


@given(markups(TAGS, CLASSES.map(" class='{}'".format), WORDS))
def test_any_markup_property(markup: str) -> None:
    """For any element, detection does not raise, and code has characters of the element in order."""
    root = html.fragment_fromstring(markup, create_parent=True)
    for element in root.iter():
        found = code_block(element)
        if found is not None:
            characters = iter("".join(element.itertext()))
            assert all(char in characters for char in found.text if not char.isspace())
            assert found.text == found.text.strip("\n")


@given(st.lists(st.text(st.sampled_from("ab {}();\t<&1"), max_size=12), min_size=1, max_size=8))
def test_plain_code_is_exact_property(lines: list[str]) -> None:
    """Code without markup and numbers is unchanged, except for blanks at its end and in blank lines."""
    element = html.Element("pre")
    code = "\n".join(["x", *lines])
    element.text = code
    found = code_block(element)
    assert found is not None
    assert found.text == "\n".join(line if line.strip() else "" for line in code.rstrip().split("\n"))


@pytest.mark.parametrize(("named", "between", "deep"), [(4, 0, False), (5, 0, True), (5, 12, False)])
def test_elements_in_many_line_numbers_are_deep(named: int, between: int, deep: bool) -> None:
    """Only the nearest ancestors are searched."""
    root = html.fragment_fromstring("<div class=gutter>" * named + "<div>" * between + "<i>1</i>")
    assert is_deep(next(root.iter("i"))) is deep


def test_code_of_an_editor_that_only_names_it_by_an_attribute_is_kept() -> None:
    """A model sees nothing of code in the markup of Slate."""
    lines = "".join(
        f"<div data-slate-type=code-line><span data-slate-object=text>{line}</span></div>"
        for line in ("async def main():", "    a = fetch(1)", "    b = fetch(2)", "    await gather(a, b)")
    )
    code = f"<div class=x data-slate-type=pre><div data-slate-type=code-block><div>{lines}</div></div></div>"
    prose = "The tasks wait for each other, which nobody has asked for, and the reader of the log wonders why they do."
    html = f"<article><h1>Two tasks</h1><p>{prose}</p>{code}<p>Both ways are as fast. {prose}</p></article>"
    [page] = Extractor().extract([Document(html)])

    assert "```\nasync def main():\n    a = fetch(1)\n    b = fetch(2)\n    await gather(a, b)\n```" in (
        page.markdown or ""
    )
