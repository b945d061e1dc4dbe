"""Engines and fallbacks for ``DRIPPER_ENGINE`` and ``DRIPPER_FALLBACK``. Words in a page tell them what to do.

For example, they block the interpreter forever for a page that contains ``HANG``. :data:`DEEDS` and :data:`SPOILT` have
all such words.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import scrapy_dripper.child as server
from scrapy_dripper.data import Extraction, Metadata
from scrapy_dripper.engines.base import EngineError, Labels, Limits, ModelError
from scrapy_dripper.page import Page

log = logging.getLogger(__name__)


def hang() -> None:
    """Hang in a regular expression, which stops all threads and signal handlers."""
    re.match(r"(a+)+$", "a" * 64 + "b")


def stick() -> None:
    """Stop all threads, as :func:`hang` does, but leave the CPU to others."""
    ctypes.PyDLL(None).sleep(3_600)  # keeps the lock of the interpreter


def act(text: str) -> None:
    """Do what the words of a page say."""
    for word, deed in DEEDS.items():
        if word in text:
            deed(text)
            return


def die(text: str = "") -> None:
    """End like a process that the system kills."""
    os.kill(os.getpid(), signal.SIGKILL)


def count(text: str) -> None:
    """Add a character to a file that the page names."""
    with open(text.split("COUNT ")[1].split()[0], "a") as file:
        file.write("x")


def wait(text: str) -> None:
    """Wait for a file that the page names, and say so in another one if it names that."""
    if "BEGUN " in text and not (begun := Path(text.split("BEGUN ")[1].split()[0])).exists():
        begun.write_text(str(os.getpid()))
    flag = Path(text.split("WAIT-FOR ")[1].split()[0])
    while not flag.exists():
        time.sleep(0.02)


def burn(text: str) -> None:
    """Use the CPU seconds that the page names."""
    end = time.process_time() + float(text.split("BURN ")[1].split()[0])
    while time.process_time() < end:
        pass


def eat(text: str) -> None:
    """Take all memory that there is."""
    eaten = []
    while True:
        eaten.append(b"x" * (8 << 20))


def fail(text: str) -> None:
    """Raise an exception of an engine."""
    raise ValueError("this page is not for me")


def talk(text: str) -> None:
    """Log a message, and one that cannot be formatted."""
    log.warning("a word from %s", "the worker")
    log.warning("%d of these", "a format that does not fit")


DEEDS: dict[str, Callable[[str], object]] = {
    "HANG": lambda text: hang(),
    "STICK": lambda text: stick(),
    "SLEEP": lambda text: time.sleep(600),
    "PAUSE": lambda text: time.sleep(0.2),
    "WAIT-FOR": wait,
    "BURN": burn,
    "DIE-IF": lambda text: Path(text.split("DIE-IF ")[1].split()[0]).exists() and die(),
    "DIE": die,
    "EXIT": lambda text: sys.exit(3),
    "SEGFAULT": lambda text: ctypes.string_at(0),
    "RAISE": fail,
    "MEMORY": lambda text: bytearray(8 << 30),
    "EAT": eat,
    "LOG": talk,
    "COUNT": count,
}
SPOILT: dict[str, Callable[[Labels], list[Labels]]] = {
    "NAN": lambda labels: [replace(labels, probabilities=labels.probabilities * np.float32("nan"))],
    "SHORT": lambda labels: [replace(labels, probabilities=labels.probabilities[1:], main=labels.main[1:])],
    "LONG": lambda labels: [
        replace(labels, probabilities=np.tile(labels.probabilities, 2), main=np.tile(labels.main, 2))
    ],
    "FEWER": lambda labels: [],
}
"""Words that spoil the answer for a page, with what is left of it."""


class AllMain:
    """Labels every block main."""

    name = "all"
    profile = "native"
    limits = Limits()

    def __init__(self, config: Any) -> None:
        """``config`` is the configuration of the crawl."""

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels of the pages, after doing what they say."""
        answers: list[Labels | EngineError] = []
        for page in pages:
            text = "\n".join(page.blocks.text).partition("THEN")[0]
            act(text)
            answer = self.labels(page)
            answers += next((spoil(answer) for word, spoil in SPOILT.items() if word in text), [answer])
        return answers

    def labels(self, page: Page) -> Labels:
        """Return the labels of a page."""
        return labels(page)

    def close(self) -> None:
        """Do nothing, because there is nothing to release."""


class Truth(AllMain):
    """Labels each block main that contains ``MAIN``. A stat says which worker labelled a page."""

    name = "truth"

    def labels(self, page: Page) -> Labels:
        """Return the labels of a page."""
        main = np.array(["MAIN" in text for text in page.blocks.text], dtype=np.bool_)
        return Labels(np.where(main, 0.9, 0.1).astype(np.float32), main, work={f"by/{os.getpid()}": 1})


def labels(page: Page) -> Labels:
    """Return labels with all blocks main. ``work`` says what the worker has imported, and whether it has a key."""
    known = {name: int(name in sys.modules) for name in ("scrapy", "twisted", "onnxruntime", "trafilatura")}
    known["key"] = int("SOME_API_KEY" in os.environ)
    n = len(page.blocks)
    return Labels(np.ones(n, np.float32), np.ones(n, np.bool_), work={"pid": os.getpid(), **known})


def broken(config: Any) -> AllMain:
    """Fail to create an engine."""
    raise ModelError("no device")


class LoadedOnce(AllMain):
    """Can only be loaded once, as if its device were lost afterwards."""

    def __init__(self, config: Any) -> None:
        flag = Path(config.model)
        if flag.exists():
            raise ModelError("the device has gone")
        flag.touch()


def fallback(html: str, url: str) -> str:
    """Do what the page says after ``THEN``."""
    act(html.partition("THEN")[2])
    return f"<p>fallback of {os.getpid()}</p>"


def odd_fallback(html: str, url: str) -> Any:
    """Return an invalid extraction."""
    fields: dict[str, Any] = {"title": None, "main_html": "<p>x</p>", "markdown": "x", "text": "x", "source": "odd"}
    if "NUMBER" in html:
        fields["markdown"] = 7
    elif "NO MAIN" in html:
        fields |= {"content": [{"type": "paragraph"}], "main_html": None}
    elif "CONTENT" in html:
        fields["content"] = ({"type": object()},)
    elif "ENDLESS" in html:
        fields["content"] = endless = []
        endless.append(endless)
    elif "METADATA" in html:
        fields["metadata"] = Metadata(title=7)  # type: ignore[arg-type]
    elif "DICT" in html:
        fields |= {"metadata": {"title": "x"}, "extra": {"chunks": [object()]}}
    elif "LABELS" in html:
        fields["labels"] = (True, False)
    elif "FINE" in html:
        fields["details"] = {"work": {"x": None}}  # which only engines have
    return Extraction(url, **fields)


def talkative(config: Any) -> AllMain:
    """Log while it is loaded."""
    log.info("loading")
    return AllMain(config)


class Chatty(AllMain):
    """Logs constantly, in its own thread."""

    def __init__(self, config: Any) -> None:
        threading.Thread(target=self._chat, daemon=True).start()

    def _chat(self) -> None:
        while True:
            log.debug("la la la")


class Vanishing:
    """The tagger. Its model's folder is moved and its process dies on a page that contains ``GO``, once."""

    def __init__(self, config: Any) -> None:
        from scrapy_dripper.engines.tagger import Tagger  # other workers start sooner without it

        server.RETRY_SECONDS = 0.2
        self._tagger, self._folder = Tagger.load(config), Path(config.model)
        self.name, self.profile, self.limits = self._tagger.name, self._tagger.profile, self._tagger.limits

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the tagger's labels."""
        gone = self._folder.with_name("gone")
        if not gone.exists() and any("GO" in text for page in pages for text in page.blocks.text):
            gone.touch()
            self._folder.rename(self._folder.with_name("away"))
            die()
        return self._tagger.label(pages)

    def close(self) -> None:
        """Release the model."""
        self._tagger.close()
