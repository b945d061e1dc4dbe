"""Compare our metrics with the scores that WebMainBench's toolkit stored beside the texts that it scored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scrapy_dripper.workshop.dataset.pages import DataError
from scrapy_dripper.workshop.evaluation.rouge import Cut, rouge
from scrapy_dripper.workshop.evaluation.webmainbench.metrics import FINE, BenchScores, fine_scores, read_lines

DIGITS = 4
_ROUGE = {"human_rouge_n": "groundtruth_content", "convert_rouge_n": "convert_main_content"}
"""The toolkit's names of ROUGE-5, and the texts that it is measured against."""


@dataclass
class BenchCheck:
    """The result of a comparison."""

    scores: int = 0
    """Number of stored scores that were compared."""
    differences: list[str] = field(default_factory=list)
    """A sentence for each score that differs from the stored one."""

    def text(self) -> str:
        """Return what was compared, and each difference, as lines."""
        head = f"{self.scores:,} stored scores compared to {DIGITS} digits; {len(self.differences):,} differ"
        return "\n".join([head, *self.differences])


def check(path: Path, cut: Cut) -> BenchCheck:
    """Compute each stored score again.

    ``path`` is the ``dataset_with_results.jsonl`` that the toolkit writes. Each line is a page, with ``NAME_content``,
    the text of an extractor, and ``NAME_METRIC_score`` for each metric that applies. Extractors that were scored by
    content lists are left out. Raise :exc:`DataError` if a line is not such a page, or has nothing to compare.
    """
    found = BenchCheck()
    for number, line in read_lines(path):
        try:
            record = json.loads(line)
            names = [key.removesuffix("_success") for key, value in record.items() if key.endswith("_success")]
        except (ValueError, AttributeError, RecursionError) as error:
            raise DataError(f"{path}, line {number}: expected a page with results ({error})") from None
        for name in names:
            if not isinstance(record.get(f"{name}_content"), str) or not record[f"{name}_success"]:
                continue
            if record.get(f"{name}_content_list") or record.get("groundtruth_content_list"):
                continue
            for metric, stored, ours in _scores(record, name, cut):
                found.scores += 1
                if ours is None or round(ours, DIGITS) != round(stored, DIGITS):
                    value = "does not apply" if ours is None else f"is {ours:.6f}"
                    page = record.get("track_id") or record.get("id") or f"line {number}"
                    found.differences.append(f"{page}: {metric} of {name} {value}, stored is {stored:.6f}")
    if not found.scores:
        raise DataError(
            f"{path} has nothing to compare: expected 'NAME_content' with 'NAME_text_edit_score' and so on, as in the "
            "dataset_with_results.jsonl of WebMainBench's toolkit"
        )
    return found


def _scores(record: dict[str, Any], name: str, cut: Cut) -> Iterator[tuple[str, float, float | None]]:
    """Yield name, stored value and our value of each metric that is stored for an extractor."""
    text, truth = record[f"{name}_content"], record.get("groundtruth_content")
    stored = {
        metric: float(value)
        for metric in ("overall", *FINE, *_ROUGE)
        if isinstance(value := record.get(f"{name}_{metric}_score"), int | float)
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
