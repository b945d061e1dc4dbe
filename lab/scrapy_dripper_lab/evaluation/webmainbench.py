"""WebMainBench: its pages, and the metrics of its toolkit. Needs the extra ``[evaluate]``.

A line of its JSON Lines is a page: ``html``, ``main_html`` (the part that annotators chose), ``convert_main_content``
(the Markdown of that part), ``groundtruth_content`` (Markdown written by annotators, for 545 of the 7,809 pages) and
``meta``. The metrics are those of the Dripper paper (section 4.2.2) and of MinerU-HTML (section 3.2.1):

* ROUGE-5 over jieba's tokens, of html2text's Markdown of both the extraction and ``main_html``;
* edit similarities of the text, the code, the formulas and the tables, against ``groundtruth_content``;
* TEDS of the tables, as its paper defines it. (The toolkit passes each table to APTED as a string, which is a single
  node, so its own score is nearly 1 whenever both texts have a table.)

Scores can only be compared with published ones if the parts of a Markdown are found as in the toolkit
(https://github.com/opendatalab/WebMainBench). So its peculiarities are kept: an indented list does not count as code,
two prices in dollars count as a formula, and only the first of several tables is compared. Unlike in the toolkit, all
searches take linear time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from apted import APTED
from apted import Config as Costs
from lxml.html import HtmlElement
from rapidfuzz.distance import Levenshtein

from scrapy_dripper.choose import mask_of
from scrapy_dripper.declared.metadata import declared_language, detected_language
from scrapy_dripper.fallback.methods import flat_tree
from scrapy_dripper.output.main_html import main_tree, to_html
from scrapy_dripper.page import Page
from scrapy_dripper_lab.evaluation.figures import Figures
from scrapy_dripper_lab.evaluation.measure import OURS, Result, SystemAnswer, Truth, said
from scrapy_dripper_lab.evaluation.peers import canonical_markdown
from scrapy_dripper_lab.evaluation.text_measures import Cut, rouge
from scrapy_dripper_lab.scores import ReportTable, mean
from scrapy_dripper_lab.sets import json_lines

_fences = re.compile(r"```[\s\S]*?```").findall
_without_fences = re.compile(r"```[\s\S]*?```").sub
_without_inline_code = re.compile(r"`[^`]*`").sub
_no_code = re.compile(r"[-•*]\s|\d{1,20}\.\s").match
_sums = re.compile(r"\$[\d,]|\b(?:million|billion|thousand)\b", re.IGNORECASE).search
_rule_cell = re.compile(r":?-{3,}:?").fullmatch
_rule_row = re.compile(r"[\s|:-]+").fullmatch

_two_dollars = re.compile(r"(?<!\\)\$\$")
_dollar = re.compile(r"(?<!\\)\$")
_opens_block = re.compile(r"(?<!\\)\\\[")
_closes_block = re.compile(r"(?<!\\)\\\]")
_opens_inline = re.compile(r"(?<!\\)\\\(")
_closes_inline = re.compile(r"(?<!\\)\\\)")
_DELIMITERS = (
    (_two_dollars, _two_dollars),
    (_opens_block, _closes_block),
    (_dollar, _dollar),
    (_opens_inline, _closes_inline),
)
"""Opening and closing marks of formulas, in the order of the search. A formula in ``$$`` is found only once, because
the search for a single ``$`` finds two empty formulas there.
"""


def code(text: str) -> str:
    """Return the code blocks, one after the other: first those in fences of backticks, then the indented ones."""
    fenced = ("\n".join(block.split("\n")[1:-1]) for block in _fences(text))
    return "\n".join(block for block in (*fenced, *_indented_code(text)) if block)


def formulas(text: str) -> str:
    """Return the formulas outside of code, one on each line, without their marks and sorted by the kind of marks."""
    prose = _without_inline_code("", _without_fences("", text))
    found = (one.strip() for opening, closing in _DELIMITERS for one in _between(prose, opening, closing))
    return "\n".join(filter(None, found))


def html_tables(text: str) -> list[HtmlElement]:
    """Return the HTML tables that are not inside another table. Very deep ones become siblings."""
    found = flat_tree(text).iter("table") if "<table" in text.lower() else ()
    return [table for table in found if next(table.iterancestors("table"), None) is None]


def markdown_tables(text: str) -> list[str]:
    """Return the rows of each Markdown table. The second row must be a rule."""
    found: list[str] = []
    rows: list[str] = []
    for line in [*text.split("\n"), ""]:
        if "|" in line:
            rows.append(line)
            continue
        if len(rows) >= 2 and all(not cell.strip() or _rule_cell(cell.strip()) for cell in rows[1].split("|")):
            found.append("\n".join(rows))
        rows = []
    return found


def table_of_rows(markdown: str) -> list[HtmlElement]:
    """Return a Markdown table as an element: empty cells and rules are left out, and the first row is the header."""
    rows: list[str] = []
    for line in map(str.strip, markdown.split("\n")):
        if "|" in line and not _rule_row(line):
            tag = "td" if rows else "th"
            rows.append("".join(f"<{tag}>{cell.strip()}</{tag}>" for cell in line.split("|") if cell.strip()))
    return html_tables(f"<table>{''.join(f'<tr>{row}</tr>' for row in rows if row)}</table>") if rows else []


def first_table(text: str) -> str:
    """Return the cells of the table that the toolkit compares, separated by spaces, with a line for each row.

    If there is an HTML table, it is the first of these. Otherwise, it has the rows of all Markdown tables.
    """
    found = html_tables(text) or table_of_rows("\n".join(markdown_tables(text)))
    rows = (
        " ".join("".join(map(str.strip, cell.itertext())) for cell in row.iter("th", "td"))
        for table in found[:1]
        for row in table.iter("tr")
    )
    return "\n".join(filter(None, rows))


def _between(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> Iterator[str]:
    start = opening.search(text)
    while start and (end := closing.search(text, start.end())):
        yield text[start.end() : end.start()]
        start = opening.search(text, end.end())


def _indented_code(text: str) -> Iterator[str]:
    """Yield the blocks of two or more indented lines after a blank line, without their indentation.

    Blocks with a line that looks like an item of a list, or like a sum of money, are left out.
    """
    lines = text.split("\n")
    first = 1  # The first line that can be the blank line: there must be a line before it.
    while first < len(lines):
        if lines[first].strip():
            first += 1
            continue
        end = first
        while end < len(lines) and not lines[end].strip():
            end += 1
        # Blank lines may be indented too. They then belong to the block if it would be too short without them.
        # At least two lines: the last line alone is no block.
        pairs = ((k, lines[k : k + 2]) for k in range(min(end, len(lines) - 2), first, -1))
        start = next((k for k, pair in pairs if all(map(_is_indented, pair))), None)
        if start is None:
            first = end
            continue
        stop = start
        while stop < len(lines) and _is_indented(lines[stop]):
            stop += 1
        block = [line for line in lines[start:stop] if line.strip()]
        if len(block) > 1 and not any(_no_code(line.strip()) or _sums(line.strip()) for line in block):
            yield "\n".join(line[1:] if line.startswith("\t") else line[4:] for line in block)
        # An empty line ends a block and cannot begin the next one. So there must be two empty lines between blocks.
        first = stop + 1 if stop < len(lines) and not lines[stop] else stop


def _is_indented(line: str) -> bool:
    return line.startswith(("    ", "\t"))


MAX_NODE_PAIRS = 1_000_000
"""Maximum product of the numbers of nodes of two trees that are compared. Larger trees take minutes, because the time
is cubic.
"""


def edit_similarity(one: str, other: str) -> float:
    """Return 1 - Levenshtein distance / length of the longer text; 1 for two empty texts."""
    return float(Levenshtein.normalized_similarity(one, other))


@dataclass(frozen=True)
class Node:
    """A node of the tree that stands for the tables of a page."""

    tag: str
    text: str = ""
    spans: tuple[str, str] = ("1", "1")
    children: tuple[Node, ...] = ()

    @property
    def size(self) -> int:
        """Number of nodes of the subtree, including this node."""
        return 1 + sum(child.size for child in self.children)


class _Costs(Costs):  # type: ignore[misc]
    """The costs of the paper: 1 for inserting, deleting or renaming a node, and the share of changed characters for a
    change of text.
    """

    def rename(self, node1: Node, node2: Node) -> float:
        if node1.tag != node2.tag or node1.spans != node2.spans:
            return 1.0
        return 1.0 - edit_similarity(node1.text, node2.text)

    def children(self, node: Node) -> Sequence[Node]:
        return node.children


def teds(one: Sequence[HtmlElement], other: Sequence[HtmlElement]) -> float | None:
    """Return the similarity of the tables of two pages: 1 - distance / nodes of the larger tree.

    Header cells count as cells. Groups of rows do not count. Neither do rows without text, because Markdown must write
    an empty header if a table has none. Two pages without tables are equal. Return None if the trees exceed
    :data:`MAX_NODE_PAIRS`.
    """
    first, second = (Node("page", children=tuple(map(_table, tables))) for tables in (one, other))
    if not first.children or not second.children:
        return float(len(first.children) == len(second.children))
    if first.size * second.size > MAX_NODE_PAIRS:
        return None
    distance = float(APTED(first, second, _Costs()).compute_edit_distance())
    return 1.0 - distance / (max(first.size, second.size) - 1)


def _table(table: HtmlElement) -> Node:
    rows = [
        Node("tr", children=tuple(_cell(cell) for cell in row if cell.tag in ("td", "th")))
        for row in table.iter("tr")
        if next(row.iterancestors("table")) is table and (row.text_content().strip() or row.find(".//img") is not None)
    ]
    return Node("table", children=tuple(rows))


def _cell(cell: HtmlElement) -> Node:
    nested = [one for one in cell.iter("table") if next(one.iterancestors("td", "th")) is cell]
    text = "" if nested else " ".join(" ".join(cell.itertext()).split())
    spans = (cell.get("rowspan", "1"), cell.get("colspan", "1"))
    return Node("td", text, spans, tuple(map(_table, nested)))


OVERALL, ALL = "overall", "all"

KINDS = ("table", "code", "equation")
"""The kinds of rich content in the meta data of a page: a list of what was found, or a word."""
WITH, WITHOUT = "with", ("without", "")

_marks = re.compile(r"</?marked-(?:tail|text|inline)\b[^<>]*>", re.IGNORECASE).sub
_attributes = re.compile(
    r"""\s(?:data-anno-uid|cc-select)\s{0,9}=\s{0,9}(?:"[^"<>]*"|'[^'<>]*'|[^\s<>"']+)""", re.IGNORECASE
).sub


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPage(Truth):
    """A page of WebMainBench, without the marks of the annotators' tool.

    Its groups are those of the paper's table 2: ``all``, its level, and what it contains.
    """

    main_html: str | None
    converted: str | None
    """html2text's Markdown of ``main_html``."""
    truth: str | None
    """The Markdown written by annotators; None for most pages."""

    def result(self, answer: SystemAnswer, cut: Cut | None) -> Result:
        """Return the scores of an answer. ROUGE-5 compares its HTML as written by html2text, or its own Markdown."""
        assert cut is not None
        try:
            canonical = canonical_markdown(answer.html) if answer.html else answer.markdown
        except Exception as error:  # of html2text, which then counts as that of the system
            return self.result(SystemAnswer(replace(answer.run, error=said(error))), cut)
        return Result(
            answer.run,
            rouge=None if self.converted is None else rouge(canonical, self.converted, cut),
            parts={} if self.truth is None else with_overall(part_scores(answer.markdown, self.truth)),
        )


def read_pages(path: Path) -> Iterator[BenchPage]:
    """Yield the pages of a file. Raise :exc:`DataError` if it cannot be read, or if a line is not a page."""
    for number, page in enumerate(json_lines(path, read_page, "a page of WebMainBench"), 1):
        yield page if page.id else replace(page, id=f"page {number}")


def read_page(record: Any) -> BenchPage:
    """Return the page of a JSON value, without an id if it has none. Raise ValueError or TypeError if it is no page."""
    if not isinstance(record, dict) or not isinstance(record.get("html"), str):
        found = ", ".join(map(repr, list(record)[:5])) if isinstance(record, dict) else type(record).__name__
        raise ValueError(f"expected an object with 'html' (got {found})")
    main_html, converted, truth = map(record.get, ("main_html", "convert_main_content", "groundtruth_content"))
    for key, value in (("main_html", main_html), ("convert_main_content", converted), ("groundtruth_content", truth)):
        if not isinstance(value, str | None):
            raise ValueError(f"expected text as {key!r} (got {type(value).__name__})")
    if converted is None and main_html is not None:
        converted = canonical_markdown(main_html)
    if converted is None and truth is None:
        raise ValueError("expected 'main_html', 'convert_main_content' or 'groundtruth_content' (got none of them)")
    if not isinstance(meta := record.get("meta") or {}, dict):
        raise ValueError(f"expected an object as 'meta' (got {type(meta).__name__})")
    return BenchPage(
        id=str(record.get("track_id") or record.get("id") or ""),
        url=str(record.get("url") or ""),
        html=without_annotation(record["html"]),
        main_html=main_html,
        converted=converted,
        truth=truth,
        groups=groups_of(meta),
    )


def line_of(name: str, url: str, html: str, page: Page, main: npt.NDArray[np.bool_], more: Mapping[str, Any]) -> str:
    """Return the line of a page whose n blocks are labelled, with ``more`` meta data.

    Kinds of content are told by tags, as in the Dripper paper (A.5). The language is the one that the page declares, or
    that of its text.
    """
    tree = main_tree(page, mask_of(page, main))
    main_html, prose = to_html(tree), page.text_of(main)
    parts = {
        "table": tree.find(".//table") is not None,
        "code": tree.find(".//code") is not None,
        "equation": tree.find(".//math") is not None or bool(formulas(prose)),
    }
    meta = {kind: WITH if there else WITHOUT[0] for kind, there in parts.items()}
    if language := declared_language(page.declared) or detected_language(prose):
        meta["language"] = "en" if language.lower().split("-")[0] == "en" else "non_en"
    record: dict[str, Any] = {"track_id": name, "url": url, "html": html, "main_html": main_html}
    record |= {"convert_main_content": canonical_markdown(main_html), "meta": {**meta, **more}}
    return json.dumps(record, ensure_ascii=False)


def without_annotation(html: str) -> str:
    """Return a page without the elements and attributes that the annotators' tool wrote into it.

    The attribute ``cc-select`` marks the answer itself. The elements are placed around texts, and would separate them
    from their paragraphs.
    """
    return _attributes("", _marks("", html))


def groups_of(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the groups of a page: level, language, style, and each kind of rich content that it has."""
    groups = [ALL]
    if level := meta.get("level"):
        groups.append("simple" if level == "easy" else str(level))  # the word in figure 9 of MinerU-HTML
    if language := meta.get("language"):
        groups.append("English" if language == "en" else "other languages")
    groups += [kind for kind in KINDS if meta.get(kind) not in (*WITHOUT, None, [], {}, False, 0)]
    if style := meta.get("style"):
        forum = str(style).lower().startswith(("forum", "conversation"))
        groups.append("conversational" if forum else "not conversational")
    return tuple(groups)


def with_overall(parts: dict[str, float | None]) -> dict[str, float | None]:
    """Return the scores of parts after their mean over those that apply, the toolkit's overall score of a page."""
    scores = [score for score in parts.values() if score is not None]
    return {OVERALL: sum(scores) / len(scores) if scores else None, **parts}


def part_scores(prediction: str, truth: str) -> dict[str, float | None]:
    """Return the edit similarities of a Markdown with the true one. A value is None if neither has that part.

    As in the toolkit, the text is all of the Markdown, and only the first of several HTML tables is compared by its
    text. Formulas are those that regular expressions find. (The toolkit can also ask a language model which of them are
    prices.)
    """

    def similarity(part: Callable[[str], str]) -> float | None:
        one, other = part(prediction), part(truth)
        return edit_similarity(one, other) if one or other else None

    found, wanted = (
        [*html_tables(text), *(table for rows in markdown_tables(text) for table in table_of_rows(rows))]
        for text in (prediction, truth)
    )
    return {
        "text_edit": similarity(str),
        "code_edit": similarity(code),
        "formula_edit": similarity(formulas),
        "table_edit": similarity(first_table),
        "table_TEDS": teds(found, wanted) if found or wanted else None,
    }


DIGITS = 4
"""Number of digits to which a stored score must be equal to ours."""
_ROUGE = {"human_rouge_n": "groundtruth_content", "convert_rouge_n": "convert_main_content"}
"""The toolkit's names of ROUGE-5, and the texts that it is measured against."""


def check(path: Path, cut: Cut) -> tuple[int, list[str]]:
    """Compute again each score in the ``dataset_with_results.jsonl`` of the toolkit. Return the number of scores, and a
    sentence for each score that differs.

    A page there has ``NAME_content``, the text of an extractor, and ``NAME_METRIC_score`` for each metric that applies.
    Raise :exc:`DataError` if a line is not an object.
    """
    count, differences = 0, []
    for number, scores in enumerate(json_lines(path, partial(_stored_scores, cut=cut), "a page with results"), start=1):
        for page, name, metric, stored, ours in scores:
            count += 1
            if ours is None or round(ours, DIGITS) != round(stored, DIGITS):
                value = "does not apply" if ours is None else f"is {ours:.6f}"
                differences.append(f"{page or f'page {number}'}: {metric} of {name} {value}, stored is {stored:.6f}")
    return count, differences


def _stored_scores(record: dict[str, Any], cut: Cut) -> list[tuple[str, str, str, float, float | None]]:
    """Return the id of a page, which may be empty, and extractor, metric, stored value and our value of each score that
    is stored for it.
    """
    page = record.get("track_id") or record.get("id") or ""
    found = []
    for name in [key.removesuffix("_success") for key, good in record.items() if key.endswith("_success") and good]:
        text, truth = record.get(f"{name}_content") or "", record.get("groundtruth_content") or ""
        ours = with_overall(part_scores(text, truth))
        for metric in (*ours, *_ROUGE):
            if isinstance(stored := record.get(f"{name}_{metric}_score"), int | float):
                if metric in _ROUGE:
                    ours[metric] = rouge(text, record.get(_ROUGE[metric]) or "", cut).f1
                found.append((page, name, metric, float(stored), ours[metric]))
    return found


GROUPS = (ALL, "simple", "mid", "hard", "table", "code", "equation", "conversational")
"""The columns of the paper's table 2, in its order. Other groups follow after them."""


@dataclass(frozen=True)
class BenchFigures(Figures):
    """The means of all systems over the pages of a file."""

    @property
    def head(self) -> str:
        """What was measured, in a line."""
        count = sum(bool(one.parts) for one in self.results(OURS))
        return f"{len(self.found):,} pages of {self.about['file']}, {count:,} with Markdown by annotators"

    def parts(self, system: str) -> dict[str, float]:
        """Return the mean of each metric of parts over the pages that it applies to, and ``overall``, their mean.

        As in the toolkit, a metric that applies to no page counts as 0 in the overall score.
        """
        every = [one.parts for one in self.results(system) if one.parts]
        scores = {
            name: [score for one in every if (score := one[name]) is not None]
            for name in (every[0] if every else ())
            if name != OVERALL
        }
        overall = mean([mean(some) if some else 0.0 for some in scores.values()])
        return {OVERALL: overall, **{name: mean(some) for name, some in scores.items()}}

    def tables(self) -> Iterator[ReportTable]:
        """Yield the tables of the metrics that apply to some page."""
        pages = {group: [one for one in self.found if group in one.groups] for group in self._groups()}
        if any(one.rouge for one in self.results(OURS)):
            columns = {"system": "", **{f"{name} ({len(some):,})": ".4f" for name, some in pages.items()}}
            rows = [
                [
                    label,
                    *(mean([prf.f1 for one in some if (prf := one.results[name].rouge)]) for some in pages.values()),
                ]
                for name, label in self.labels.items()
            ]
            yield ReportTable("ROUGE-5 F1 on html2text's Markdown, by group (pages)", columns, rows)
        means = {label: self.parts(name) for name, label in self.labels.items()}
        if len(ours := next(iter(means.values()))) > 1:
            title = "Parts of the Markdown, over the pages where either text has them"
            rows = [[label, *some.values()] for label, some in means.items()]
            yield ReportTable(title, {"system": "", **dict.fromkeys(ours, ".4f")}, rows)
        failed = [
            [label, sum(one.run.error is not None for one in self.results(name))] for name, label in self.labels.items()
        ]
        if rows := [row for row in failed if row[1]]:
            yield ReportTable("Exceptions, whose pages count as empty", {"system": "", "pages": ","}, rows)
        yield from self.answered()

    def _groups(self) -> list[str]:
        """Return the groups: those of the paper first, then others by name."""
        names = {name for one in self.found for name in one.groups}
        return [*(name for name in GROUPS if name in names), *sorted(names - set(GROUPS))]
