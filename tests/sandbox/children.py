"""Extractors with a child process, programs in its place, and pages for it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import numpy as np

from scrapy_dripper.engines.base import EngineError, Labels, Limits
from scrapy_dripper.extraction import Document
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.page import Page

SECONDS = 120
"""Far more than anything here takes on a busy machine."""
SMALL = Document("<p>one</p><p>two</p>", "http://example.com/")
HOSTILE = "<div>" * 2_000 + "</b>" * 400_000
"""Takes the parser a second or more, in one native call, and is dangerous at first sight."""
SENTENCE = "The tide comes in twice a day, and every sandcastle on this beach has to reckon with that. "
ARTICLE = f"<article><h2>Tides</h2><p>{SENTENCE * 4}</p><ul><li>first</li><li>second</li></ul></article>"
DANGEROUS = ARTICLE + "<i></i>" * 25_000

FAKE = """
import os, signal, struct, sys, time
sys.stdin.buffer.readline()

def say(header, body=b"", lengths=None):
    lengths = lengths or (len(header), len(body))
    sys.stdout.buffer.write(struct.pack(">IQ", *lengths) + header + body)
    sys.stdout.buffer.flush()

def ready():
    say(b'{"ready": true}')

def asked():
    sys.stdin.buffer.read(sum(struct.unpack(">IQ", sys.stdin.buffer.read(12))))

def wait():
    time.sleep(600)

"""
"""What a program in the child's place begins with."""


class AllMain:
    """An engine that takes every block for main."""

    name = "all"
    profile = "native"
    limits = Limits()

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        return [Labels(np.ones(len(p.blocks), np.float32), np.ones(len(p.blocks), np.bool_)) for p in pages]

    def close(self) -> None: ...


Make = Callable[..., Extractor]


def pid_of(extractor: Extractor) -> int | None:
    """Return the number of an extractor's child process."""
    return extractor._sandbox.pid


def gone(pid: int) -> bool:
    """Return True if there is no such process, not even one that waits to be looked at."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def comes_true(condition: Callable[[], bool]) -> bool:
    """Wait for a condition."""
    end = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
