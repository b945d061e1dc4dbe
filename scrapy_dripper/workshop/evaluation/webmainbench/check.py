"""Compare our metrics with the scores that WebMainBench's toolkit stored beside the texts that it scored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scrapy_dripper.workshop.dataset.pages import DataError
from scrapy_dripper.workshop.evaluation.rouge import Cut, rouge
from scrapy_dripper.workshop.evaluation.webmainbench.metrics import (
    FINE,
    BenchScores,
    canonical_markdown,
    fine_scores,
    read_lines,
)

DIGITS = 4
_ROUGE = {"human_rouge_n": "groundtruth_content", "convert_rouge_n": "convert_main_content"}
"""The toolkit's names of ROUGE-5, and the texts that it is measured against."""


@dataclass
class Check:
    """The result of a comparison."""

    pages: int = 0
    scores: int = 0
    """Number of stored scores that were compared."""
    conversions: int = 0
    """Number of pages that have both the Main-HTML and html2text's Markdown of it."""
    differences: list[str] = field(default_factory=list)
    """A sentence for each score or Markdown that differs from the stored one."""
    skipped: set[str] = field(default_factory=set)
    """Extractors whose scores the toolkit computed from content lists, not from Markdown."""

    def text(self) -> str:
        """Return what was compared, and each difference, as lines."""
        lines = [
            f"{self.pages:,} pages: {self.scores:,} stored scores compared to {DIGITS} digits, and html2text's "
            f"Markdown of {self.conversions:,} pages; {len(self.differences):,} differ"
        ]
        if self.skipped:
            lines.append(f"not compared, because they were scored by content lists: {', '.join(sorted(self.skipped))}")
        return "\n".join([*lines, *self.differences])


def check(path: Path, cut: Cut) -> Check:
    """Compute each stored score again.

    ``path`` is the ``dataset_with_results.jsonl`` that the toolkit writes. Each line is a page, with ``NAME_content``,
    the text of an extractor, and ``NAME_METRIC_score`` for each metric that applies. In a file without scores, only the
    Markdown is compared. Raise :exc:`DataError` if a line is not such a page, or if there is nothing to compare.
    """
    found = Check()
    for number, line in read_lines(path):
        _check_page(found, _record(path, number, line), number, cut)
    if not found.scores and not found.conversions and not found.skipped:
        raise DataError(
            f"{path} has nothing to compare: expected 'NAME_content' with 'NAME_text_edit_score' and so on, as in the "
            "dataset_with_results.jsonl of WebMainBench's toolkit, or 'main_html' with 'convert_main_content'"
        )
    return found


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise DataError(f"{path}, line {number}: expected a page with results ({error})") from None
    if not isinstance(record, dict):
        raise DataError(f"{path}, line {number}: expected a page with results (got {type(record).__name__})")
    return record


def _check_page(found: Check, record: dict[str, Any], number: int, cut: Cut) -> None:
    found.pages += 1
    name = str(record.get("track_id") or record.get("id") or f"line {number}")
    main_html, converted = record.get("main_html"), record.get("convert_main_content")
    if isinstance(main_html, str) and isinstance(converted, str):
        found.conversions += 1
        if canonical_markdown(main_html) != converted:
            found.differences.append(f"{name}: html2text writes another Markdown of main_html")
    for extractor in _extractors(record):
        if record.get(f"{extractor}_content_list") or record.get("groundtruth_content_list"):
            found.skipped.add(extractor)
            continue
        for metric, stored, ours in _scores(record, extractor, cut):
            found.scores += 1
            if ours is None or round(ours, DIGITS) != round(stored, DIGITS):
                value = "does not apply" if ours is None else f"is {ours:.6f}"
                found.differences.append(f"{name}: {metric} of {extractor} {value}, stored is {stored:.6f}")


def _extractors(record: dict[str, Any]) -> list[str]:
    names = [key.removesuffix("_success") for key, value in record.items() if key.endswith("_success") and value]
    return [name for name in names if isinstance(record.get(f"{name}_content"), str)]


def _scores(record: dict[str, Any], extractor: str, cut: Cut) -> Iterator[tuple[str, float, float | None]]:
    """Yield name, stored value and our value of each metric that is stored."""
    text, truth = record[f"{extractor}_content"], record.get("groundtruth_content")
    stored = {
        metric: float(value)
        for metric in ("overall", *FINE, *_ROUGE)
        if isinstance(value := record.get(f"{extractor}_{metric}_score"), int | float)
    }
    ours: dict[str, float | None] = {}
    if isinstance(truth, str) and stored.keys() - _ROUGE.keys():
        fine = fine_scores(text, truth)
        ours = {**fine, "overall": BenchScores(None, fine).overall}
    for metric, target in _ROUGE.items():
        if metric in stored and isinstance(record.get(target), str):
            ours[metric] = rouge(text, record[target], cut).f1
    for metric, value in stored.items():
        yield metric, value, ours.get(metric)
