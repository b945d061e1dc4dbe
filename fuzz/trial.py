"""Try an input: what it costs, and whether it keeps all promises."""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from types import CodeType, FrameType
from typing import Any

from fuzz import cases, checks
from fuzz.checks import BrokenError
from scrapy_dripper.fallback import trafilatura_output  # noqa: F401 (takes long to import)

# All limits are proportional to the size of the document, and well above the cost of real pages.
SECONDS, SECONDS_PER_MB = 0.3, 6.0
"""CPU seconds of one extraction. 47 development pages, including the 25 largest, took up to a tenth of that. 400,000
characters of ``<li>a`` take half of it."""
TRAFILATURA = 4
"""How much longer it may take with Trafilatura as a fallback, which needs that for many short paragraphs."""
MEMORY, MEMORY_PER_CHAR = 64_000_000, 400
"""Bytes by which memory may grow. 400,000 characters of ``<p>x`` take a third of that."""
OUTPUT, STEPS, STEPS_OF_BLOCK, LEAST = 20, 200, 300, 2_000
"""Characters of each form of the output and lines of Python that run, per character of the document (``<i>`` in code,
800 in each other, take 53, and nested tables of tags with a letter each 149), lines that also run per block (``<h4>x``:
490 each), and the least size of a document."""


Lines = frozenset[tuple[CodeType, int]]
"""Lines of the package."""


def seconds(case: cases.Case) -> float:
    """Return the CPU seconds that a case may take: less than four for 100,000 characters with any extractor."""
    limit = SECONDS + SECONDS_PER_MB * len(case.html) / 1e6
    return TRAFILATURA * limit if case.config.fallback == "trafilatura" else limit


def attempt(case: cases.Case) -> tuple[int, Lines]:
    """Return how many lines of Python run, which is the same on every machine, and which lines of the package do.

    Raise :exc:`~fuzz.checks.BrokenError` if a case costs too much or breaks a promise.
    """
    size = max(len(case.html), LEAST)
    checks.extractor(case.engine)  # is made before time counts
    memory, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    found = checks.run(case)
    spent = time.process_time() - start
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory)
    if spent > seconds(case):  # what else runs here makes a page slow once
        start = time.process_time()
        checks.run(case)
        spent = min(spent, time.process_time() - start)
    if spent > seconds(case):
        raise BrokenError("slow", f"{spent:.1f} s for {size:,} characters")
    if grown > MEMORY + MEMORY_PER_CHAR * size:
        raise BrokenError("memory", f"{grown / 1e6:.0f} MB for {size:,} characters")
    checks.check(case, found)
    content = json.dumps(found.content or [], ensure_ascii=False, separators=(",", ":"))
    longest = max(len(form or "") for form in (found.main_html, found.markdown, found.text, content))
    if longest > OUTPUT * size:
        raise BrokenError("output", f"{longest:,} characters for {size:,}")
    steps, lines = traced(case)
    if steps > STEPS * size + STEPS_OF_BLOCK * found.details.get("blocks", 0):
        raise BrokenError("steps", f"{steps:,} steps for {size:,} characters")
    return steps, lines


def traced(case: cases.Case) -> tuple[int, Lines]:
    """Return how many lines of Python run for a case, and which lines of the package do."""
    steps = 0
    lines: set[tuple[CodeType, int]] = set()

    def within(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal steps
        if event == "line":
            steps += 1
            lines.add((frame.f_code, frame.f_lineno))
        return within

    sys.settrace(lambda frame, *_: within if "scrapy_dripper" in frame.f_code.co_filename else None)
    try:
        checks.run(case)
    finally:
        sys.settrace(None)
    return steps, frozenset(lines)


def finding_name(broken: BrokenError) -> str:
    """Return a file name that similar findings share."""
    where = re.sub(r"0x[0-9a-f]+|[\d.,]+|'.*?'|\".*\"", "", str(broken.args[1]))
    return re.sub(r"\W+", "_", f"{broken.kind}-{where}")[:80]
