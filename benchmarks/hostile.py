"""CPU time and peak memory of hostile pages and of the slowest real ones, with and without a worker.

Each page is extracted completely, to Main-HTML and Markdown or by a fallback, in its own process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from common import DEFAULT, heading, publish, table

MEGABYTES = 10_000_000
MOST_SECONDS = 60
"""CPU seconds after which a page without a worker is given up."""
TIMEOUT = 300.0
"""DRIPPER_TIMEOUT. It is long, because CPU time is measured on a machine that may be busy."""
NOTE = f"""\
CPU seconds of a complete extraction, and the increase of peak memory: first without a worker, then as an Extractor does
by default, in this process and in the worker (including its start of about 0.4 s and its whole memory).
Without a worker, a page is given up after {MOST_SECONDS} CPU seconds. DRIPPER_TIMEOUT is {TIMEOUT:g} s, because the
machine may be busy; the default of 30 s would have ended pages that take longer. End: the fallback reason, if any."""


def filled(piece: str, size: int = MEGABYTES) -> str:
    """Return a page of 10 MB that repeats one piece."""
    return piece * (size // len(piece))


def tag(attributes: int) -> str:
    """Return a tag with a number of attributes, all as short as possible: long tags are checked before parsing."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = (f"{a}{b}{c}{d}" for a in ("", *letters) for b in letters for c in letters for d in letters)
    return f"<p {' '.join(islice(names, attributes))}>x"


PAGES: dict[str, Callable[[], str | bytes]] = {
    "200,000 nested `<div>`": lambda: "<div>" * 200_000 + "x",
    "2 million nested `<div>`": lambda: filled("<div>"),
    "20,000 unclosed tags of all kinds": lambda: "".join(f"<{('p', 'b', 'i', 'u')[i % 4]}>x" for i in range(20_000)),
    "3,000 misnested `<font>`": lambda: "<font><p>x" * 3_000 + "</font>" * 3_000,
    "100,000 attributes on a tag": lambda: tag(100_000),
    "1 MB of `<p>x` (250,000 elements)": lambda: filled("<p>x", 1_000_000),
    "10 MB of `<p>x` (2.5 million elements)": lambda: filled("<p>x"),
    "10 MB of end tags without a start, in 2,000 nested tags": lambda: "<div>" * 2_000 + filled("</b>"),
    "1 MB of tags with 4,000 attributes each": lambda: filled(tag(4_000), 1_000_000),
    "10 MB of tags with 900 attributes each": lambda: filled(tag(900)),
    "10 MB of tags with 2,700 attributes each": lambda: filled(tag(2_700)),
    "10 MB of tags with 4,000 attributes each": lambda: filled(tag(4_000)),
    "10 MB of text in one paragraph": lambda: "<p>" + filled("word "),
    "10 MB of bytes in no encoding": lambda: filled("<p>x ").encode().replace(b"x", b"\xff\x81"),
    "2,400 paragraphs in 1,000 nested tags, over a limit of blocks": lambda: "<div>" * 1_000 + "<p>x y</p>" * 2_400,
}
OPTIONS: dict[str, dict[str, Any]] = {
    "2,400 paragraphs in 1,000 nested tags, over a limit of blocks": {"limits": {"blocks": 1_000}}
}


def measure(page: str | bytes, mode: str, options: dict[str, Any]) -> dict[str, Any]:
    """Extract one page in this process and return its cost."""
    import scrapy_dripper.fallback.trafilatura_output  # noqa: F401 (imported before the clock starts)
    from scrapy_dripper import Document, Extractor
    from scrapy_dripper.config import Config

    extractor = Extractor(Config(processes=None if mode == "worker" else 0, timeout=TIMEOUT, **options))
    extractor.extract(["<p>a page to warm up with</p>"])
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    found = extractor.extract([Document(page, "http://example.com/")])[0]
    crawl = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pool = extractor._worker.pool
    child_peak = pool.peak if pool is not None else 0
    extractor.close()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "crawl": crawl,
        "child": children.ru_utime + children.ru_stime,
        "used": children.ru_utime > 0,
        "crawl_mb": max(0, peak - base) // 1_024,
        "child_mb": child_peak >> 20,
        "end": f"{found.fallback_reason or 'labelled'}",
    }


def measured(what: list[str], mode: str) -> dict[str, Any]:
    """Run :func:`measure` in its own process, which is killed if it takes too long."""
    command = [sys.executable, __file__, "--mode", mode, *what]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))

    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit)
    if done.returncode:
        return {"end": f"over {MOST_SECONDS} s"} if done.returncode < 0 else {"end": done.stderr.strip()[-60:]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def row(name: str, what: list[str]) -> list[str]:
    """Return a row of the table."""
    without, auto = measured(what, "here"), measured(what, "worker")

    def number(found: dict[str, Any], key: str, form: str) -> str:
        return format(found[key], form) if key in found else "-"

    return [
        name,
        number(without, "crawl", ".2f") if "crawl" in without else without["end"],
        number(without, "crawl_mb", "d"),
        "yes" if auto.get("used") else "no",
        number(auto, "crawl", ".2f"),
        number(auto, "crawl_mb", "d"),
        number(auto, "child", ".2f") if auto.get("used") else "-",
        number(auto, "child_mb", "d") if auto.get("used") else "-",
        str(auto["end"]),
    ]


def slowest(folder: Path, count: int) -> list[Path]:
    """Return the real pages that take the most CPU time. All pages are measured once in this process."""
    from scrapy_dripper import Document, Extractor
    from scrapy_dripper.config import Config

    extractor = Extractor(Config(processes=0))
    seconds: dict[Path, float] = {}
    for path in sorted(folder.glob("*.html")):
        document = Document(path.read_bytes(), "http://example.com/")
        start = time.process_time()
        extractor.extract([document])
        seconds[path] = time.process_time() - start
    extractor.close()
    return sorted(seconds, key=lambda path: -seconds[path])[:count]


def main() -> None:
    """Measure all pages and write ``results/hostile.txt``. In a process that this starts, measure one page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT, help="folder of real pages")
    parser.add_argument("--slowest", type=int, default=3, metavar="N", help="real pages to show")
    parser.add_argument("--mode", choices=["here", "worker"], help=argparse.SUPPRESS)
    parser.add_argument("--page", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.mode:
        page = arguments.file.read_bytes() if arguments.file else PAGES[arguments.page]()
        print(json.dumps(measure(page, arguments.mode, OPTIONS.get(arguments.page, {}))))
        return
    head = ["page", "CPU s", "MB", "worker", "CPU s", "MB", "its CPU s", "its MB", "end"]
    rows = []
    for name in PAGES:
        rows.append(row(name, ["--page", name]))
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    real = slowest(arguments.data, arguments.slowest) if arguments.data.is_dir() else []
    rows += [row(f"{path.name} of the development pages", ["--file", str(path)]) for path in real]
    text = f"{heading('hostile.py', ('scrapy-dripper', 'lxml', 'trafilatura'))}\n\n{NOTE}\n\n{table(head, rows)}"
    publish(text, Path(__file__).parent / "results" / "hostile.txt")


if __name__ == "__main__":
    main()
