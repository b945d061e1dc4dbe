"""What the benchmarks share: options, pages, tables with what is needed to repeat a run, a server, and crawls."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import json
import os
import platform
import random
import re
import shlex
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from scrapy import Request, Spider, signals
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import Response

from scrapy_dripper.learning.metrics import aligned

DATA = Path(__file__).parents[1] / ".cache"
DEFAULT = DATA / "wcxb-dev" / "html"
SITES = DATA / "sites"
RESULTS = Path(__file__).parent / "results"
SEED = 20261121
SAMPLING = 0.02
SETTINGS: Mapping[str, Any] = {
    "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "DOWNLOAD_DELAY": 0,
    "ROBOTSTXT_OBEY": False,
    "RETRY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "ERROR",
}
"""The settings of all crawls."""
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100

T = TypeVar("T")
table = aligned


def options(description: str | None, pages: int = 0, seed: int = SEED) -> argparse.ArgumentParser:
    """Return a parser with the option of a script's report, and those of a sample if it runs on one of pages."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="where the report goes; default: a file in results/")
    if pages:
        parser.add_argument("--data", type=Path, default=DEFAULT, help="*.html; default: .cache/wcxb-dev/html")
        parser.add_argument("--pages", type=int, default=pages, help="how many (default: %(default)s)")
        parser.add_argument("--seed", type=int, default=seed, help="of the sample and of orders (default: %(default)s)")
    return parser


def sample(folder: Path, size: int, seed: int) -> tuple[list[Path], list[Path]]:
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
    pages = sorted(files, key=_kind)
    size = min(size, len(pages))
    taken = {index * len(pages) // size for index in range(size)}
    chosen = [page for index, page in enumerate(pages) if index in taken]
    rest = [page for index, page in enumerate(pages) if index not in taken]
    chance.shuffle(chosen)
    chance.shuffle(rest)
    return chosen, rest


def _kind(path: Path) -> str:
    """Return the type of a page, which is ``page`` if the data have no ground truth."""
    truth = path.parent.parent / "ground-truth" / f"{path.stem}.json"
    if not truth.is_file():
        return "page"
    return str(json.loads(truth.read_text(encoding="utf-8"))["_internal"]["page_type"]["primary"])


def publish(arguments: argparse.Namespace, packages: Sequence[str], *parts: str, kind: str = "") -> None:
    """Print a report and write it to a file, which is named after the script and its kind.

    It begins with the facts that are needed to repeat the run.
    """
    script = Path(sys.argv[0])
    path = arguments.output or RESULTS / f"{script.stem.replace('_', '-')}{kind}.txt"
    command = shlex.join(["python", f"benchmarks/{script.name}", *sys.argv[1:]])
    head = (
        f"$ {command}\n"
        f"{datetime.date.today().isoformat()}, {_processor()}, {os.cpu_count()} cores, {platform.system()}\n"
        f"Python {platform.python_version()}, {', '.join(f'{name} {version(name)}' for name in packages)}"
    )
    text = "\n\n".join([head, *parts])
    print(text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.+)", known.read_text(encoding="utf-8") if known.exists() else "", re.M)
    return found[1].strip() if found else platform.processor() or platform.machine()


def serve_pages(page: Callable[[str], bytes]) -> str:
    """Serve the results of ``page`` for paths, from threads of this process. Return the URL to put before a path."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = page(self.path)
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
    return f"http://127.0.0.1:{server.server_port}"


def apart(function: Callable[..., T], *arguments: Any) -> T:
    """Return what a function returns in a fresh process, after its end. This process has only pages to serve."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def crawl(
    requests: Iterable[Request],
    settings: Mapping[str, Any],
    receivers: Mapping[object, Callable[..., Any]],
    lags: list[tuple[float, float]] | None = None,
) -> dict[str, Any]:
    """Crawl in this process, with receivers of signals, and return the stats.

    A request without a callback gives an item with its URL. ``lags`` gets times, and how many milliseconds a timer of
    the event loop was late then.
    """

    class Pages(Spider):
        name = "pages"

        async def start(self) -> AsyncIterator[Any]:
            for request in requests:
                yield request

        def parse(self, response: Response) -> Iterator[Any]:
            yield {"url": response.url}

    async def watch() -> None:
        while lags is not None:
            due = time.perf_counter() + SAMPLING
            await asyncio.sleep(SAMPLING)
            now = time.perf_counter()
            lags.append((now, 1000 * (now - due)))

    def begin() -> None:
        sampler = asyncio.get_running_loop().create_task(watch())
        crawler.signals.connect(lambda: sampler.cancel(), signals.spider_closed, weak=False)

    process = AsyncCrawlerProcess({**SETTINGS, **settings})
    crawler = process.create_crawler(Pages)
    crawler.signals.connect(begin, signals.spider_opened)
    for signal, receiver in receivers.items():
        crawler.signals.connect(receiver, signal)
    process.crawl(crawler)
    process.start()
    assert crawler.stats is not None
    return crawler.stats.get_stats()


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
        with contextlib.suppress(OSError, ValueError, IndexError):
            total += int(Path(f"/proc/{one}/smaps_rollup").read_text().partition("\nPss:")[2].split()[0])
    return total / 1_000


def children_cpu(pid: int) -> float:
    """Return the CPU seconds of the children of a process, including those that have ended."""
    ticks = 0
    for one in family(pid):
        with contextlib.suppress(OSError, ValueError, IndexError):
            values = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, values[13:15])) + (sum(map(int, values[11:13])) if one != pid else 0)
    return ticks / _TICKS


@contextlib.contextmanager
def watched() -> Iterator[list[tuple[float, float]]]:
    """Give a list that gets the :func:`memory` and the :func:`children_cpu` of this process twice a second."""
    seen: list[tuple[float, float]] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.5 if seen else 0):
            seen.append((memory(os.getpid()), children_cpu(os.getpid())))

    threading.Thread(target=watch, daemon=True).start()
    yield seen
    done.set()
