"""Engines that fail for chosen pages: a fast one for tests, and the bundled tagger."""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scrapy_dripper.engines.base import Engine, EngineError, Labels, Limits
from tests.faults.fault_site import Faults, kind_of

Note = Callable[[str, int], None]
"""Told the kind of a fault and the page, when it happens."""


class Dead(BaseException):
    """An error that ``except Exception`` does not catch."""


class Rules:
    """Labels each block that contains ``MAIN`` as main."""

    name = "rules"
    profile = "native"
    limits = Limits()

    def label(self, pages: Sequence[Any]) -> list[Labels | EngineError]:
        return [self.one(page) for page in pages]

    def one(self, page: Any) -> Labels:
        main = np.array(["MAIN" in text for text in page.blocks.text], dtype=bool)
        return Labels(np.where(main, 0.9, 0.1).astype(np.float32), main)

    def close(self) -> None:
        pass


class Faulty:
    """An engine that fails for some pages and works for the others."""

    def __init__(self, engine: Engine, faults: Faults, note: Note, seconds: float) -> None:
        self._engine, self._faults, self._note, self._seconds = engine, faults, note, seconds
        self._kept: list[bytes] = []
        self.name, self.profile, self.limits = engine.name, engine.profile, engine.limits

    def label(self, pages: Sequence[Any]) -> list[Labels | EngineError]:
        numbers = [number_of(page.url) for page in pages]
        kinds = [kind_of(number, self._faults) for number in numbers]
        if "leak" in kinds:
            self._kept.append(b"x" * LEAK)
        for kind, number in zip(kinds, numbers, strict=True):
            if kind is not None:
                self._note(kind, number)
                if kind in RAISED:
                    raise exception(kind)
                if kind in DEADLY:
                    DEADLY[kind]()
        if "sleep" in kinds:
            over.wait(self._seconds)
        answers = self._engine.label(pages)
        answers = [spoil(kind, answer) for kind, answer in zip(kinds, answers, strict=True)]
        return [answer for kind, answer in zip(kinds, answers, strict=True) if kind != "fewer"]

    def close(self) -> None:
        self._engine.close()


def spin() -> None:
    """Hang and let no other thread of the process run."""
    re.match("(a|a)*$", "a" * 100 + "b")


def eat() -> None:
    """Take all memory that there is."""
    eaten = []
    while True:
        eaten.append(b"x" * (8 << 20) + bytes([len(eaten) % 256]))


LEAK = 20_000_000
"""Bytes that an engine keeps of a page."""
RAISED = ("raise", "memory", "onnx", "exit", "die")
DEADLY: dict[str, Callable[[], object]] = {
    "os_exit": lambda: os._exit(3),
    "segfault": lambda: ctypes.string_at(0),
    "spin": spin,
    "eat": eat,
}
"""What only a worker process can survive, by dying of it."""
over = threading.Event()
"""Set when a crawl is over: who sleeps then wakes."""


def number_of(url: str) -> int:
    """Return the number of a page from its address."""
    return int(url.rpartition("/")[2])


def exception(kind: str) -> BaseException:
    """Return the exception that an engine raises."""
    if kind == "memory":
        return MemoryError("cannot allocate 34359738368 bytes")
    if kind == "onnx":
        from onnxruntime.capi.onnxruntime_pybind11_state import RuntimeException

        return RuntimeException("[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Failed to allocate memory")
    return {"exit": SystemExit(1), "die": Dead("the thread")}.get(kind, RuntimeError("a kernel failed"))


def spoil(kind: str | None, answer: Any) -> Any:
    """Return an invalid answer."""
    if kind == "nan":
        return Labels(answer.probabilities * np.float32("nan"), answer.main)
    if kind == "short":
        return Labels(answer.probabilities[1:], answer.main[1:])
    if kind == "long":
        return Labels(np.append(answer.probabilities, answer.probabilities), np.append(answer.main, answer.main))
    return answer
