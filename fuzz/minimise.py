"""Minimise findings in a clean process. A finding that does not occur there is dropped."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzz import cases, limits
from fuzz.checks import BrokenError
from fuzz.state import Peak
from fuzz.trial import attempt, finding_name

SECONDS = 90.0
"""Wall-clock seconds for minimising one finding."""
MEMORY = 8_000_000_000
"""Limit of the address space of a trial, in bytes."""

_tokens = re.compile(rb"<[^<>]*>|[^<\s]+|\s+|<").findall


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a trial: the name of a finding, and its details."""

    name: str
    detail: str

    def is_like(self, other: Outcome) -> bool:
        """Return True for the same finding. All slow inputs, and inputs that hang, count as the same."""
        return self.name == other.name or all(name.startswith(("slow", "hang")) for name in (self.name, other.name))


def outcome(data: bytes) -> Outcome | None:
    """Try an input in a separate process, with limits on time and memory, and return the outcome."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _try(data, write)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        sign = os.WTERMSIG(status)
        if sign in (signal.SIGXCPU, signal.SIGKILL):
            return Outcome("hang", f"no end after {_most_seconds(data)} s of CPU time")
        return Outcome(f"died-{signal.Signals(sign).name}", "the process died")
    return Outcome(*json.loads(said)) if said else None


def minimise(data: bytes, target: Outcome, seconds: float = SECONDS) -> bytes:
    """Return the smallest input with the same outcome that is found in the given time."""
    end = time.monotonic() + seconds

    def holds(made: bytes) -> bool:
        found = outcome(made) if time.monotonic() < end else None
        return found is not None and found.is_like(target)

    header, body = data[: cases.HEADER].ljust(cases.HEADER, b"\0"), data[cases.HEADER :]
    if header[9] > 253:
        plain = cases.repeated(body, header[10], header[11])
        if holds(header[:9] + bytes(3) + plain):
            header, body = header[:9] + bytes(3), plain
    for i in range(cases.HEADER):
        simpler = header[:i] + b"\0" + header[i + 1 :]
        if header[i] and holds(simpler + body):
            header = simpler
    pieces = _smaller(_tokens(body), lambda some: holds(header + b"".join(some)))
    body = b"".join(pieces)
    if len(body) < 2_000:
        letters = [body[i : i + 1] for i in range(len(body))]
        body = b"".join(_smaller(letters, lambda some: holds(header + b"".join(some))))
    return header + body


def review(folder: Path) -> list[tuple[Path, Outcome]]:
    """Try the findings in a folder again and minimise them. Return those that still occur, with their files."""
    found = []
    for path in sorted(folder.glob("*.input")):
        data = path.read_bytes()
        now = outcome(data)
        if now is None:
            path.rename(path.with_suffix(".gone"))
            continue
        small = minimise(data, now)
        page = path.with_suffix(".html")
        html = cases.decode(small).html
        page.write_bytes(html if isinstance(html, bytes) else html.encode("utf-8", "surrogateescape"))
        path.with_suffix(".min").write_bytes(small)
        found.append((path.with_suffix(".min"), outcome(small) or now))
    return found


def _smaller(pieces: Sequence[bytes], holds: Callable[[Sequence[bytes]], bool]) -> Sequence[bytes]:
    """Leave out pieces while ``holds`` is True (Zeller and Hildebrandt, Simplifying failure-inducing input, 2002)."""
    width = max(1, len(pieces) // 2)
    while True:
        start, shorter = 0, False
        while start < len(pieces):
            rest = [*pieces[:start], *pieces[start + width :]]
            if holds(rest):
                pieces, shorter = rest, True
            else:
                start += width
        if width == 1 and not shorter:
            return pieces
        width = max(1, width // 2)


def _try(data: bytes, write: int) -> None:
    """Try an input, write the outcome, and end the process."""
    said = b""
    try:
        most = _most_seconds(data)
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 2))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        attempt(cases.decode(data), Peak())
    except BrokenError as broken:
        said = json.dumps([finding_name(broken), f"{broken.kind}: {broken.args[1]}"]).encode()
    except BaseException as error:  # the checks themselves failed
        said = json.dumps(["check", f"{type(error).__name__}: {error}"]).encode()
    os.write(write, said)
    os._exit(0)


def _most_seconds(data: bytes) -> int:
    # Two seconds for loading the tagger.
    return int(2 + limits.HANG * limits.seconds(len(cases.decode(data).html), trafilatura=True))
