"""What is right for each structure. Markdown of any tool can pass these checks.

Each structure is a small page, ``NAME.html`` beside this file. ``right`` checks the Markdown and its rendered form.
``partly`` checks whether the content is there without its structure, if that can be told.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.structured.measures import Rendered

HERE = Path(__file__).parent
BASE_URL = "https://example.org/guide/page.html"

Check = Callable[[Rendered], object]


@dataclass(frozen=True)
class Feature:
    """A structure that Markdown should keep."""

    name: str
    title: str
    right: Check
    partly: Check = lambda _page: False

    @property
    def html(self) -> str:
        return (HERE / f"{self.name}.html").read_text(encoding="utf-8")

    def verdict(self, markdown: str) -> str:
        """Return ``yes``, ``part`` or ``no``."""
        rendered = Rendered(markdown)
        return "yes" if self.right(rendered) else "part" if self.partly(rendered) else "no"


def _formulas(*latex: str, text: str) -> Check:
    """These formulas and no others, in text that is otherwise unchanged."""
    wanted = ["".join(one.split()) for one in latex]

    def check(page: Rendered) -> bool:
        plain = " ".join(re.sub(r"\$+[^$]*\$+|\\+[(\[].*?\\+[)\]]", "@", page.text).split())
        return page.formulas == wanted and plain == text

    return check


def _code(*lines: str, language: str = "") -> Check:
    """One code block with exactly these lines and, if known, its language; no table, no line numbers."""

    def check(page: Rendered) -> bool:
        pres = page.find(".//pre")
        names = [code.get("class", "") for code in page.find(".//pre/code")]
        known = not language or any(name in (f"language-{language}", language) for name in names)
        return page.codes == ["\n".join(lines)] and len(pres) == 1 and not page.tables and known

    return check


def _has(*pieces: str) -> Check:
    """The pieces of text, in this order."""

    def check(page: Rendered) -> bool:
        at = 0
        for piece in pieces:
            at = page.text.find(piece, at)
            if at < 0:
                return False
        return True

    return check


def _cells(*rows: str) -> Check:
    """One table with these rows; cells are split at ``;``."""

    def check(page: Rendered) -> bool:
        if len(page.tables) != 1:
            return False
        found = [
            [" ".join(cell.text_content().split()) for cell in row if cell.tag in ("td", "th")]
            for row in page.tables[0].iter("tr")
        ]
        return found == [row.split(";") for row in rows]

    return check


def _all(*checks: Check) -> Check:
    return lambda page: all(check(page) for check in checks)


def _is(markdown: str) -> Check:
    """Text that contains a piece of Markdown unchanged."""
    return lambda page: markdown in page.markdown


def _paths(*paths: str) -> Check:
    """An element for each XPath."""
    return lambda page: all(page.find(path) for path in paths)


def _images(*urls: str) -> Check:
    return lambda page: [image.get("src") for image in page.find(".//img")] == list(urls)


def _caption(page: Rendered) -> bool:
    """The image, with its caption separate from the image and from the text."""
    alone = page.texts("./p[not(.//img)]") + page.texts(".//figcaption")
    image = page.find(f'.//img[@src="{_MILL}"]')
    return bool(image) and page.text == "Before. The mill at dawn After." and "The mill at dawn" in alone


def _table_caption(page: Rendered) -> bool:
    """The caption separate from the text, and not as a row."""
    rows = _cells("Tea;Price", "Green;4")(page)
    apart = "Prices of tea" in page.texts("./*") or "Prices of tea" in page.texts(".//caption")
    return bool(rows) and apart


def _padded(page: Rendered) -> bool:
    """Each value is below its header."""
    rows = [[" ".join(cell.text_content().split()) for cell in row] for row in page.find(".//tr")]
    columns = [row.index(value) for row in rows for value in ("2022", "12") if value in row]
    return len(columns) == 2 and columns[0] == columns[1]


def _definitions(page: Rendered) -> bool:
    """Terms and definitions are distinct: ``<dl>``, ``: `` lines, or definitions nested under their terms."""
    if len(page.find(".//dt")) == 2 and len(page.find(".//dd")) == 2:
        return True
    lines = [line.strip() for line in page.markdown.splitlines() if line.strip()]
    if len(lines) != 4:
        return False
    marked = [bool(re.match(r"(?::\s+|\s{2,})\S", line)) for line in page.markdown.splitlines() if line.strip()]
    terms = [line.strip("*_: ") for line in lines[::2]]
    return terms == ["Warp", "Weft"] and marked == [False, True, False, True] and not page.codes


def _joined(page: Rendered) -> bool:
    text = "".join(page.tree.itertext()).strip()
    return text == "这是重要的链接和文字。" and bool(page.find(".//a"))


def _in_cell(page: Rendered) -> bool:
    """The two commands on separate lines of one cell."""
    lines = [[line.strip() for line in "\n".join(cell.itertext()).splitlines()] for cell in page.find(".//td")]
    return any([line for line in cell if line] == ["pip install loom", "loom --version"] for cell in lines)


def _note(page: Rendered) -> bool:
    """A footnote in the syntax of GitHub and Pandoc, without links to it and back."""
    found = re.findall(r"(?m)^\[\^(\w+)\]:\s+(.*)$", page.markdown)
    marks = re.findall(r"\[\^(\w+)\](?!:)", page.markdown)
    return len(found) == 1 and marks == [found[0][0]] and found[0][1].strip() == "Measured by hand."


def _tasks(page: Rendered) -> bool:
    return page.texts("./ul/li") == ["[x] Wind the warp", "[ ] Tie it on"]


def _counts_down(page: Rendered) -> bool:
    """The numbers that a browser shows, in one list or several."""
    numbers = []
    for one in page.find("./ol"):
        start = int(one.get("start", "1"))
        numbers += [(start + i, " ".join(item.text_content().split())) for i, item in enumerate(one)]
    return numbers == [(3, "Bronze"), (2, "Silver"), (1, "Gold")]


_SUM = _formulas("x+1", text="The sum @ is odd.")
_NOTE = _has("Silk is strong", "Measured by hand.")
_TEAS = _cells("Tea;Price", "Green;4", "Black;5")
_MILL = "https://example.org/mill.jpg"
FEATURES = (
    Feature("katex-inline", "KaTeX, inline", _SUM),
    Feature("katex-display", "KaTeX, display", _formulas("a^2=b", text="We know that @ holds for all.")),
    Feature("mathjax2-script", "MathJax 2 script", _SUM, _has("The sum x+1 is odd.")),
    Feature(
        "mathjax3-assistive",
        "MathJax 3 assistive MathML",
        _SUM,
        lambda page: page.text.replace(" ", "") == "Thesumx+1isodd.",
    ),
    Feature(
        "mathml-bare",
        "MathML without annotation",
        lambda page: (
            len(page.formulas) == 2
            and page.formulas[0] == r"\sqrt{x+1}"
            and page.formulas[1] in (r"\sum_{i=0}^{n}i", r"\sum_{i=0}^ni", r"\sum\limits_{i=0}^{n}i")
        ),
    ),
    Feature(
        "wikipedia-math",
        "Wikipedia: hidden MathML and an image",
        lambda page: (
            page.formulas in (["x+1"], [r"{\displaystylex+1}"], [r"\displaystylex+1"]) and not page.find(".//img")
        ),
        lambda page: "x+1" in page.markdown and page.markdown.count("x+1") == 1,
    ),
    Feature(
        "delimiters-in-text",
        r"`\( \)` and `$$` in text",
        _formulas("x+1", "a^2=b_1", text="The sum @ is odd. @ holds."),
        _all(_has("x+1"), _is("a^2")),
    ),
    Feature("latex-image", "image of a formula", _SUM, lambda page: page.find('.//img[@alt="x+1"]')),
    Feature(
        "prices",
        "prices are not math",
        lambda page: not page.formulas and page.text == "It costs $5, or 7$ with a case." and r"\$5" in page.markdown,
        lambda page: page.text == "It costs $5, or 7$ with a case.",
    ),
    Feature(
        "code-with-language",
        "code with `language-` class",
        _code("def f(x):", "    return x < 1", "", "print(f(2))", language="python"),
        _all(_paths("./pre"), _has("def f(x): return x < 1 print(f(2))")),
    ),
    Feature(
        "code-brush",
        "code with `brush:` class",
        lambda page: (
            _code("if (a && b) {", "  go();", "}", language="js")(page)
            or _code("if (a && b) {", "  go();", "}", language="javascript")(page)
        ),
        _code("if (a && b) {", "  go();", "}"),
    ),
    Feature("pygments-line-numbers", "Pygments line number table", _code("if a:", "    go()")),
    Feature("github-blob", "GitHub line number table", _code("if a:", "    go()")),
    Feature(
        "inline-line-numbers",
        "line numbers within `<pre>`",
        _code("if a:", "    go()", "else:", "    stop()", "end()"),
    ),
    Feature(
        "basic-listing",
        "numbers that are code (BASIC)",
        _code('10 PRINT "HELLO"', "20 GOTO 10", "30 END"),
        _has('10 PRINT "HELLO"', "20 GOTO 10"),
    ),
    Feature(
        "simple-table",
        "table with a pipe in a cell",
        _cells("Name;Shape", "pipe;a|b", "bar;c"),
        _has("pipe", "a", "b", "bar"),
    ),
    Feature("table-caption", "table caption", _table_caption, _has("Before. ", "Prices of tea", "Green")),
    Feature(
        "marks-in-cells",
        "link and bold in a cell",
        _paths('.//table//a[@href="https://example.org/wren"]', ".//table//strong"),
        _paths(".//table//*[contains(., 'Wren')]"),
    ),
    Feature("spans", "rowspan and colspan", _paths('.//table//*[@rowspan="2"]', './/table//*[@colspan="2"]'), _padded),
    Feature(
        "nested-table",
        "table in a table",
        lambda page: len(page.find(".//table//table//tr")) == 2 and len(page.find(".//table//table//tr/*")) == 4,
        lambda page: page.tables and _has("Build", "one", "core", "two", "none")(page),
    ),
    Feature(
        "math-in-table",
        "formula in a table",
        lambda page: len(page.tables) == 1 and page.formulas == ["a^2"] and page.text.count("a") == 4,
    ),
    Feature(
        "nested-lists",
        "lists in lists",
        lambda page: page.texts("./ul/li/ol/li") == ["Rip saw", "Tenon saw"] and len(page.find("./ul/li")) == 2,
        _has("Saws", "Rip saw", "Tenon saw", "Planes"),
    ),
    Feature("ordered-start", "`<ol start>`", _paths('./ol[@start="3"]/li[2]'), _has("Sand.", "Paint.")),
    Feature(
        "paragraphs-in-items",
        "two paragraphs in an item",
        lambda page: (
            len(page.find("./ol")) == 1 and page.texts("./ol/li[1]/p") == ["First, the wood.", "It must be dry."]
        ),
        _has("First, the wood.", "It must be dry.", "Second"),
    ),
    Feature(
        "code-in-items",
        "code in an item",
        lambda page: (
            page.codes == ["pip install loom\nloom"]
            and len(page.find("./ol[1]/li")) == 2
            and page.find("./ol/li[1]/pre")
        ),
        _has("Install:", "pip install loom loom", "Weave."),
    ),
    Feature("definition-list", "definition list", _definitions, _has("Warp", "along", "Weft", "across")),
    Feature("figure", "figure with caption", _caption, _all(_paths(".//img"), _has("The mill at dawn"))),
    Feature("lazy-image", "lazy image", _images(_MILL), _is(_MILL)),
    Feature(
        "relative-urls",
        "relative URLs",
        _all(_paths('.//a[@href="https://example.org/tour.html"]'), _images(_MILL)),
        _paths('.//*[@href="https://example.org/tour.html" or @src="https://example.org/mill.jpg"]'),
    ),
    Feature("noscript-twin", "image with a `<noscript>` twin", _images(_MILL), _paths(f'.//img[@src="{_MILL}"]')),
    Feature(
        "players",
        "video, audio, embedded player",
        _all(_is("https://example.org/v.mp4"), _is("https://example.org/a.mp3"), _is("https://www.youtube.com/embed/")),
        lambda page: any(url in page.markdown for url in ("v.mp4", "a.mp3", "youtube.com")),
    ),
    Feature(
        "links",
        "links",
        _paths('.//a[@href="https://example.org/a_b" and .="the tour"]', './/a[@href="https://example.org/x"]'),
        _has("See the tour, more."),
    ),
    Feature("emphasis", "emphasis", _paths('.//em[.="very"]', './/strong[.="loud"]'), _has("It is very loud.")),
    Feature(
        "deleted", "deleted text", _paths('.//*[self::s or self::del][.="seven"]'), _has("The price is seven five.")
    ),
    Feature(
        "sub-and-sup",
        "subscript and superscript",
        lambda page: page.find('.//sub[.="2"]') and page.find('.//sup[.="2"]'),
        lambda page: "H~2~O" in page.markdown or "x^2" in page.markdown,
    ),
    Feature(
        "quote-and-rule",
        "quotation and rule",
        _paths("./blockquote[normalize-space()='Measure twice.']", "./hr"),
        _has("He wrote: Measure twice. The end."),
    ),
    Feature(
        "literal-tags",
        "tags as text",
        lambda page: _has("The tag <b> makes bold.", "<hr>")(page) and not page.find(".//b") and not page.find(".//hr"),
        _is("The tag <b> makes bold."),
    ),
    Feature(
        "escaping",
        "marks as text",
        lambda page: page.texts("./p") == ["# not a heading", "*not* emphasis, _not_ either", "1. not a list"],
        lambda page: any(text in page.texts("./p") for text in ("# not a heading", "*not* emphasis, _not_ either")),
    ),
    Feature("heading-anchor", "heading anchor", lambda page: page.texts("./h2") == ["Setup"], _paths("./h2")),
    Feature(
        "ruby",
        "ruby",
        lambda page: re.fullmatch("これは漢字[（(]かんじ[）)]です。", page.text) or page.find(".//ruby/rt"),
        _has("漢字"),
    ),
    Feature("cjk-joins", "Chinese without spaces", _joined, _has("重要", "链接", "文字")),
    Feature("katex-flattened", "KaTeX whose MathML lost its tags", _SUM),
    Feature("mathjax-drawn", "MathJax 3 without MathML", _SUM),
    Feature(
        "code-br-nbsp",
        "code with `<br>` and `&nbsp;`",
        lambda page: page.codes == ["def pick(n):\n    return n\n\npick(2)"],
        _has("Pick:", "def pick(n):", "return n", "pick(2)", "Then beat."),
    ),
    Feature("numbers-in-lines", "line numbers told by style alone", _code("if a:", "    go()", language="python")),
    Feature(
        "code-without-pre",
        "code without `<pre>`",
        _code(
            "if warp_is_wound(loom):",
            "    pick_and_beat(warp, weft, reed)",
            "    pick_and_beat(warp, weft, reed)",
            language="python",
        ),
        lambda page: page.text.count("pick_and_beat") == 2,
    ),
    Feature(
        "code-in-a-cell", "lines of code in a cell", _in_cell, _all(_has("pip install loom"), _has("loom --version"))
    ),
    Feature(
        "code-side-by-side",
        "inline code side by side",
        lambda page: page.texts(".//code") == ["a", "b"],
        _has("a", "b", "now."),
    ),
    Feature("footnotes", "footnotes", _note, _NOTE),
    Feature("footnotes-asciidoctor", "footnotes of Asciidoctor", _note, _NOTE),
    Feature("header-without-row", "table header without a row", _TEAS, _has("Tea", "Price", "Green", "Black")),
    Feature("tasks", "task list", _tasks, _has("Wind the warp", "Tie it on")),
    Feature("reversed", "`<ol reversed>`", _counts_down, _has("Bronze", "Silver", "Gold")),
    Feature(
        "callout",
        "call-out",
        _all(_paths("./blockquote"), _has("mind your fingers"), lambda page: re.search("warning", page.text, re.I)),
        _has("mind your fingers"),
    ),
    Feature(
        "hidden",
        "hidden text is left out",
        lambda page: page.text == "Silk is strong. How strong? Very strong.",
        lambda page: "previous instructions" not in page.text and "our yarn" not in page.text,
    ),
)
