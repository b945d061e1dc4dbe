"""Write an evaluation as a self-contained HTML file, without scripts and without external style sheets or images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scrapy_dripper.config import Config
from scrapy_dripper.workshop.dataset.metrics import ALL, POOR
from scrapy_dripper.workshop.evaluation.blocks import Reliability
from scrapy_dripper.workshop.evaluation.figures import Evaluation
from scrapy_dripper.workshop.evaluation.report.charts import (
    Row,
    calibration,
    colour,
    cumulative,
    differences,
    distributions,
    dots,
    legend,
)
from scrapy_dripper.workshop.evaluation.report.pages import page_section, title_of
from scrapy_dripper.workshop.evaluation.report.style import STYLE
from scrapy_dripper.workshop.evaluation.report.svg import Markup, join, tag
from scrapy_dripper.workshop.evaluation.terminal import more_tables, system_cells, system_head

__all__ = ["report"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_SECTIONS = (
    ("systems", "Systems"),
    ("distribution", "Distribution"),
    ("types", "Page types"),
    ("difficulty", "Difficulty"),
    ("length", "Length"),
    ("differences", "Differences"),
    ("blocks", "Blocks"),
    ("calibration", "Calibration"),
    ("worst", "Worst pages"),
)


def report(evaluation: Evaluation, config: Config, worst: int) -> str:
    """Return the report, including the ``worst`` pages."""
    sections = {
        "systems": _systems(evaluation),
        "distribution": _distribution(evaluation),
        "types": _groups(evaluation, "type", "Word F1 by page type"),
        "difficulty": _groups(evaluation, "level", "Word F1 by difficulty"),
        "length": _groups(evaluation, "length", "Word F1 by number of true words"),
        "differences": _differences(evaluation),
        "blocks": _blocks(evaluation),
        "calibration": _calibration(evaluation),
        "worst": _worst(evaluation, worst),
    }
    there = [(name, title) for name, title in _SECTIONS if sections[name]]
    body = tag(
        "main",
        tag("h1", "Quality of the extraction"),
        tag(
            "p",
            f"{len(evaluation.samples):,} annotated pages of {evaluation.data}, "
            f"data {evaluation.data_sha256[:12]}; {evaluation.ours.label}.",
            class_="soft",
        ),
        *(
            tag("p", note, class_=f"note{' alarm' if note.startswith('IN-SAMPLE') else ''}")
            for note in evaluation.notes
        ),
        tag("p", *(join(tag("a", title, href=f"#{name}"), " ") for name, title in there), class_="contents"),
        *(tag("section", sections[name], id=name) for name, _ in there),
        *(
            page_section(evaluation, sample, config, f"page-{number}")
            for number, sample in enumerate(evaluation.worst(worst), 1)
        ),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"scrapy-dripper on {evaluation.data}"),
        tag("style", Markup(STYLE)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, tag('body', body), lang='en')}\n"


def _table(head: Sequence[object], body: Sequence[Sequence[object]], first_is_ours: bool = False) -> Markup:
    rows = [
        tag("tr", *(_cell(cell) for cell in row), class_="ours" if first_is_ours and not number else None)
        for number, row in enumerate(body)
    ]
    table = tag("table", tag("thead", tag("tr", *(_cell(cell, "th") for cell in head))), tag("tbody", *rows))
    return tag("div", table, class_="scroll")


def _cell(cell: object, name: str = "td") -> Markup:
    return cell if isinstance(cell, Markup) and cell.startswith(f"<{name}") else tag(name, cell)


def _systems(evaluation: Evaluation) -> Markup:
    rouge = evaluation.ours.whole.rouge is not None
    body = [[s.label, *system_cells(s.whole, rouge), s.errors] for s in evaluation.systems]
    head = [name.replace("-", "\u2011").replace(" ", "\xa0") for name in system_head(rouge)]
    return join(
        tag("h2", "Systems"),
        tag(
            "p",
            "Means over pages. F1, P and R compare the words of the extracted and of the true text as bags. With and "
            "without: share of the required snippets, and of the forbidden ones, that are in the text. Empty: pages "
            "without a word (in brackets: wrongly). Errors: pages on which the system raised an exception; they count "
            "as empty.",
        ),
        _table(["", *head, "errors"], body, first_is_ours=True),
        *(
            join(tag("p", title), _table(columns, rows, first_is_ours=True))
            for title, columns, rows in more_tables(evaluation)
        ),
    )


def _distribution(evaluation: Evaluation) -> Markup:
    series = [(s.name, [one.row.f1 for one in s.results.values()]) for s in evaluation.systems]
    names = [name for name, _ in series]
    return join(tag("h2", "Distribution of word F1"), distributions(series), legend(names), cumulative(series))


def _groups(evaluation: Evaluation, kind: str, title: str) -> Markup:
    names = [system.name for system in evaluation.systems]
    rows = [
        Row(name, f"{group.summary.pages} pages", [s.groups[kind][name].f1 for s in evaluation.systems])
        for name, group in evaluation.ours.groups[kind].items()
    ]
    body = [
        [
            name,
            group.summary.pages,
            *(f"{system.groups[kind][name].summary.f1:.3f}" for system in evaluation.systems),
            f"{group.summary.precision:.3f}",
            f"{group.summary.recall:.3f}",
            f"{group.summary.poor:.1%}",
        ]
        for name, group in evaluation.ours.groups[kind].items()
    ]
    head = [kind, "pages", *(f"F1 {name}" for name in names), "P ours", "R ours", f"ours F1 < {POOR}"]
    why = (
        "The complexity score of the Dripper paper over these pages, cut at its 30th and 70th percentiles."
        if kind == "level"
        else ""
    )
    return join(
        tag("h2", title), tag("p", why) if why else "", legend(names), dots(title, rows, names), _table(head, body)
    )


def _differences(evaluation: Evaluation) -> Markup:
    if not evaluation.differences:
        return Markup()
    peers = [system.name for system in evaluation.systems[1:]]
    f1 = {(d.peer, d.group): d for d in evaluation.differences if d.metric == "F1"}
    groups = [ALL, *evaluation.ours.groups["type"]]
    rows = [
        Row(
            "all pages" if group == ALL else group,
            f"{f1[peers[0], group].pages} pages",
            [f1[p, group].delta for p in peers],
        )
        for group in groups
    ]
    body = [
        [
            d.peer,
            d.metric,
            f"{d.delta.mean:+.4f}",
            f"{d.delta.low:+.4f} to {d.delta.high:+.4f}",
            "yes" if d.delta.excludes_zero else "no",
            d.better,
            d.worse,
            d.tied,
        ]
        for d in evaluation.differences
        if d.group == ALL
    ]
    title = "Paired differences"
    return join(
        tag("h2", title),
        tag("p", "Ours minus each peer on the same pages, with 95 % bootstrap intervals over pages."),
        tag("p", *legend_of_peers(peers), class_="legend"),
        differences(title, rows, peers),
        _table(["peer", "metric", "difference", "interval", "beyond chance", "better", "worse", "tied"], body),
    )


def legend_of_peers(names: Sequence[str]) -> Iterator[Markup]:
    """Yield the names of the peers with their colours, which follow ours."""
    return (tag("span", tag("i", style=f"background:{colour(i)}"), name) for i, name in enumerate(names, 1))


def _blocks(evaluation: Evaluation) -> Markup:
    blocks = evaluation.blocks
    if blocks is None:
        return Markup()
    body: list[list[object]] = [
        [
            "all pages" if name == ALL else name,
            blocks.pages[name],
            *(f"{v:.3f}" for v in (prf.f1, prf.precision, prf.recall)),
        ]
        for name, prf in blocks.by_type.items()
    ]
    whole = blocks.pooled
    body.append(["all blocks together", "", *(f"{v:.3f}" for v in (whole.f1, whole.precision, whole.recall))])
    inferred = (
        f" Pages whose labels were inferred from the extracted text: {blocks.inferred}." if blocks.inferred else ""
    )
    return join(
        tag("h2", "Blocks"),
        tag(
            "p",
            "Our labels against those that aligning the page with its true text gives, as means over pages. Copies of "
            f"a main block do not count: either could have been chosen.{inferred}",
        ),
        _table(["", "pages", "F1", "P", "R"], body),
    )


def _calibration(evaluation: Evaluation) -> Markup:
    blocks = evaluation.blocks
    if blocks is None or blocks.blocks is None or blocks.words is None:
        return Markup()
    columns: list[tuple[str, Reliability]] = [("blocks", blocks.blocks), ("words", blocks.words)]
    n = len(blocks.blocks.weight)
    body = []
    for k in range(n):
        cells: list[object] = [f"{k / n:.1f} to {(k + 1) / n:.1f}"]
        for _, one in columns:
            empty = not one.weight[k]
            cells.append(f"{one.weight[k]:,.0f}")
            cells += ["", ""] if empty else [f"{one.probability[k]:.3f}", f"{one.share[k]:.3f}"]
        body.append(cells)
    return join(
        tag("h2", "Calibration"),
        tag(
            "p",
            "Ideally, the share of main blocks equals the probability that the model gives them, as on the dashed "
            "line. The bars below say how many there are.",
        ),
        calibration(columns),
        _table(["probability", "blocks", "mean", "main", "words", "mean", "main"], body),
    )


def _worst(evaluation: Evaluation, n: int) -> Markup:
    body = []
    for number, sample in enumerate(evaluation.worst(n), 1):
        row = evaluation.ours.results[sample.id].row
        body.append(
            [
                tag("a", sample.id, href=f"#page-{number}"),
                tag("td", title_of(sample), class_="text left"),
                tag("td", sample.page_type, class_="left"),
                f"{evaluation.words[sample.id]:,}",
                f"{row.f1:.3f}",
                f"{row.precision:.3f}",
                f"{row.recall:.3f}",
                *(f"{system.results[sample.id].row.f1:.3f}" for system in evaluation.systems[1:]),
            ]
        )
    peers = [f"F1 {system.name}" for system in evaluation.systems[1:]]
    return join(
        tag("h2", "Worst pages"),
        tag("p", "The pages with our lowest F1. Each opens with its blocks below this table."),
        tag(
            "p",
            tag("span", "hit", class_="hit"),
            tag("span", "missed", class_="missed"),
            tag("span", "wrongly kept", class_="wrong"),
            class_="key",
        ),
        _table(
            [
                "page",
                *(tag("th", name, class_="left") for name in ("title", "type")),
                "true words",
                "F1",
                "P",
                "R",
                *peers,
            ],
            body,
        ),
    )
