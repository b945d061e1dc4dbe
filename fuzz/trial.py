"""One try of a case within its limits, and the name of what it found."""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass

from fuzz import checks, limits
from fuzz.cases import Case
from fuzz.checks import BrokenError
from fuzz.state import Peak

_passing = re.compile(r"0x[0-9a-f]+|\d+|'.*?'|\".*\"")
_active = re.compile(r"Main-HTML|Markdown|content|<[\w:-]+(?: [\w:-]+)?")


@dataclass(slots=True)
class Cost:
    """What the extraction of a case took."""

    seconds: float = 0.0
    """CPU seconds."""
    memory: int = 0
    """Bytes by which memory grew."""


def attempt(case: Case, peak: Peak, *, slower: float = 1.0, thorough: bool = True) -> Cost:
    """Return the cost of a case. Raise :exc:`~fuzz.checks.BrokenError` if it costs too much or breaks a promise.

    ``slower`` is how much slower this process is than an ordinary one.
    """
    size = len(case.html)
    before, start = peak.reset(), time.process_time()
    found = checks.run(case)
    cost = Cost(time.process_time() - start, peak.read() - before)
    trafilatura = case.config.fallback == "trafilatura" or case.config.metadata_field is not None
    if cost.seconds > slower * limits.seconds(size, trafilatura=trafilatura):
        raise BrokenError("slow", f"{cost.seconds:.1f} s for {size:,} characters")
    if cost.memory > limits.memory(size):
        raise BrokenError("memory", f"{cost.memory / 1e6:.0f} MB for {size:,} characters")
    checks.check(case, found, thorough=thorough)
    return cost


def finding_name(broken: BrokenError) -> str:
    """Return a file name that is the same for findings that look the same."""
    kind, detail = broken.kind, str(broken.args[1])
    if kind in ("raises", "swallows", "profile"):
        kind += "-" + hashlib.sha1(_passing.sub("", detail).encode()).hexdigest()[:8]
    elif kind == "safety":
        kind += "-" + "".join(_active.findall(detail))[:40]
    return re.sub(r"[^\w-]+", "_", kind)
