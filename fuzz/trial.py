"""Try an input: what it costs, whether it keeps all promises, and how small it can be made."""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import re
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from fuzz import cases, checks
from fuzz.checks import BrokenError
from fuzz.mutate import tokens_of
from scrapy_dripper.fallback import trafilatura_output  # noqa: F401 (takes long to import)

# All limits are proportional to the size of the document, and well above the cost of real pages.
SECONDS, SECONDS_PER_MB = 0.3, 6.0
"""CPU seconds of one extraction. 47 development pages, including the 25 largest, took up to a tenth of that. 400,000
characters of ``<li>a`` take half of it."""
TRAFILATURA, TRAFILATURA_PER_MB = 1.0, 12.0
"""Additional CPU seconds for Trafilatura as a fallback. It needs that much for many short paragraphs."""
MEMORY, MEMORY_PER_CHAR = 64_000_000, 400
"""Bytes by which memory may grow. 400,000 characters of ``<p>x`` take a third of that."""
OUTPUT, STEPS, LEAST = 20, 50, 1_000
"""Characters of each form of the output and lines of Python that run, per character of the document, and the minimum
size of a document."""
PATIENCE = 5.0
"""Seconds until a process is killed, in addition to ten times the limit of its page."""
MINIMISING = 90.0
"""Seconds for minimising one finding."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a document costs, and the lines of the package that it reaches."""

    steps: int
    """Lines of Python that run, which is the same on every machine."""
    output: int
    """Characters of the longest form of the output."""
    lines: frozenset[tuple[CodeType, int]]


def seconds(case: cases.Case) -> float:
    """Return the CPU seconds that a case may take: less than two for 100,000 characters with any extractor."""
    size = len(case.html) / 1e6
    more = TRAFILATURA + TRAFILATURA_PER_MB * size if case.config.fallback == "trafilatura" else 0.0
    return SECONDS + SECONDS_PER_MB * size + more


def attempt(case: cases.Case) -> Cost:
    """Return the cost of a case. Raise :exc:`~fuzz.checks.BrokenError` if it costs too much or breaks a promise."""
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
    forms = {name: len(getattr(found, name) or "") for name in ("main_html", "markdown", "text")}
    checks.check(case, found)
    forms["content"] = len(json.dumps(found.content or [], ensure_ascii=False, separators=(",", ":")))
    form = max(forms, key=lambda name: forms[name])
    if forms[form] > OUTPUT * size:
        raise BrokenError("output", f"{forms[form]:,} characters of {form} for {size:,}")
    steps, lines = _traced(case)
    if steps > STEPS * size:
        raise BrokenError("steps", f"{steps:,} steps for {size:,} characters")
    return Cost(steps, forms[form], lines)


def _traced(case: cases.Case) -> tuple[int, frozenset[tuple[CodeType, int]]]:
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


def outcome(data: bytes) -> tuple[str, str] | None:
    """Try an input in a process of its own; return the name of the promise that it breaks with the details, or None.

    A process that takes much longer than it may is killed.
    """
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_send_outcome, args=(data, sending))
    process.start()
    sending.close()
    process.join(PATIENCE + 10 * seconds(cases.decode(data)))
    if process.is_alive():
        process.kill()
        return "hang", "the process did not end"
    try:
        said: tuple[str, str] | None = receiving.recv()
    except EOFError:
        return "died", f"the process ended with {process.exitcode}"
    return said


def _send_outcome(data: bytes, sending: Any) -> None:
    faulthandler.disable()
    try:
        attempt(cases.decode(data))
        sending.send(None)
    except BrokenError as broken:
        sending.send((broken.kind, str(broken.args[1])))


def minimise(data: bytes, kind: str) -> bytes:
    """Return an input that breaks the same promise, as small as it becomes in some time."""
    end = time.monotonic() + MINIMISING
    header, body = data[: cases.HEADER].ljust(cases.HEADER, b"\0"), data[cases.HEADER :]

    def is_enough(smaller: bytes) -> bool:
        found = outcome(smaller) if time.monotonic() < end else None
        return found is not None and found[0] == kind

    for split in (tokens_of, lambda text: [text[i : i + 1] for i in range(len(text))]):
        parts: Sequence[bytes] = split(body)
        size = max(1, len(parts) // 2)
        while True:
            at = 0
            while at < len(parts):
                fewer = [*parts[:at], *parts[at + size :]]
                if is_enough(header + b"".join(fewer)):
                    parts = fewer
                else:
                    at += size
            if size == 1:
                break
            size //= 2
        body = b"".join(parts)
    for i in range(cases.HEADER):
        plain = header[:i] + b"\0" + header[i + 1 :]
        header = plain if is_enough(plain + body) else header
    return header + body


def review(findings: Path) -> list[tuple[Path, str]]:
    """Try each finding in a new process; return the files of those that occur again, minimised, with the details."""
    reviewed = []
    for path in sorted(findings.glob("*.input")):
        data = path.read_bytes()
        found = outcome(data)
        if found is None:
            path.rename(path.with_suffix(".gone"))
            continue
        small = minimise(data, found[0])
        path.with_suffix(".min").write_bytes(small)
        html = cases.decode(small).html
        path.with_suffix(".html").write_bytes(html if isinstance(html, bytes) else html.encode("utf-8", "replace"))
        reviewed.append((path.with_suffix(".min"), ": ".join(found)))
    return reviewed
