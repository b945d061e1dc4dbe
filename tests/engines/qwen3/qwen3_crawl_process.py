"""Run a crawl with the Qwen3 engine in its own process: ``qwen3_crawl_process.py JSON``.

``folder`` is the prepared model, ``pages`` how many pages there are, and ``fail`` says how often a pass over page 2
fails. Prints one line of JSON about what came out and what is left of the process.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import scrapy
from onnxruntime.capi.onnxruntime_pybind11_state import RuntimeException
from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess
from tokenizers import Tokenizer

from scrapy_dripper.engines.qwen3.decoder import Passes

JOB = json.loads(sys.argv[1])
# Both are two bytes in UTF-8, so a page with one has as many tokens as a page with the other, and is read with it.
BAD, GOOD = "Ω", "Σ"
passes: list[int] = []
"""How many tokens there were in each pass over the bad page."""


def body(number: int) -> bytes:
    """Return a page of the same length in tokens as the others."""
    mark = BAD if number == 2 else GOOD
    text = "".join(f"<p>MAIN a quiet line number {k} {mark}</p>" for k in range(4))
    return f"<html><body>{text}</body></html>".encode()


class Handler(BaseHTTPRequestHandler):
    """Serves the pages."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        content = body(int(self.path[1:]))
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def break_passes() -> None:
    """Make passes over the bad page fail as onnxruntime does when a device has no free memory."""
    tokenizer = Tokenizer.from_file(str(Path(JOB["folder"], "tokenizer.json")))
    (token,) = set(tokenizer.encode(BAD).ids) - set(tokenizer.encode(GOOD).ids)
    run = Passes._run

    def broken(self: Passes, inputs: dict[str, Any]) -> Any:
        if (inputs["input_ids"] == token).any():
            passes.append(inputs["input_ids"].size)
            if len(passes) <= JOB["fail"]:
                raise RuntimeException(
                    "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running Softmax "
                    "node. Status Message: Failed to allocate memory for requested buffer of size 34359738368"
                )
        return run(self, inputs)

    Passes._run = broken  # type: ignore[method-assign]


class Pages(scrapy.Spider):
    """Fetches all pages."""

    name = "pages"

    async def start(self) -> Any:
        for number in range(JOB["pages"]):
            yield scrapy.Request(f"http://127.0.0.1:{server.server_port}/{number}")

    def parse(self, response: Any) -> Iterator[Any]:
        yield {"number": int(response.url.rpartition("/")[2])}


def count_children() -> int:
    """Return how many child processes exist or have not been reaped; 0 where the system does not say."""
    count = 0
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread may end between the two lines
            count += len(path.read_text().split())
    return count


def main() -> None:
    """Run the crawl."""
    break_passes()
    process = AsyncCrawlerProcess(
        {
            "ADDONS": {"scrapy_dripper.Addon": 500},
            "TELNETCONSOLE_ENABLED": False,
            "ROBOTSTXT_OBEY": False,
            "LOG_LEVEL": "ERROR",
            "DRIPPER_ENGINE": "qwen3",
            "DRIPPER_PROCESSES": 0,  # the passes are broken in this process
            "DRIPPER_MODEL": JOB["folder"],
            "DRIPPER_BATCH_SIZE": JOB["pages"],
            "DRIPPER_BATCH_WAIT": 60,  # the batch leaves when it is full
            "DRIPPER_TIMEOUT": 600,
            "DRIPPER_FALLBACK": "html",
            "DRIPPER_META_FIELD": "by",
        }
    )
    crawler = process.create_crawler(Pages)
    items: list[dict[str, Any]] = []
    keep = lambda item: items.append(item)  # noqa: E731 (the signal holds it weakly)
    crawler.signals.connect(keep, signals.item_scraped)
    process.crawl(crawler)
    process.start()
    server.shutdown()
    assert crawler.stats is not None
    stats = crawler.stats.get_stats()
    result = {
        "items": sorted(items, key=lambda item: item["number"]),
        "stats": {name: value for name, value in stats.items() if name.startswith("dripper/")},
        "passes": passes,
        "threads": sorted(one.name for one in threading.enumerate() if not one.daemon),
        "children": count_children(),
    }
    print(json.dumps(result, default=str))


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True

if __name__ == "__main__":
    threading.Thread(target=server.serve_forever, daemon=True).start()
    main()
