"""``scrapy-dripper corpus report DIR``: tables about an extraction and its cleaning."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from scrapy_dripper.workshop.cli import corpus_run
from scrapy_dripper.workshop.cli.corpus_clean import CLEAN
from scrapy_dripper.workshop.dataset.tables import aligned

COUNTED = ("source", "reason", "page_type", "language")
MEASURED = ("characters", "quality")
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)

EXAMPLES = """\
examples:
  scrapy-dripper corpus report pages/

The tables have the documents in and out of each step, the records that are not pages, and the sources, reasons, page
types, languages, lengths and qualities of the documents: of the cleaned ones if DIR has been cleaned.

exit codes: 0 printed, 2 wrong usage, 130 Ctrl-C
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    report = commands.add_parser(
        "report",
        help="print tables about an extraction and its cleaning",
        description="Print what is in the documents that `corpus extract` and `corpus clean` have written.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    report.set_defaults(run=run)
    report.add_argument("folder", metavar="DIR", help="the folder that `corpus extract` wrote")


def run(arguments: argparse.Namespace) -> int:
    """Print the report and return the exit code."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise corpus_run.missing(error) from None
    folder = Path(arguments.folder)
    corpus_run.extracted(folder)
    totals = corpus_run.totals(folder / "logs")
    read, pages = totals.get("FastWARC", Counter()), totals.get("Dripper", Counter())
    skipped = {name: number for name, number in read.items() if name.startswith("skipped/")}
    steps = [
        ["records", read["pages"] + sum(skipped.values()), read["pages"]],
        ["extraction", pages["pages"], pages["extracted"]],
        *([name, counts.before, counts.after] for name, counts in corpus_run.filters(folder / CLEAN / "logs").items()),
    ]
    print(aligned(["step", "in", "out"], [[str(name), f"{before:,}", f"{after:,}"] for name, before, after in steps]))
    _print_counts("not a page", {name.removeprefix("skipped/"): number for name, number in skipped.items()})
    clean = sorted((folder / CLEAN).glob("*.parquet"))
    counted, measured = _columns(clean or sorted(folder.glob("*.parquet")))
    for name in COUNTED:
        _print_counts(name, counted[name])
    head = ["", *(f"{share:.0%}" for share in SHARES)]
    rows = [[name, *(f"{value:,.6g}" for value in _quantiles(measured[name]))] for name in MEASURED if measured[name]]
    print("\n" + aligned(head, rows))
    return 0


def _columns(files: Iterable[Path]) -> tuple[dict[str, Counter[str]], dict[str, list[float]]]:
    """Return the number of rows by value of each counted column, and all values of the measured ones."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    counted: dict[str, Counter[str]] = defaultdict(Counter)
    measured: dict[str, list[float]] = defaultdict(list)
    for file in files:
        with pq.ParquetFile(file) as table:
            named = [name for name in COUNTED if name in table.schema_arrow.names]
            for batch in table.iter_batches(columns=["text", "quality", *named]):
                measured["characters"] += [length or 0 for length in pc.utf8_length(batch.column("text")).to_pylist()]
                measured["quality"] += [value for value in batch.column("quality").to_pylist() if value is not None]
                for name in named:
                    counted[name].update(value for value in batch.column(name).to_pylist() if value)
    return counted, measured


def _quantiles(values: list[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered[int(share * (len(ordered) - 1))] for share in SHARES]


def _print_counts(title: str, counts: dict[str, int]) -> None:
    if counts:
        whole = sum(counts.values())
        rows = [[name, f"{number:,}", f"{number / whole:.1%}"] for name, number in Counter(counts).most_common()]
        print("\n" + aligned([title, "documents", "share"], rows))
