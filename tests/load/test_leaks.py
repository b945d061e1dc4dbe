"""Hostile pages, each with something that no other page has, and long crawls cause no memory leaks."""

from __future__ import annotations

import gc
import os
import re
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from scrapy_dripper import Extractor
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.fallback import trafilatura_output
from scrapy_dripper.testing import FakeEngine
from scrapy_dripper.workers.pool import Pool
from scrapy_dripper.workers.wire import Task
from tests.programs import python

SENTENCE = "Some words of a sentence about the tide and the moon, as pages have them. "
PATIENCE = 60


def kept(extract: Callable[[int], object], pages: int) -> float:
    """Return the mean number of bytes of Python objects that remain after each page, without the first few pages."""
    for number in range(3):
        extract(number)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(3, 3 + pages):
            extract(number)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / pages
    finally:
        tracemalloc.stop()


def test_long_class_attributes_are_not_remembered() -> None:
    """A page can make them of any length."""
    extractor = Extractor(engine=FakeEngine())

    def extract(number: int) -> None:
        name = f"c{number} " + "x" * 100_000
        tags = ("p", "div", "pre", "span")
        body = "".join(f'<{tag} class="{name} {tag}">{SENTENCE}</{tag}>' for tag in tags)
        (found,) = extractor.extract([f"<html><body>{body}</body></html>"])
        assert found.markdown

    assert kept(extract, 20) < 40_000  # of 400,000 and more


def test_trafilatura_does_not_remember_long_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its caches hold a thousand lines of any length. They are cleared from time to time."""
    monkeypatch.setattr(trafilatura_output, "BETWEEN_RESETS", 100_000)
    monkeypatch.setattr(trafilatura_output, "_seen", 0)  # regardless of the pages of other tests
    extractor = Extractor(Config(limits={"blocks": 1}), engine=FakeEngine())

    def extract(number: int) -> None:
        line = f"{number} " + SENTENCE * 300
        title = f"<title>{line}</title>"
        (found,) = extractor.extract([f"<html><head>{title}</head><body><p>{line}</p><p>{SENTENCE}</p></body></html>"])
        assert found.source == "fallback:trafilatura"

    assert kept(extract, 24) < 15_000  # of 22,000 characters


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_a_worker_is_replaced_before_it_has_taken_too_much() -> None:
    """lxml keeps the tag and attribute names of all pages. A new process takes over, and no page is lost."""
    config = Config(worker_memory=256)
    pool = Pool(config, 1)
    pids, most = [], 0
    try:
        for number in range(42):
            names = [" ".join(f"data-{number}-{i}-{k}=x" for k in range(100)) for i in range(200)]
            html = "".join(f"<p {attributes}>{SENTENCE}</p>" for attributes in names)
            document = Document(f"<html><body>{html}</body></html>", f"https://site.example/{number}")
            (found,) = pool.extract([Task(document, config)])
            assert (found.url, found.source, found.error) == (document.url, "tagger", None)  # a megabyte of names
            pids += pool.pids
            for pid in pool.pids:
                most = max(most, int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    finally:
        pool.close()

    assert 2 <= len(set(pids)) <= 10
    assert most < 200e6


SHAPES = """
import ctypes
import gc
from scrapy_dripper.config import Config
from scrapy_dripper.engines.tagger.engine import Tagger
from scrapy_dripper.engines.tagger.features import features
from scrapy_dripper.page import read
from scrapy_dripper.data import Document

class Mallinfo(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    _fields_ = [(name, ctypes.c_size_t) for name in names]

mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Mallinfo

def heap():
    gc.collect()
    info = mallinfo2()
    return info.uordblks + info.hblkhd

tagger = Tagger.load(Config())
pages = []
for blocks in range(10, 210):
    html = "<html><body>" + "<p>A few words of text here.</p>" * blocks + "</body></html>"
    pages.append(read(Document(html), Config()))
    features(pages[-1:])
tagger.label(pages[-1:])
before = heap()
for page in pages:
    tagger.label([page])
print(heap() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the GNU C library")
def test_batches_of_many_shapes_do_not_add_up() -> None:
    """Nearly every batch has a new number of blocks."""
    done = python("-c", SHAPES)
    if "mallinfo2" in done.stderr:
        pytest.skip("another C library")

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 300_000


BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the benchmark reads /proc")
def test_a_crawl_ends_as_it_began(tmp_path: Path) -> None:
    """Every response becomes one item with its own text, and memory does not grow with the number of pages.

    Speed is not judged here, nor RSS, which a crawl of so few pages has not filled.
    """
    output = tmp_path / "soak.txt"
    options = ["--responses", 1_000, "--size", "tiny", "--steady", "--processes", 2, "--output", output]
    done = python(BENCHMARKS / "soak.py", *options)

    report = output.read_text(encoding="utf-8")
    lines = [re.split(r"  +", line) for line in report.splitlines()]
    found = {line[0]: line[1:] for line in lines if len(line) == 3 and line[2] in ("ok", "FAILED")}
    counts = "malloc in use,threads,files,children,worker_threads,worker_files,jobs,responses,futures".split(",")
    counts.append("Python objects")
    judged = [*(f"growth of {name}" for name in counts), "responses", "lost", "twice", "foreign", "errors"]
    assert {name: found[name][1] for name in judged} == dict.fromkeys(judged, "ok"), report + done.stderr
    assert found["responses"][0] == "1200 of 1200"
    assert "What fell back: nothing." in report
