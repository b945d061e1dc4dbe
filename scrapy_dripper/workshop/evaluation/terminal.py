"""Print the figures of an evaluation as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scrapy_dripper.characters import printable
from scrapy_dripper.workshop.dataset.metrics import POOR
from scrapy_dripper.workshop.dataset.text_table import aligned
from scrapy_dripper.workshop.evaluation.blocks import Reliability
from scrapy_dripper.workshop.evaluation.figures import Evaluation, Group
from scrapy_dripper.workshop.evaluation.study import SCALE


def text(evaluation: Evaluation) -> str:
    """Return the tables of an evaluation, without control characters, which names of files and pages may contain."""
    parts = [f"{len(evaluation.samples):,} pages of {evaluation.data}", _systems(evaluation)]
    for title, head, body in more_tables(evaluation):
        parts.append(f"{title}\n{aligned(head, body)}")
    for kind, title in (("type", "Word F1 by page type"), ("level", "Word F1 by difficulty")):
        parts.append(f"{title}\n{_groups(evaluation, kind)}")
    if evaluation.differences:
        parts.append(
            f"Ours minus each peer, paired by page, with 95 % intervals over pages\n{_differences(evaluation)}"
        )
    if evaluation.blocks:
        parts.append(f"Blocks\n{_blocks(evaluation)}")
        if evaluation.blocks.blocks and evaluation.blocks.words:
            parts.append(_calibration(evaluation.blocks.blocks, evaluation.blocks.words))
    parts.append(
        "By set; the title is neutral in F1, P and R, and characters of scripts without spaces are words\n"
        + evaluation.sets.text()
    )
    return printable("\n\n".join(parts))


def system_head(rouge: bool) -> list[str]:
    """Return the column titles of the table of systems."""
    more = ["ROUGE-5", "R-5 P", "R-5 R"] if rouge else []
    return ["F1", "95 %", "P", "R", *more, "with", "without", f"F1 < {POOR}", "empty"]


def system_cells(group: Group, rouge: bool) -> list[str]:
    """Return a row of the table of systems."""
    s, i = group.summary, group.f1
    scores = (group.rouge.f1, group.rouge.precision, group.rouge.recall) if rouge and group.rouge else ()
    return [
        f"{s.f1:.4f}",
        f"{i.low:.3f}-{i.high:.3f}",
        *(f"{value:.4f}" for value in (s.precision, s.recall, *scores)),
        *(f"{value:.1%}" for value in (s.with_rate, s.without_rate, s.poor)),
        f"{s.empty} ({s.wrongly_empty})",
    ]


def _systems(evaluation: Evaluation) -> str:
    rouge = evaluation.ours.whole.rouge is not None
    body = [[s.label, *system_cells(s.whole, rouge), str(s.errors)] for s in evaluation.systems]
    return aligned(["system", *system_head(rouge), "errors"], body)


def more_tables(evaluation: Evaluation) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Yield title, head and rows of the tables of measures that were asked for."""
    wholes = [(system.label, system.whole) for system in evaluation.systems]
    nodes = [[label, *_cells(w.nodes[::-1], 4)] for label, w in wholes if w.nodes]
    if nodes:
        yield "DOM nodes, as Alarte and Silva count them", ["system", "F1", "R", "P"], nodes
    studied = [
        [
            label,
            *_cells([SCALE * value for value in w.study], 2),
            *("" if value is None else f"{value:{form}}" for value, form in _taken(w)),
        ]
        for label, w in wholes
        if w.study
    ]
    if studied:
        head = ["system", "ROUGE-1", "ROUGE-2", "ROUGE-L", "content-noise", "coherence", "completeness", "ms"]
        head += ["tokens", "cost"]
        yield f"Measures of Yadav's study, 0 to {SCALE}", head, studied


def _taken(group: Group) -> list[tuple[float | None, str]]:
    """Return the mean time, tokens and price of a page, each with its format."""
    milliseconds = None if group.seconds is None else 1_000 * group.seconds
    return [(milliseconds, ",.1f"), (group.tokens, ",.0f"), (group.cost, ".6f")]


def _cells(values: Iterable[float], digits: int) -> list[str]:
    return [f"{value:.{digits}f}" for value in values]


def _groups(evaluation: Evaluation, kind: str) -> str:
    body = []
    for name, ours in evaluation.ours.groups[kind].items():
        scores = [f"{system.groups[kind][name].summary.f1:.4f}" for system in evaluation.systems]
        body.append([name, str(ours.summary.pages), *scores, f"{ours.summary.poor:.1%}"])
    return aligned([kind, "pages", *(s.name for s in evaluation.systems), f"ours < {POOR}"], body)


def _differences(evaluation: Evaluation) -> str:
    body = [
        [
            d.peer,
            d.metric,
            d.group,
            str(d.pages),
            f"{d.delta.mean:+.4f}",
            f"[{d.delta.low:+.4f}, {d.delta.high:+.4f}]",
            "*" if d.delta.excludes_zero else "",
            f"{d.better}/{d.worse}/{d.tied}",
        ]
        for d in evaluation.differences
    ]
    return aligned(["peer", "metric", "pages of", "n", "difference", "interval", "", "better/worse/tied"], body)


def _blocks(evaluation: Evaluation) -> str:
    blocks = evaluation.blocks
    assert blocks is not None
    body = [
        [name, str(blocks.pages[name]), *(f"{value:.4f}" for value in (prf.f1, prf.precision, prf.recall))]
        for name, prf in blocks.by_type.items()
    ]
    whole = [f"{value:.4f}" for value in (blocks.pooled.f1, blocks.pooled.precision, blocks.pooled.recall)]
    table = aligned(["type", "pages", "F1", "P", "R"], [*body, ["all blocks together", "", *whole]])
    return table + (f"\n(pages whose labels were inferred from the text: {blocks.inferred})" if blocks.inferred else "")


def _calibration(blocks: Reliability, words: Reliability) -> str:
    n = len(blocks.weight)
    body = [
        [
            f"{k / n:.1f}-{(k + 1) / n:.1f}",
            *(f"{v:,.0f}" if f == "n" else f"{v:.3f}" for f, v in _bin(blocks, k) + _bin(words, k)),
        ]
        for k in range(n)
    ]
    head = ["probability", "blocks", "mean p", "main", "words", "mean p", "main"]
    errors = f"Expected calibration error: {blocks.error:.4f} by blocks, {words.error:.4f} by words"
    return f"{errors}\n{aligned(head, body)}"


def _bin(column: Reliability, k: int) -> list[tuple[str, float]]:
    return [("n", column.weight[k]), ("p", column.probability[k]), ("p", column.share[k])]
