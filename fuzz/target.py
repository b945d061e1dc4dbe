"""The fuzzing process: atheris draws inputs that reach new code, each is tried, and what breaks is written down.

A finding does not end the process: there may be others behind it. ``python -m fuzz`` starts and watches it.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from random import Random

import atheris  # type: ignore[import-untyped, unused-ignore]

with atheris.instrument_imports(include=["scrapy_dripper"], enable_loader_override=False):
    # Imported late by the package itself, when nobody would take note of their lines any more.
    import scrapy_dripper.metadata
    import scrapy_dripper.trafilatura_output  # noqa: F401
    from fuzz import cases, checks, limits
    from fuzz.checks import BrokenError
    from fuzz.mutate import cross, mutate, soup
    from fuzz.state import Peak, Shared
    from fuzz.trial import attempt, finding_name

MAX_LEN = 12_000
"""Bytes of an input, before a piece of it is repeated."""

INHERITED = 0.005
"""Share of inputs that repeat a piece of the document because the one that they are made from did."""

THOROUGH = 3
"""One input in so many goes through all checks."""


class Target:
    """Try inputs, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shared = Shared(folder / "state")
        self.state = self.shared.read()
        self.peak = Peak()
        self.seen = {path.stem for path in (folder / "findings").glob("*.input")}
        self.pool: list[bytes] = []
        self.chance = Random(self.state.inputs)

    def try_one(self, data: bytes) -> None:
        """Try an input: what atheris calls."""
        state = self.state
        state.inputs += 1
        self.shared.write_input(data)
        state.started = time.process_time()
        self.shared.write(state)
        case = cases.decode(data)
        thorough = state.inputs % THOROUGH == 0
        try:
            cost = attempt(case, self.peak, slower=limits.INSTRUMENTED, thorough=thorough)
        except BrokenError as broken:
            self._found(data, broken)
        else:
            state.slowest, state.grown = max(state.slowest, cost.seconds), max(state.grown, cost.memory)
            state.largest = max(state.largest, len(case.html))
        state.thorough += thorough
        state.started = 0.0
        self.shared.write(state)
        if len(self.pool) < 500 or state.inputs % 50 == 0:
            self._remember(data)

    def mutate(self, data: bytes, max_size: int, seed: int) -> bytes:
        """Return another input: a damaged document, a new one, other choices, or the fuzzer's own idea of another."""
        chance = Random(seed)
        header, body = data[: cases.HEADER].ljust(cases.HEADER, b"\0"), data[cases.HEADER :]
        kind = chance.random()
        if kind < 0.05:
            return bytes(atheris.Mutate(data, max_size))[:max_size]
        if chance.random() > INHERITED:  # long documents reach more, and would become most of what is tried
            header = cases.not_repeated(header)
        if kind < 0.3:
            header = _other_choices(header, chance)
        if kind > 0.8:
            body = soup(chance)
        elif kind > 0.15:
            body = mutate(body, chance, chance.choice(self.pool) if self.pool else b"")
        return (header + body)[:max_size]

    def cross(self, first: bytes, second: bytes, max_size: int, seed: int) -> bytes:
        """Return the beginning of one input with the end of another."""
        chance = Random(seed)
        return (first[: cases.HEADER] + cross(first[cases.HEADER :], second[cases.HEADER :], chance))[:max_size]

    def _remember(self, data: bytes) -> None:
        body = data[cases.HEADER :]
        if len(self.pool) < 500:
            self.pool.append(body)
        else:
            self.pool[self.chance.randrange(500)] = body

    def _found(self, data: bytes, broken: BrokenError) -> None:
        """Write a finding down, if none like it was."""
        name = finding_name(broken)
        if name in self.seen:
            return
        self.seen.add(name)
        self.state.findings += 1
        (self.folder / "findings" / f"{name}.input").write_bytes(data)
        (self.folder / "findings" / f"{name}.json").write_text(json.dumps([str(part) for part in broken.args]))


def _other_choices(header: bytes, chance: Random) -> bytes:
    made = bytearray(header)
    for _ in range(chance.choice((1, 1, 2, 4, cases.HEADER))):
        made[chance.randrange(cases.HEADER)] = chance.randrange(256)
    return bytes(made)


def main() -> None:
    """Fuzz until killed, or for so many runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    # The stack of an input that hangs, on request: also while native code runs.
    stacks = (arguments.folder / "stacks").open("w")
    faulthandler.register(signal.SIGUSR1, stacks)
    warnings.simplefilter("error", RuntimeWarning)
    target = Target(arguments.folder)
    checks.load_engines()
    # Time and memory are watched by others, who can tell what is much for an input of that size.
    options = [
        *("-timeout=100000", "-rss_limit_mb=0", "-len_control=0", "-reload=0", "-detect_leaks=0"),
        *(f"-max_len={MAX_LEN}", f"-seed={arguments.seed + target.state.inputs}"),
        f"-artifact_prefix={arguments.folder}/",
    ]
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    atheris.Setup(
        [sys.argv[0], str(arguments.folder / "corpus"), *options],
        target.try_one,
        custom_mutator=target.mutate,
        custom_crossover=target.cross,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
