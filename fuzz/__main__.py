"""Fuzz the extraction of main content: ``python -m fuzz --minutes 10``. See ``docs/internals/fuzzing.md``."""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random

from fuzz import cases, limits
from fuzz.minimise import outcome, review
from fuzz.seeds import ROOT, write_seeds
from fuzz.state import Shared, State, cpu_seconds, resident

MOST_MEMORY = 2_500_000_000
"""Memory limit of the fuzzing process, in bytes. Inputs that take more are findings, and the process is restarted."""

_coverage = re.compile(rb"\bcov: (\d+) ft: (\d+) corp: (\d+)").search


class Watch:
    """Starts the fuzzing process, shows its progress, and restarts it after an input that stops it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.seed = seed
        self.shared = Shared(folder / "state")
        self.coverage = self.first_coverage = self.corpus = 0
        self.deaths = 0
        self.process: subprocess.Popen[bytes] | None = None

    def run(self, seconds: float) -> None:
        """Fuzz for a number of seconds."""
        start = shown = time.monotonic()
        before = self.shared.read().inputs
        terminal = sys.stderr.isatty()
        try:
            while (now := time.monotonic()) < start + seconds:
                if self.process is None or self.process.poll() is not None:
                    self._died()
                    self._start()
                time.sleep(0.2)
                self._check_present()
                if now - shown >= (1 if terminal else 30):
                    shown = now
                    line = self._line(self.shared.read(), before, now - start)
                    print(f"\r{line}" if terminal else line, end="" if terminal else "\n", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            pass
        finally:
            self._stop()
            print(f"\r{self._line(self.shared.read(), before, time.monotonic() - start)}", file=sys.stderr)

    def _line(self, state: State, before: int, seconds: float) -> str:
        done = state.inputs - before
        return (
            f"{int(seconds) // 60}:{int(seconds) % 60:02} {done:,} inputs, {done / max(seconds, 1e-9):.0f}/s, "
            f"coverage {self.coverage:,} (+{max(0, self.coverage - self.first_coverage):,}), corpus {self.corpus:,}, "
            f"slowest {state.slowest:.1f} s, largest {state.largest:,}, most memory +{state.grown / 1e6:.0f} MB, "
            f"most {state.rate:.1f} s for 100 kB, output {state.factor:.0f} times, "
            f"findings {len(list((self.folder / 'findings').glob('*.input')))}  "
        )

    def _start(self) -> None:
        command = [sys.executable, "-m", "fuzz.target", str(self.folder), "--seed", str(self.seed + self.deaths)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        """Read the coverage that libFuzzer reports. Keep its other output, which shows why a process ended."""
        assert process.stdout is not None
        with (self.folder / "log").open("ab") as log:
            for line in process.stdout:
                match = _coverage(line)
                if match is None or b"INITED" in line:
                    log.write(line)
                    log.flush()
                if match is not None:
                    self.coverage, self.corpus = int(match[1]), int(match[3])
                    if b"INITED" in line:
                        self.first_coverage = self.first_coverage or self.coverage

    def _check_present(self) -> None:
        """End the process if its current input takes too much time or memory."""
        process = self.process
        state = self.shared.read()
        if process is None or process.poll() is not None:
            return
        try:
            used, memory = cpu_seconds(process.pid), resident(process.pid)
        except OSError:
            return
        if memory > MOST_MEMORY:
            self._save("memory-process", f"{memory / 1e6:.0f} MB in memory")
        elif state.started and used - state.started > 5 + limits.INSTRUMENTED * limits.HANG * limits.seconds(
            len(cases.decode(self.shared.read_input()).html), trafilatura=True
        ):
            process.send_signal(signal.SIGUSR1)
            time.sleep(0.5)
            self._save("hang", (self.folder / "stacks").read_text()[:2_000])
        else:
            return
        self._stop()

    def _died(self) -> None:
        """Keep the input during which the process ended, if there is one."""
        state = self.shared.read()
        if self.process is not None and state.started:
            self._save(f"died{self.process.returncode}", f"the process ended with {self.process.returncode}")
        if self.process is not None:
            self.deaths += 1
            if self.deaths > 200:
                raise SystemExit(f"The fuzzing process ends again and again: see {self.folder / 'log'}")

    def _save(self, name: str, detail: str) -> None:
        path = self.folder / "findings" / f"{name}-{self.deaths}-{int(time.time())}.input"
        path.write_bytes(self.shared.read_input())
        path.with_suffix(".json").write_text(json.dumps([name, detail]))
        state = self.shared.read()
        state.started = 0.0
        self.shared.write(state)

    def _stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def main() -> int:
    """Fuzz, and then minimise the findings. Return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz the extraction of main content.")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (default: %(default)s)")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / ".cache" / "fuzz", help="where corpus and findings are kept"
    )
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn by chance (default: %(default)s)")
    parser.add_argument("--try", type=Path, dest="once", metavar="FILE", help="only try a file of a finding again")
    arguments = parser.parse_args()
    if arguments.once is not None:
        found = outcome(arguments.once.read_bytes())
        print(cases.decode(arguments.once.read_bytes()))
        print(found or "nothing found")
        return 1 if found else 0
    folder: Path = arguments.folder.resolve()
    (folder / "findings").mkdir(parents=True, exist_ok=True)
    if not (folder / "corpus").is_dir():
        print(f"{write_seeds(folder / 'corpus', Random(arguments.seed)):,} seeds", file=sys.stderr)
    Watch(folder, arguments.seed).run(60 * arguments.minutes)
    print("Making the findings small ...", file=sys.stderr)
    reviewed = review(folder / "findings")
    for path, found in reviewed:
        print(f"{path}\n    {found.detail}")
    print(f"{len(reviewed)} findings")
    return 1 if reviewed else 0


if __name__ == "__main__":
    sys.exit(main())
