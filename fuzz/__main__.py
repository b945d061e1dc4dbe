"""Fuzz the extraction of main content: ``python -m fuzz --minutes 10``. See ``docs/internals/reliability.md``."""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import multiprocessing
import sys
import time
import warnings
from pathlib import Path
from random import Random

from fuzz import cases
from fuzz.checks import BrokenError
from fuzz.mutate import mutate, soup
from fuzz.trial import LEAST, Lines, attempt, finding_name, seconds
from tests.trees import nested

ROOT = Path(__file__).parents[1]
SEEDS = (ROOT / "tests" / "structured", ROOT / "tests" / "fuzz" / "regressions")
MAX_LEN = 12_000
"""Maximum size of an input in bytes. Long documents reach more code, and would dominate the inputs."""


class Search:
    """Mutates inputs, and keeps those that reach new lines or cost more for their size than any before."""

    def __init__(self, folder: Path, seed: int, deep: bool) -> None:
        self.folder, self.deep = folder, deep
        self.chance = Random(seed)
        self.pool: list[bytes] = []
        self.reached: set[object] = set()
        self.records: dict[int, float] = {}
        """The most steps per character, by the magnitude of the document's size."""
        self.inputs = 0

    def run(self, until: float) -> None:
        """Try the seeds and what was kept earlier, and then inputs made from them, until a time of the clock."""
        warnings.simplefilter("error", RuntimeWarning)
        kept = sorted((self.folder / "corpus").iterdir())
        roots = () if self.deep else SEEDS
        pages = [path.read_bytes() for root in roots for path in sorted(root.rglob("*.html"))]
        waiting = [*(path.read_bytes() for path in kept), *(bytes(cases.HEADER) + page[:MAX_LEN] for page in pages)]
        shown = start = time.monotonic()
        while time.time() < until:
            self.try_one(waiting.pop() if waiting else self.new())
            if time.monotonic() > shown + 30 or time.time() >= until:
                shown = time.monotonic()
                most = max(self.records.values(), default=0)
                found = len(list((self.folder / "findings").glob("*.input")))
                print(f"{self.inputs:,} inputs, {self.inputs / (shown - start):.1f}/s, {len(self.reached):,} lines, "
                      f"{len(self.pool):,} kept, at most {most:.0f} steps per character, {found} findings",
                      file=sys.stderr, flush=True)  # fmt: skip

    def new(self) -> bytes:
        """Return another input: one that was kept with some damage or other choices, or a new one."""
        chance = self.chance
        data, other = chance.choice(self.pool or [b""]), chance.choice(self.pool or [b""])
        header, body = bytearray(data[: cases.HEADER].ljust(cases.HEADER, b"\0")), data[cases.HEADER :]
        if chance.random() < 0.3:
            for _ in range(chance.choice((1, 1, 2, 4, cases.HEADER))):
                header[chance.randrange(cases.HEADER)] = chance.randrange(256)
        if chance.random() < 0.2:
            body = nested(chance).encode() if self.deep or chance.random() < 0.5 else soup(chance)
        else:
            body = mutate(body, chance, other[cases.HEADER :])
        return bytes(header) + body[:MAX_LEN]

    def try_one(self, data: bytes) -> None:
        """Try an input. A finding does not end the search, because there may be others after it."""
        self.inputs += 1
        case = cases.decode(data)
        (self.folder / "present").write_bytes(data)
        with (self.folder / "stacks").open("w") as stacks:
            # Also ends what native code does; tracing takes most of the time.
            faulthandler.dump_traceback_later(20 + 50 * seconds(case), file=stacks, exit=True)
            try:
                steps, lines = attempt(case)
            except BrokenError as broken:
                path = self.folder / "findings" / f"{finding_name(broken)}.input"
                if not path.exists():
                    path.write_bytes(data)
                    html = case.html if isinstance(case.html, bytes) else case.html.encode("utf-8", "replace")
                    path.with_suffix(".html").write_bytes(html)
                return
            finally:
                faulthandler.cancel_dump_traceback_later()
        if self.is_new(len(case.html), steps, lines):
            self.pool.append(data)
            (self.folder / "corpus" / hashlib.sha1(data).hexdigest()).write_bytes(data)

    def is_new(self, size: int, steps: int, lines: Lines) -> bool:
        """Note the lines and the records of an input. Return True if there are new ones.

        A record must be a fifth higher. Small documents cost more for their size, so each magnitude has its own.
        """
        is_new = not lines <= self.reached
        self.reached |= lines
        size = max(size, LEAST)
        if steps / size > 1.2 * self.records.get(size.bit_length(), 0.0):
            self.records[size.bit_length()] = steps / size
            is_new = True
        return is_new


def fuzz(folder: Path, seed: int, deep: bool, minutes: float) -> list[Path]:
    """Search in a process, and start another one after an input that ends it. Return the files of the findings."""
    for name in ("corpus", "findings"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    until = time.time() + 60 * minutes
    for i in range(200):
        process = multiprocessing.get_context("fork").Process(target=Search(folder, seed + i, deep).run, args=(until,))
        process.start()
        process.join()
        if process.exitcode == 0:
            break
        print((folder / "stacks").read_text(), file=sys.stderr)
        (folder / "present").replace(folder / "findings" / f"died-{seed + i}.input")
    return sorted((folder / "findings").glob("*.input"))


def main() -> int:
    """Fuzz, or try a finding again. Return 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz the extraction of main content.")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=ROOT / ".cache" / "fuzz", help="keeps corpus and findings")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn by chance (default: %(default)s)")
    parser.add_argument("--nested", action="store_true", help="begin with trees that are nested deep, not with pages")
    parser.add_argument("--try", type=Path, dest="once", metavar="FILE", help="only try a file of a finding again")
    arguments = parser.parse_args()
    if arguments.once is not None:
        case = cases.decode(arguments.once.read_bytes())
        print(case)
        try:
            attempt(case)
        except BrokenError as broken:
            print(*broken.args, sep=": ")
            return 1
        print("nothing found")
        return 0
    findings = fuzz(arguments.folder.resolve(), arguments.seed, arguments.nested, arguments.minutes)
    print(*findings, f"{len(findings)} findings", sep="\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
