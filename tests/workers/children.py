"""Workers for tests, programs that replace them, and pages for them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction, FallbackReason
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.workers.pool import Pool
from scrapy_dripper.workers.wire import Task, pack_extraction

SECONDS = 120
"""Time limit that is never reached, even on a busy machine."""
OWN = Config(
    engine="tests.workers.engines.AllMain", fallback="tests.workers.engines.fallback", timeout=SECONDS, processes=1
)
"""Configuration of a worker whose engine and fallback could be a user's. It starts in half a second."""
SMALL = Document("<p>one</p><p>two</p>", "http://example.com/")
SENTENCE = "The tide comes in twice a day, and every sandcastle on this beach has to reckon with that. "
ARTICLE = f"<article><h2>Tides</h2><p>{SENTENCE * 4}</p><ul><li>first</li><li>second</li></ul></article>"
LARGE = ARTICLE + "<i></i>" * 45_000

FAKE = """
import json, os, signal, struct, sys, time
sys.stdin.buffer.readline()

def say(header, body=b"", lengths=None):
    lengths = lengths or (len(header), len(body))
    sys.stdout.buffer.write(struct.pack(">QQ", *lengths) + header + body)
    sys.stdout.buffer.flush()

def ready():
    say(b'{"ready": true, "sizes": []}')

def asked():
    sys.stdin.buffer.read(sum(struct.unpack(">QQ", sys.stdin.buffer.read(16))))

def wait():
    time.sleep(600)

"""
"""The first lines of a program that replaces a worker."""

_VALUES, _PARTS = pack_extraction(Extraction("", None, None, None, "TEXT", "SOURCE"))
LIGHT = (
    f"""
import re
VALUES, PARTS = {_VALUES!r}, {_PARTS!r}
"""
    + """
def act(text):
    if "DIE" in text:
        os.kill(os.getpid(), signal.SIGKILL)
    end = time.monotonic() + 600  # if the test is killed
    while "WAIT-FOR " in text and not os.path.exists(text.split("WAIT-FOR ")[1].split()[0]) and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(next((seconds for word, seconds in SECONDS.items() if word in text), 0))

SECONDS = {"PAUSE": 0.2, "SLOW": 2, "SLEEP": 600}
ready()
while len(lengths := sys.stdin.buffer.read(16)) == 16:
    header, body = map(sys.stdin.buffer.read, struct.unpack(">QQ", lengths))
    asked = json.loads(header)
    answers, parts, at = [], [], 0
    for number, task in enumerate(asked["tasks"]):
        size = asked["sizes"][number * len(asked["sizes"]) // len(asked["tasks"])]
        text = re.sub("<.*?>", "", body[at : at + size].decode())
        at += size
        act(text.partition("THEN")[2 if task["reason"] else 0])
        source = b"fallback:light" if task["reason"] else b"all"
        answers.append({**VALUES, "fallback_reason": task["reason"], "details": {"work": {"pid": os.getpid()}}})
        parts += [{b"TEXT": text.encode(), b"SOURCE": source}.get(part, part) for part in PARTS]
    done = {"say": "done", "extractions": answers, "peak": 1, "sizes": list(map(len, parts))}
    say(json.dumps(done).encode(), b"".join(parts))
"""
)
"""A program that replaces a worker and starts ten times as fast. The text of a page is the answer, after what it says
has been done."""

Make = Callable[..., Extractor]
Pools = Callable[..., Pool]


def task(text: str, config: Config = OWN, **values: Any) -> Task:
    """Return the task to extract a page with a text."""
    return Task(Document(f"<p>{text}</p>", "http://example.com/"), config, **values)


def rescue(text: str, config: Config = OWN, **values: Any) -> Task:
    """Return the task to run the fallback for a page with a text."""
    return task(text, config, **{"reason": FallbackReason.TIMEOUT, **values})


def worker_of(extraction: Extraction) -> int:
    """Return the process ID of the worker with the engine ``AllMain`` that made an extraction."""
    return extraction.details["work"]["pid"]


def own(**options: Any) -> Config:
    """Return the configuration ``OWN`` with some options."""
    return replace(OWN, **options)


def gone(pid: int) -> bool:
    """Return True if a process has ended, even if it has not been reaped."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except ProcessLookupError:
        return True
    except OSError:
        return not Path("/proc/self/stat").exists() and False


def comes_true(condition: Callable[[], bool], seconds: float = SECONDS) -> bool:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
