"""The benchmarks of what pages of a site know together, on a site of twelve pages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sites.site import article, url

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))
if TYPE_CHECKING:
    from benchmarks import site_crawl
else:
    site_crawl = pytest.importorskip("site_crawl", reason="the folder of the benchmarks is not there")

PAGES = 12
LONG = "<p>A paragraph that is long enough to be left out of a page now and then.</p>" * 9


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An annotated site of articles of one template."""
    folder = tmp_path / "set"
    (folder / "html").mkdir(parents=True)
    records = []
    for n in range(PAGES):
        title = f"The story of ship {n}"
        texts = [f"Sentence {k} of article {n} says what {n} times {k} is, and then what it is not." for k in range(8)]
        html = article(n, "".join(f"<p>{text}</p>" for text in texts), title=title)
        (folder / "html" / f"ships__{n}.html").write_text(html, encoding="utf-8")
        text = "\n".join([title, *texts])
        record = {"id": f"ships__{n}", "site": "ships", "kind": "content", "url": url(n), "title": title, "text": text}
        records.append(json.dumps(record))
    (folder / "pages.jsonl").write_text("\n".join(records), encoding="utf-8")
    return folder


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a benchmark as a user does."""
    command = [sys.executable, str(BENCHMARKS / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def cells(report: str, name: str) -> list[str]:
    """Return the cells of the row of a report that has a name."""
    (line,) = (line for line in report.splitlines() if line.startswith(f"{name}  "))
    return re.split("  +", line)[1:]


def test_templates_answer_all_but_the_first_pages_of_a_site(site: Path, tmp_path: Path) -> None:
    """Four pages teach a template. The outcomes are those of all pages, and a page that it answers is the same."""
    done = run("templates.py", site, "--output", tmp_path / "report.txt")

    assert done.returncode == 0, done.stderr
    assert done.stdout == (tmp_path / "report.txt").read_text(encoding="utf-8")
    assert cells(done.stdout, "set, all")[:6] == ["1", "12", "0.667", "1.0000", "1.0000", "+0.0000"]
    assert "new 1, uncovered 1, length 0, learning 2, audit 0, answered 8" in done.stdout


def test_true_labels_have_the_best_f1_there_is(site: Path, tmp_path: Path) -> None:
    """Each page has eleven others, so all of them count for one, three, ten and all others."""
    done = run("sites.py", site, "--perfect", "--output", tmp_path / "report.txt")

    assert done.returncode == 0, done.stderr
    rows = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("set ")]
    assert sorted(rows) == [[seen, "12", "1.0000"] for seen in ("1", "10", "3", "all")]


def test_methods_know_as_many_other_pages_as_they_say(site: Path, tmp_path: Path) -> None:
    """A template answers after four of them. A second run measures no page again."""
    cache = tmp_path / "cache.jsonl"
    arguments = [site, "--pages", 1, "--peers", "title_paragraphs", "--no-sore", "--cache", cache]
    done = [run("methods.py", *arguments, "--output", tmp_path / "report.txt") for _ in range(2)]

    assert done[0].returncode == 0, done[0].stderr
    assert done[0].stdout == done[1].stdout
    first = done[0].stdout.partition("nodes R")[0]
    answered = {seen: cells(first, f"+ templates, {seen} seen")[7] for seen in ("1", "3", "10", "all")}
    assert answered == {"1": "0.00", "3": "0.00", "10": "1.00", "all": "1.00"}
    assert [cells(first, f"+ memory, {seen} seen")[5] for seen in ("1", "all")] == ["+0.0000"] * 2
    assert cells(first, "tagger alone")[:2] == ["1", "1.0000"]


def test_a_crawl_that_loses_or_repeats_an_item_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The crawl is a stand-in, which gets pages from the server: it leaves out one of the first half, and two hosts."""

    def crawl(proxy: str, urls: list[str], items: int, **settings: object) -> dict[str, object]:
        wanted = urls[1:items] if "CLOSESPIDER_ITEMCOUNT" in settings else urls
        if "JOBDIR" in settings and wanted is urls:
            wanted = urls[items - 1 :]
        if len(urls) > PAGES:
            wanted = urls[2:]
        texts = {}
        with requests(proxy) as connection:
            for address in wanted:
                connection.request("GET", address)
                texts[address] = connection.getresponse().read().decode()
        return {"texts": texts, "stats": {}, "sizes": [1.0], "cpu": 0.1}

    monkeypatch.setattr(site_crawl, "run", crawl)
    report = site_crawl.measured([article(n) for n in range(3)], PAGES)

    assert "items lost: 1 with both, 2 of many hosts; twice: 1" in report
    assert "word F1 1.0000, 0 of 11 pages under .95" in report
    assert cells(report, "without")[0] == "12"
    assert [cells(report, f"with both, {part}")[0] for part in ("first half", "resumed")] == ["5", "7"]


@contextmanager
def requests(proxy: str) -> Iterator[HTTPConnection]:
    """Connect to a proxy."""
    connection = HTTPConnection(proxy.removeprefix("http://"))
    yield connection
    connection.close()


def test_pages_made_of_one_are_not_equal() -> None:
    """They have the same elements around their main part, other words in it, and the same pages come each time."""
    pages = [page.decode() for page in site_crawl.made([article(1, LONG)], 20)]

    assert len(set(pages)) == 20
    assert all("Read this week: a tale of 1 ships" in page for page in pages)
    assert len({page.count("<p>n") for page in pages}) > 1
    assert pages == [page.decode() for page in site_crawl.made([article(1, LONG)], 20)]


def test_a_site_that_is_not_there_is_named(site: Path) -> None:
    done = run("site_crawl.py", "--data", site, "--site", "ships", "boats")

    assert done.returncode == 2
    assert f"no page of boats in {site}" in done.stderr
