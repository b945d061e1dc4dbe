"""The fuzzing process: atheris draws inputs that reach new code, and each is tried and checked.

A finding does not end the process, because there may be others after it. ``python -m fuzz`` starts and watches it.
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
    # The package imports these late, when they would no longer be instrumented.
    import scrapy_dripper.fallback.trafilatura_output  # noqa: F401
    from fuzz import cases, checks, limits
    from fuzz.cases import Case
    from fuzz.checks import BrokenError
    from fuzz.mutate import cross, mutate, soup
    from fuzz.pump import SIZES, pumped
    from fuzz.records import FORMS, NUMBERS, Cost, Records
    from fuzz.state import Peak, Shared
    from fuzz.trial import attempt, finding_name, measured

MAX_LEN = 12_000
"""Maximum size of an input in bytes, before a piece of it is repeated."""

INHERITED = 0.005
"""Share of inputs that inherit a repeated piece from the input that they are made from."""

THOROUGH = 3
"""One input in this number goes through all checks."""


class Target:
    """Tries inputs, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shared = Shared(folder / "state")
        self.state = self.shared.read()
        self.peak = Peak()
        self.seen = {path.stem: 0.0 for path in (folder / "findings").glob("*.input")}
        self.records = Records()
        # The corpus sets the first records. Its inputs are not pumped again.
        self.first = self.state.inputs + sum(1 for _ in (folder / "corpus").iterdir())
        # To libFuzzer, a record is a separate branch that was reached.
        self.counters = [atheris._reserve_counter() for _ in range(NUMBERS)]
        self.pool: list[bytes] = []
        self.chance = Random(self.state.inputs)

    def try_one(self, data: bytes) -> None:
        """Try an input. Called by atheris."""
        state = self.state
        state.inputs += 1
        self.shared.write_input(data)
        state.started = time.process_time()
        self.shared.write(state)
        case = cases.decode(data)
        thorough = state.inputs % THOROUGH == 0
        try:
            cost = attempt(case, self.peak, slower=limits.INSTRUMENTED, thorough=thorough)
            self._judge(data, case, cost)
        except BrokenError as broken:
            self._found(data, broken)
        state.thorough += thorough
        state.started = 0.0
        self.shared.write(state)
        if len(self.pool) < 500 or state.inputs % 50 == 0:
            self._remember(data)

    def _judge(self, data: bytes, case: Case, cost: Cost) -> None:
        """Keep an input that costs more for its size than any before, and try it at a larger size."""
        state, size = self.state, len(case.html)
        broken = self.records.broken(size, cost, lambda: measured(case, self.peak, limits.INSTRUMENTED)[1].seconds)
        for number in broken.values():
            atheris._trace_branch(self.counters[number])
        state.slowest, state.grown = max(state.slowest, cost.seconds), max(state.grown, cost.memory)
        state.largest = max(state.largest, size)
        state.rate = max(state.rate, 100_000 * cost.rate("seconds", size))
        state.factor = max(state.factor, *(cost.rate(form, size) for form in FORMS))
        if "seconds" in broken and state.inputs > self.first:
            self._pump(data)

    def _pump(self, data: bytes) -> None:
        """Try an input with longer and longer runs, as long as it takes more than its share of time."""
        header, body = cases.not_repeated(data[: cases.HEADER].ljust(cases.HEADER, b"\0")), data[cases.HEADER :]
        grown = [list(pumped(body, size)) for size in SIZES]
        for documents in zip(*grown, strict=True):
            for document in documents:
                made = header + document
                self.shared.write_input(made)
                self.state.started = time.process_time()
                self.shared.write(self.state)
                try:
                    cost = measured(cases.decode(made), self.peak, limits.INSTRUMENTED)[1]
                except BrokenError as broken:
                    self._found(made, broken)
                    break
                # With quadratic growth, would the largest size exceed the limit?
                at_most = cost.seconds * (SIZES[-1] / len(document)) ** 2
                if at_most < limits.INSTRUMENTED * limits.seconds(SIZES[-1]):
                    break

    def mutate(self, data: bytes, max_size: int, seed: int) -> bytes:
        """Return another input: a damaged document, a new one, other choices, or the fuzzer's own mutation."""
        chance = Random(seed)
        header, body = data[: cases.HEADER].ljust(cases.HEADER, b"\0"), data[cases.HEADER :]
        kind = chance.random()
        if kind < 0.05:
            return bytes(atheris.Mutate(data, max_size))[:max_size]
        if chance.random() > INHERITED:  # long documents reach more code, and would dominate the inputs
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
        """Write a finding, unless a similar one was written that is at least half as bad."""
        name, times = finding_name(broken), float(broken.args[2]) if len(broken.args) > 2 else 0.0
        if name in self.seen and times <= 2 * self.seen[name]:
            return
        self.seen[name] = times
        self.state.findings += 1
        (self.folder / "findings" / f"{name}.input").write_bytes(data)
        (self.folder / "findings" / f"{name}.json").write_text(json.dumps([str(part) for part in broken.args]))


def _other_choices(header: bytes, chance: Random) -> bytes:
    made = bytearray(header)
    for _ in range(chance.choice((1, 1, 2, 4, cases.HEADER))):
        made[chance.randrange(cases.HEADER)] = chance.randrange(256)
    return bytes(made)


def main() -> None:
    """Fuzz until killed, or for a number of runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    # Prints the stack of an input that hangs on request, even while native code runs.
    stacks = (arguments.folder / "stacks").open("w")
    faulthandler.register(signal.SIGUSR1, stacks)
    warnings.simplefilter("error", RuntimeWarning)
    target = Target(arguments.folder)
    checks.load_engines()
    # Time and memory are limited elsewhere, in proportion to the size of the input.
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
