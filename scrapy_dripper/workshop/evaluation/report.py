"""Write an evaluation as a self-contained HTML file, without scripts and without external style sheets or images."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import groupby

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.page import PageError, read
from scrapy_dripper.workshop.dataset.metrics import page_title
from scrapy_dripper.workshop.dataset.pages import Sample
from scrapy_dripper.workshop.dataset.tables import ReportTable
from scrapy_dripper.workshop.evaluation.blocks import BlockResult
from scrapy_dripper.workshop.evaluation.figures import Evaluation

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
FOLD = 4
"""If more consecutive blocks than this are correctly left out, they are folded."""
LONGEST = 700
"""Number of characters to show of a block."""
LONGEST_TRUTH = 5_000
"""Number of characters to show of the true text."""

_KINDS = {"hit": "hit", "missed": "missed", "wrong": "wrongly kept", "other": "left out", "copy": "copy"}
_forbidden = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]")

_STYLE = """
body { margin: 0 auto; max-width: 1080px; padding: 28px 24px 80px; color: #1d2329; background: #fff;
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h2 { font-size: 20px; margin: 40px 0 8px; overflow-wrap: anywhere; }
p { max-width: 76ch; } .soft, th, summary { color: #5b6770; }
.note { border-left: 4px solid #c98a00; background: #fff7e3; padding: 10px 14px; max-width: none; }
.alarm { border-color: #b3261e; background: #fdecea; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: 4px 8px; text-align: right; border-bottom: 1px solid #dde2e6; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
section.page { display: none; } section.page:target { display: block; }
ol { list-style: none; padding: 0; font-size: 14px; }
li { padding: 3px 8px; border-left: 5px solid transparent; margin: 1px 0; white-space: pre-wrap;
  overflow-wrap: anywhere; }
.hit { background: #e7f4ec; border-color: #2a8a57; } .missed { background: #fdeae7; border-color: #c2372b; }
.wrong { background: #fff1d6; border-color: #d1890a; } .other, .copy { color: #5b6770; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; }
@media print { section.page { display: block; break-before: page; } }
"""


def report(evaluation: Evaluation, config: Config, worst: int) -> str:
    """Return the report, including the ``worst`` pages."""
    title = f"scrapy-dripper on {evaluation.data}"
    pages = evaluation.worst(worst)
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">{len(evaluation.samples):,} annotated pages, data {evaluation.data_sha256[:12]}; '
        f"{escape(evaluation.ours.label)}</p>",
        *(
            f'<p class="note{" alarm" if note.startswith("IN-SAMPLE") else ""}">{escape(note)}</p>'
            for note in evaluation.notes
        ),
        *map(_table, evaluation.tables()),
        f"<h2 id='worst'>Worst pages</h2>\n<p>The pages with our lowest word F1. Each opens below.</p>\n<ol>"
        f"{''.join(_link(evaluation, sample, number) for number, sample in enumerate(pages))}</ol>",
        *(_page(evaluation, sample, config, number) for number, sample in enumerate(pages)),
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/><title>{escape(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"/>\n'
        f'<meta name="viewport" content="width=device-width"/><style>{_STYLE}</style></head>\n<body>'
        + "\n".join(body)
        + "</body></html>\n"
    )


def escape(value: object) -> str:
    """Escape text. Characters that are not allowed in documents become U+FFFD."""
    return html.escape(_forbidden.sub("\ufffd", str(value)))


def _table(table: ReportTable) -> str:
    """Return a table in which shares have bars."""
    rows = []
    for values, cells in zip(table.rows, table.cells(), strict=True):
        shown = []
        for value, cell, form in zip(values, cells, table.columns.values(), strict=True):
            bar = isinstance(value, float) and form in (".4f", ".3f", ".1%") and 0 <= value <= 1
            style = f' style="background:linear-gradient(90deg,#cfe3f3 {value:.1%},transparent 0)"' if bar else ""
            shown.append(f"<td{style}>{escape(cell)}</td>")
        rows.append(f"<tr>{''.join(shown)}</tr>")
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    note = f"<p>{escape(table.note)}</p>" if table.note else ""
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f"<h2>{escape(table.title)}</h2>\n{note}<div class='scroll'><table>{body}</table></div>"


def _link(evaluation: Evaluation, sample: Sample, number: int) -> str:
    f1 = evaluation.ours.results[sample.id].row.word.f1
    return f"<li><a href='#page-{number}'>{escape(sample.id)}</a> {f1:.3f} {escape(title_of(sample))}</li>"


def _page(evaluation: Evaluation, sample: Sample, config: Config, number: int) -> str:
    """Return the section of a page, which is shown when its link is followed."""
    result = evaluation.ours.results[sample.id]
    facts = [f"{sample.page_type}, {evaluation.levels[sample.id]}, {result.source}"]
    for system in evaluation.systems:
        one = system.results[sample.id]
        error = f" ({one.error})" if one.error else ""
        prf = one.row.word
        facts.append(f"{system.label}: F1 {prf.f1:.3f}, P {prf.precision:.3f}, R {prf.recall:.3f}{error}")
    text = sample.truth.strip()
    truth = f"<details><summary>The true text</summary><pre>{escape(_cut(text, LONGEST_TRUTH))}</pre></details>"
    return (
        f"<section class='page' id='page-{number}'><h2>{escape(sample.id)}: {escape(title_of(sample))}</h2>"
        f"<p class='soft'>{escape(sample.url)}</p><p>{'<br/>'.join(map(escape, facts))}</p>"
        f"{_blocks(sample, config, result.blocks)}"
        f"{truth if text else '<p>The page has no true text: nothing on it is main content.</p>'}"
        "<p><a href='#worst'>Back to the list of pages</a></p></section>"
    )


def title_of(sample: Sample) -> str:
    """Return the title from the annotation, the page's own title, or another name for it."""
    title = sample.title or page_title(sample.path.read_bytes()) or sample.url or sample.path.name
    return " ".join(title.split())[:200]


def _blocks(sample: Sample, config: Config, result: BlockResult | None) -> str:
    try:
        texts = read(Document(sample.path.read_bytes(), sample.url), config).blocks.text
    except PageError as error:
        return f"<p>The page has no blocks to show: {escape(error)}.</p>"
    if result is None or len(result.main) != len(texts):
        return "<p>The page has no labels to show.</p>"
    kinds = [_kind(*marks) for marks in zip(result.main, result.truth, result.copies, strict=True)]
    counts = ", ".join(f"{kinds.count(kind)} {name}" for kind, name in _KINDS.items() if kind in kinds)
    inferred = " The labels were inferred from the extracted text." if result.inferred else ""
    p = [f"{p:.2f}" for p in result.probabilities] if result.probabilities else [""] * len(texts)
    items = [
        f"<li class='{kind}'>{_KINDS[kind]} {p[i]}  {escape(_cut(texts[i], LONGEST))}</li>"
        for i, kind in enumerate(kinds)
    ]
    return f"<p>{len(texts)} blocks: {counts}.{inferred}</p><ol>{''.join(_folded(items, kinds))}</ol>"


def _folded(items: list[str], kinds: list[str]) -> Iterator[str]:
    for other, numbers in groupby(range(len(items)), lambda i: kinds[i] == "other"):
        some = [items[i] for i in numbers]
        if other and len(some) > FOLD:
            summary = f"<summary>{len(some)} blocks rightly left out</summary>"
            yield f"<li><details>{summary}<ol>{''.join(some)}</ol></details></li>"
        else:
            yield from some


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} ... ({len(text):,} characters)"


def _kind(main: bool, truth: bool, copy: bool) -> str:
    if copy:
        return "copy"
    if main:
        return "hit" if truth else "wrong"
    return "missed" if truth else "other"
