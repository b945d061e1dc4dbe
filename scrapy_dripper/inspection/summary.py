"""The summary of a crawl, of bounded size: sources, fallback reasons, page types, times and quality."""

from __future__ import annotations

from collections import Counter
from math import log2

from scrapy_dripper.inspection.rows import Row

MOST_NAMES = 40
"""Maximum number of sources, reasons or types that are counted by name. Others are counted together."""
OTHERS = "(others)"
SHOWN = 8
"""Maximum number of names in a line of the log."""
_STEPS = 60  # of a doubling: times are known to 0.6 %


class Summary:
    """Counts over the pages of a crawl."""

    def __init__(self, batch_size: int | None = None) -> None:
        """``batch_size`` is the number of pages that a batch can hold, or None without batches."""
        self.pages = 0
        self.cancelled = 0
        self.by: dict[str, Counter[str]] = {"source": Counter(), "reason": Counter(), "page type": Counter()}
        self._batch_size = batch_size
        self._batches = self._batched = 0
        self._times: Counter[int] = Counter()
        self._quality: Counter[int] = Counter()
        self._quality_sum = 0.0

    def add(self, row: Row) -> None:
        """Count a page."""
        self.pages += 1
        for kind, name in (("source", row.source), ("reason", row.reason), ("page type", row.page_type)):
            if name:
                counts = self.by[kind]
                counts[name if name in counts or len(counts) < MOST_NAMES else OTHERS] += 1
        if row.milliseconds is not None:
            self._times[round(_STEPS * log2(max(row.milliseconds, 0.01)))] += 1
        if row.quality is not None:
            self._quality[round(100 * row.quality)] += 1
            self._quality_sum += row.quality

    def batch(self, pages: int) -> None:
        """Count a batch with a number of pages."""
        self._batches += 1
        self._batched += pages

    def lines(self) -> list[tuple[str, str]]:
        """Return the lines of the summary, each with a name; empty for a crawl without pages."""
        if not self.pages:
            return []
        found = [("by " + kind, _shares(counts, self.pages)) for kind, counts in self.by.items() if counts]
        if self._times:
            p50, p95 = (2 ** (_quantile(self._times, q) / _STEPS) for q in (0.5, 0.95))
            found.append(("time a page", f"p50 {_ms(p50)}, p95 {_ms(p95)}"))
        if self._batches and self._batch_size:
            mean = self._batched / self._batches
            fill = f"{mean:.1f} of {self._batch_size} pages ({mean / self._batch_size:.0%})"
            found.append(("batches", f"{self._batches:,}, on average {fill}"))
        if judged := self._quality.total():
            low = _quantile(self._quality, 0.1) / 100
            found.append(("quality", f"mean {self._quality_sum / judged:.2f}, p10 {low:.2f}"))
        if self.cancelled:
            found.append(("not done", f"{self.cancelled:,} when the crawl ended"))
        return found

    def text(self) -> str:
        """Return the summary as a text for the log."""
        width = max((len(name) for name, _ in self.lines()), default=0)
        pages = "1 page" if self.pages == 1 else f"{self.pages:,} pages"
        return "\n".join([f"Main content of {pages}", *(f"  {name:<{width}}  {line}" for name, line in self.lines())])


def _shares(counts: Counter[str], pages: int) -> str:
    common = counts.most_common(SHOWN)
    rest = counts.total() - sum(count for _, count in common)
    named = [f"{name} {count:,} ({count / pages:.1%})" for name, count in common]
    return ", ".join([*named, f"and {rest:,} of other names"] if rest else named)


def _quantile(counts: Counter[int], share: float) -> int:
    """Return the smallest value that at least a given share of the counted values does not exceed."""
    left = share * counts.total()
    for value in sorted(counts):
        left -= counts[value]
        if left <= 0:
            return value
    return max(counts)


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:,.0f} ms"
