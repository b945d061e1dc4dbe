"""Try a case within its limits, and name the finding."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from fuzz import checks, limits
from fuzz.cases import Case
from fuzz.checks import BrokenError
from fuzz.records import FORMS, Cost
from fuzz.state import Peak
from scrapy_dripper.data import Extraction

clock = time.process_time

_passing = re.compile(r"0x[0-9a-f]+|\d+|'.*?'|\".*\"")
_active = re.compile(r"Main-HTML|Markdown|content|<[\w:-]+(?: [\w:-]+)?")


class Places:
    """Records the functions of the package in which CPU time is spent, as a context manager.

    A timer samples the position of the interpreter. It gets no sample before a call of a regular expression or a parser
    returns, so the time since the last sample counts for the function that made the call.
    """

    SECONDS = 0.02

    def __init__(self) -> None:
        self._spent: Counter[str] = Counter()
        self._last = 0.0

    def __enter__(self) -> Places:
        self._last = time.process_time()
        self._handler = signal.signal(signal.SIGPROF, self._ask)
        signal.setitimer(signal.ITIMER_PROF, self.SECONDS, self.SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._handler)

    def most(self) -> str:
        """Return the function that took the most time, as ``module.function``."""
        return max(self._spent, key=lambda place: self._spent[place], default="nowhere")

    def _ask(self, _signal: int, frame: FrameType | None) -> None:
        now = time.process_time()
        while frame is not None and "/scrapy_dripper/" not in frame.f_code.co_filename:
            frame = frame.f_back
        if frame is not None:
            code = frame.f_code
            self._spent[f"{Path(code.co_filename).stem}.{code.co_name}"] += now - self._last  # type: ignore[assignment]
        self._last = now


def attempt(case: Case, peak: Peak, *, slower: float = 1.0, thorough: bool = True) -> Cost:
    """Return the cost of a case. Raise :exc:`~fuzz.checks.BrokenError` if it costs too much or breaks a promise.

    ``slower`` is how much slower this process is than an ordinary one.
    """
    found, cost = measured(case, peak, slower)
    checks.check(case, found, thorough=thorough)
    return cost


def measured(case: Case, peak: Peak, slower: float = 1.0) -> tuple[Extraction, Cost]:
    """Return the extraction of a case and its cost. Raise :exc:`~fuzz.checks.BrokenError` if it costs too much.

    The third argument of the error is the factor by which the limit was exceeded.
    """
    size = len(case.html)
    with Places() as places:
        before, start = peak.reset(), clock()
        found = checks.run(case)
        cost = Cost(clock() - start, peak.read() - before)
    cost.output = _output(found)
    most = slower * limits.seconds(size, trafilatura=case.config.fallback == "trafilatura")
    if cost.seconds > most:
        detail = f"{cost.seconds:.1f} s for {size:,} characters, most of them in {places.most()}"
        raise BrokenError("slow", detail, cost.seconds / most if most > 0 else 0.0)
    if cost.memory > limits.memory(size):
        raise BrokenError("memory", f"{cost.memory / 1e6:.0f} MB for {size:,} characters")
    for form, written in cost.output.items():
        if written > limits.output(size):
            detail = f"{written:,} characters for {size:,} of {form}"
            raise BrokenError("output", detail, written / limits.output(size))
    return found, cost


def finding_name(broken: BrokenError) -> str:
    """Return a file name that similar findings share."""
    kind, detail = broken.kind, str(broken.args[1])
    if kind in ("raises", "swallows", "profile"):
        kind += "-" + hashlib.sha1(_passing.sub("", detail).encode()).hexdigest()[:8]
    elif kind == "safety":
        kind += "-" + "".join(_active.findall(detail))[:40]
    elif kind in ("slow", "output"):
        kind += "-" + detail.rpartition(" ")[2]
    return re.sub(r"[^\w-]+", "_", kind)


def _output(found: Extraction) -> dict[str, int]:
    """Return the characters of each form of an extraction."""
    forms: dict[str, Any] = {form: getattr(found, form) or "" for form in FORMS}
    try:
        forms["content"] = json.dumps(found.content or [], ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, AttributeError):  # no content list, which the checks report
        forms["content"] = ""
    return {form: len(text) for form, text in forms.items()}
