"""What the benchmarks share: their pages, tables with what is needed to repeat a run, a server, and processes."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import platform
import random
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

from scrapy_dripper.workshop.dataset.metrics import aligned as table

__all__ = [
    "DEFAULT",
    "Sample",
    "children_cpu",
    "crawled",
    "family",
    "heading",
    "memory",
    "publish",
    "sample",
    "serve_pages",
    "served",
    "table",
]

DEFAULT = Path(__file__).parents[1] / ".cache" / "wcxb-dev" / "html"
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True, slots=True)
class Sample:
    """One HTML file and its page type, which is ``page`` if the data have no ground truth."""

    path: Path
    kind: str


def sample(folder: Path, size: int, seed: int) -> tuple[list[Sample], list[Sample]]:
    """Return a sample of a folder's pages, with every page type by its share, and the rest, in a fixed random order.

    Raise SystemExit, saying how to get the data, if the folder has no pages.
    """
    if size < 1:
        raise SystemExit(f"--pages must be a whole number of at least 1 (got {size})")
    files = sorted(folder.glob("*.html"))
    if not files:
        raise SystemExit(
            f"{folder} has no *.html files. The benchmarks run on the development data: unpack its archive with "
            "'mkdir -p .cache && tar -xf wcxb-dev.tar.xz -C .cache', or name a folder of pages with --data."
        )
    chance = random.Random(seed)
    chance.shuffle(files)
    pages = sorted((Sample(path, _kind(path)) for path in files), key=lambda page: page.kind)
    size = min(size, len(pages))
    taken = {index * len(pages) // size for index in range(size)}
    chosen = [page for index, page in enumerate(pages) if index in taken]
    rest = [page for index, page in enumerate(pages) if index not in taken]
    chance.shuffle(chosen)
    chance.shuffle(rest)
    return chosen, rest


def _kind(path: Path) -> str:
    truth = path.parent.parent / "ground-truth" / f"{path.stem}.json"
    if not truth.is_file():
        return "page"
    return str(json.loads(truth.read_text(encoding="utf-8"))["_internal"]["page_type"]["primary"])


def heading(script: str, packages: Sequence[str]) -> str:
    """Return the facts that are needed to repeat a run."""
    arguments = shlex.join(["python", f"benchmarks/{script}", *sys.argv[1:]])
    return "\n".join(
        [
            f"$ {arguments}",
            f"{datetime.date.today().isoformat()}, {_processor()}, {os.cpu_count()} cores, {platform.system()}",
            f"Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in packages),
        ]
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def publish(text: str, path: Path) -> None:
    """Print a report and write it to a file."""
    print(text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def serve_pages(page: Callable[[str, Mapping[str, str]], bytes]) -> int:
    """Serve the results of ``page``, for a path and the headers, until the process ends. Return the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = page(self.path, self.headers)
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


@contextlib.contextmanager
def served(command: Sequence[str]) -> Iterator[list[int]]:
    """Run a server that prints numbers on a line, its port first, until the block ends. Yield the numbers."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        said = server.stdout.readline().split()
        if not said:
            raise SystemExit("the server failed")
        yield list(map(int, said))
        server.stdin.close()


def crawled(command: Sequence[str]) -> dict[str, Any]:
    """Run a crawl in a process of its own, and return the measurements that it prints as JSON on its last line."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)} failed with exit code {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# CPU time and memory of a process and all its children, as reported by Linux; zeros on other systems.
def family(pid: int) -> list[int]:
    """Return the IDs of a process and of all its descendants."""
    found = [pid]
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += family(int(child))
    return found


def memory(pid: int) -> float:
    """Return the memory of a process and its children in megabytes. Shared memory is counted once."""
    total = 0
    for one in family(pid):
        with contextlib.suppress(OSError, ValueError):
            for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1_000


def children_cpu(pid: int) -> float:
    """Return the CPU seconds of the children of a process, including those that have ended."""
    ticks = 0
    for one in family(pid):
        with contextlib.suppress(OSError, ValueError, IndexError):
            values = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, values[13:15])) + (sum(map(int, values[11:13])) if one != pid else 0)
    return ticks / _TICKS
