"""What the child process does for each request."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from scrapy_dripper.config import Config
from scrapy_dripper.extraction import Document, FallbackReason
from scrapy_dripper.page import PageError, plant
from scrapy_dripper.sandbox.messages import receive, send
from scrapy_dripper.sandbox.trees import to_json

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

MAX_REQUEST = 1 << 40
"""Bytes of a request: the crawl is trusted, and has limits of its own."""

Answer = tuple[dict[str, Any], bytes]


def serve(requests: BinaryIO, answers: BinaryIO, ready: Callable[[], object] = lambda: None) -> None:
    """Answer requests until there are no more."""
    send(answers, {"ready": True})
    ready()
    while True:
        try:
            header, body = receive(requests, MAX_REQUEST)
        except EOFError:
            return
        _second_line(header["seconds"])
        answer, content = _answer(header, body)
        del body
        answer["peak"] = _peak()
        _second_line(0)
        try:
            send(answers, answer, content)
        except OSError:  # the crawl has gone
            return


def _answer(header: dict[str, Any], body: bytes) -> Answer:
    try:
        config = Config(**header["config"])
        html = body.decode("utf-8", "surrogatepass") if header["text"] else body
        document = Document(html, header["url"], header["charset"], config)
        return _DO[header["do"]](document, config, header)
    except PageError as error:
        return {"reason": error.reason.value, "message": str(error)[:1_000]}, b""
    except MemoryError:
        return {"memory": True}, b""
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:1_000]}, b""


def _plant(document: Document, config: Config, header: dict[str, Any]) -> Answer:
    root, truncated = plant(document, config, header["profile"], header["flat"])
    return {"truncated": truncated}, to_json(root)


def _fall_back(document: Document, config: Config, header: dict[str, Any]) -> Answer:
    from scrapy_dripper.fallback import fall_back
    from scrapy_dripper.output.content_json import to_json as content_to_json

    found = fall_back(document, config, FallbackReason(header["reason"]))
    names = ("title", "main_html", "markdown", "text", "source", "error", "truncated")
    values = {name: getattr(found, name) for name in names}
    values["content"] = None if found.content is None else content_to_json(found.content)
    return {}, json.dumps(values).encode("ascii")


def _metadata(document: Document, config: Config, header: dict[str, Any]) -> Answer:  # noqa: ARG001 (as the others)
    from scrapy_dripper.metadata import metadata

    return {}, json.dumps(asdict(metadata(document, config))).encode("ascii")


_DO: dict[str, Callable[[Document, Config, dict[str, Any]], Answer]] = {
    "plant": _plant,
    "fall_back": _fall_back,
    "metadata": _metadata,
}


def _second_line(seconds: float) -> None:
    """Let the system end this process after so many seconds, in case the crawl cannot: it may be dead. 0 for never."""
    if hasattr(signal, "setitimer"):
        with contextlib.suppress(ValueError):  # not the main thread
            signal.setitimer(signal.ITIMER_REAL, seconds)
    if resource is not None and seconds:
        with contextlib.suppress(ValueError, OSError):
            _, most = resource.getrlimit(resource.RLIMIT_CPU)
            resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 2, most))


def _peak() -> int:
    """Return the most memory that this process has held so far, in bytes; 0 where the system does not say.

    Not ``getrusage``: after a fork and an exec, that begins with the memory of the parent.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1_024
    return 0
