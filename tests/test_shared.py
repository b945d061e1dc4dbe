"""``scrapy_dripper.extract``: one page in one line, from any thread and any process."""

from __future__ import annotations

import multiprocessing
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import scrapy_dripper
from scrapy_dripper import ConfigError, Document, Extraction, Extractor


def page(number: int) -> str:
    """Return a page with a menu and a text that has its number."""
    text = f"<p>The tide of day {number} comes in twice, and goes out again in the night.</p>"
    return f"<title>Day {number}</title><nav><a href=/>Home</a></nav><article><h1>Day {number}</h1>{text * 4}</article>"


def markdown(number: int) -> str | None:
    return scrapy_dripper.extract(page(number), url=f"https://example.org/{number}").markdown


def test_one_page_in_one_line() -> None:
    """What the one line gives is what an extractor gives, with the metadata."""
    found = scrapy_dripper.extract(page(1), url="https://example.org/1")
    with Extractor() as extractor:
        (expected,) = extractor.extract([Document(page(1), "https://example.org/1")])

    assert isinstance(found, Extraction)
    assert (found.url, found.source, found.markdown) == ("https://example.org/1", "tagger", expected.markdown)
    assert found.markdown is not None
    assert found.markdown.startswith("# Day 1\n\nThe tide of day 1")
    assert found.metadata is not None
    assert found.metadata.title == "Day 1"
    assert scrapy_dripper.extract(page(1).encode()).markdown == expected.markdown


@pytest.mark.parametrize("given", [None, ["<p>Tea</p>"], Document("<p>Tea</p>"), 7])
def test_what_is_no_page_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="extract takes the HTML of one page, as text or bytes"):
        scrapy_dripper.extract(given)


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ("page.html", "'page.html' is a file name: .*extract.open"),
        ("C:\\pages\\a.HTM\n", "file name"),
        ("page.html.gz", "file name"),
        ("/home/ann/The tides.html", "file name"),
        ("here it is.html", "file name"),
        ("https://e.org/a", "URL: .*extract.response.body, url=response.url"),
        (b"file:///home/ann/a.txt", "URL"),
        ("e.org/a", "URL"),
    ],
)
def test_where_a_page_is_is_refused(
    given: str | bytes, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name with spaces is that of a file if it begins with a folder, or if there is such a file. Lists of them are
    refused as well."""
    monkeypatch.chdir(tmp_path)
    Path("here it is.html").touch()
    with pytest.raises(ValueError, match=advice):
        scrapy_dripper.extract(given)
    with pytest.raises(ValueError, match=advice), Extractor() as extractor:
        extractor.extract([page(1), given])


@pytest.mark.parametrize("text", ["e.org", "Tea", "/tea", "See page.html", "<p>page.html", "https://e.org/ is down"])
def test_a_short_text_is_a_page(text: str) -> None:
    assert scrapy_dripper.extract(text).text == text.removeprefix("<p>")


def test_threads_share_it() -> None:
    """Each gets the answer for its own page."""
    expected = [markdown(number) for number in range(24)]

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(markdown, range(24))) == expected


@contextmanager
def busy() -> Iterator[None]:
    """Keep another thread of this process extracting."""
    ended = threading.Event()

    def extract() -> None:
        while not ended.is_set():
            markdown(1)

    thread = threading.Thread(target=extract)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_pools_of_processes_use_it(method: Any) -> None:
    """Also if they are forked while another thread extracts."""
    expected = [markdown(number) for number in range(8)]

    with busy(), multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map_async(markdown, range(8)).get(120)

    assert found == expected


def test_options_by_name() -> None:
    """Those of a page, and the keys of dicts, as on the command line. The model is loaded once for all."""
    html = "<h1>Tides</h1><p>The rise and fall of <a href='/sea'>the sea</a>, twice a day.</p>"

    found = scrapy_dripper.extract(html, title="drop", links="drop", front_matter=True, chunk_size=50)

    assert found.markdown == '---\ntitle: "Tides"\n---\n\nThe rise and fall of the sea, twice a day.'
    assert scrapy_dripper.extract(html, engine="html").source == "html"
    assert scrapy_dripper.extract(html, markdown={"links": "drop"}).markdown.endswith("the sea, twice a day.")
    assert "(/sea)" in scrapy_dripper.extract(html).markdown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"favour": "recall"}, "extract has no option 'favour'; did you mean favor?"),
        ({"max_node": 3}, "extract has no option 'max_node'; did you mean max_nodes?"),
        ({"model": "m/"}, "extract has no option 'model', which is not for one page: use an Extractor for it"),
        ({"engine": "qwen3"}, "use an Extractor for 'qwen3'"),
        ({"markdown": {}, "links": "drop"}, "extract takes 'markdown' or 'links', but not both"),
        ({"favor": "recal"}, "'recal'; did you mean recall?"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError if "favor" in options else TypeError, match=re.escape(message)):
        scrapy_dripper.extract("<p>Text.", **options)
