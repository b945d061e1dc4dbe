"""The books of a crawl: its requests, items and stats must agree."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

ROWS: list[tuple[str, int, str, int, str, int]] = []
"""One row for each crawl whose books have been balanced."""
HEAD = ("scenario", "responses", "faults injected", "items out", "counted by reason", "lost")


@dataclass
class Books:
    """The ledger of one crawl, as its process wrote it."""

    scenario: str
    ledger: dict[str, Any]
    log: str = ""
    stats: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.stats = self.ledger["stats"]

    def stat(self, name: str) -> int:
        """Return one of the plugin's stats, or 0 if it is not set."""
        return int(self.stats.get(f"dripper/{name}", 0))

    def group(self, prefix: str) -> Counter[str]:
        """Return the plugin's stats under a prefix, keyed by the rest of their names."""
        start = f"dripper/{prefix}/"
        return Counter(
            {name.removeprefix(start): value for name, value in self.stats.items() if name.startswith(start)}
        )

    @property
    def by(self) -> dict[str, tuple[str | None, str | None]]:
        """For each item that came out, its source and its fallback reason."""
        return {id_: (source, reason) for id_, source, reason in self.ledger["scraped"]}

    def injected(self, kind: str) -> list[int]:
        """Return the pages that had a fault."""
        return list(self.ledger["injected"].get(kind, []))

    def unaccounted(self) -> Counter[str]:
        """Return the items that did not come out and were not counted either."""
        out = [id_ for id_, _, _ in self.ledger["scraped"]]
        ledger = self.ledger
        return Counter(ledger["yielded"]) - Counter([*out, *ledger["dropped"], *ledger["failed"], *ledger["filtered"]])

    def balance(self, *, finished: bool = True, complete: bool = True, stats: bool = True) -> None:
        """Check that nothing is lost and that the stats agree.

        ``finished`` is False for a crawl that was killed, ``complete`` for one that was stopped before its end,
        ``stats`` for one whose stats are known to be wrong.
        """
        ledger = self.ledger
        out = [id_ for id_, _, _ in ledger["scraped"]]
        cut_off = self.unaccounted()
        self._enter(cut_off.total() if finished else 0, cut_off.total())

        assert ledger["wrong"] == [], "an item has another page's content"
        assert len(set(out)) == len(out), "an item came out twice"
        assert set(out) <= set(ledger["yielded"])
        if finished:
            assert not cut_off
            assert sorted(ledger["events"][:2]) == ["engine_started", "spider_opened"]
            assert ledger["events"][2:] == ["spider_closed", "engine_stopped"]
        if finished and complete:
            ended = Counter(ledger["callbacks"]) + Counter(int(number) for number in ledger["errbacks"])
            assert ended == Counter(ledger["requests"]), "a request ended in neither callback nor errback, or twice"
        if stats:
            self._balance_stats(finished)

    def _balance_stats(self, finished: bool) -> None:
        ledger, stats = self.ledger, self.stats
        assert stats.get("item_scraped_count", 0) == len(ledger["scraped"])
        assert stats.get("item_dropped_count", 0) == len(ledger["dropped"])
        assert stats["response_received_count"] == ledger["responses"]
        assert self.stat("pages") == self.group("pages").total()
        assert self.stat("bugs") == 0
        fallbacks = self.group("fallback")
        by_fallback = sum(n for source, n in self.group("pages").items() if source.startswith("fallback:"))
        assert by_fallback == fallbacks.total() - fallbacks["no_main"]
        if finished:
            assert ledger["asked"] == self.stat("pages") + self.group("skipped").total() + self.stat("cancelled")

    def balance_items(self) -> None:
        """Check that the items agree with the stats, for crawls with one item per page."""
        by = list(self.by.values())
        assert Counter(source for source, _ in by if source) == self.group("pages")
        assert Counter(reason for _, reason in by if reason) == self.group("fallback")

    def _enter(self, lost: int, cut_off: int) -> None:
        ledger = self.ledger
        faults = {kind: len(pages) for kind, pages in ledger["injected"].items()}
        if (reason := str(self.stats.get("finish_reason"))).startswith("closespider"):
            faults[reason] = 1
        counted = Counter({f"fallback/{reason}": n for reason, n in self.group("fallback").items()})
        counted.update({f"skipped/{reason}": n for reason, n in self.group("skipped").items()})
        counted.update({f"errback {name}": n for name, n in Counter(ledger["errbacks"].values()).items()})
        for name in ("dropped", "failed", "filtered"):
            counted[f"item {name}"] = len(ledger[name])
        counted["callback raised"] = self.stats.get("spider_exceptions/RuntimeError", 0)
        counted["cancelled"] = self.stat("cancelled")
        counted["dropped by the second signal"] = cut_off - lost
        row = (self.scenario, ledger["responses"], words(faults), len(ledger["scraped"]), words(counted), lost)
        ROWS.append(row)


def words(counts: dict[str, int]) -> str:
    """Return counts as they are written in a table."""
    return ", ".join(f"{name} {n:,}" for name, n in sorted(counts.items()) if n) or "none"


def table() -> str:
    """Return the table of all crawls as Markdown."""
    lines = [
        HEAD,
        ("---",) * len(HEAD),
        *((name, f"{n:,}", faults, f"{out:,}", *rest) for name, n, faults, out, *rest in ROWS),
    ]
    total = (
        "all",
        f"{sum(row[1] for row in ROWS):,}",
        "",
        f"{sum(row[3] for row in ROWS):,}",
        "",
        sum(r[5] for r in ROWS),
    )
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [*lines, total]) + "\n"
