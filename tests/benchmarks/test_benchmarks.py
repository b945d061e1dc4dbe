"""The benchmarks run on any folder of pages. Three small pages test what they write, not the figures."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A folder of three pages with ten paragraphs each."""
    folder = tmp_path / "pages"
    folder.mkdir()
    for name in ("one", "two", "three"):
        paragraphs = "".join(
            f"<p>Paragraph {number} of page {name} has a sentence that is long enough to be taken for content.</p>"
            for number in range(10)
        )
        html = f"<html><head><title>{name}</title></head><body><article>{paragraphs}</article></body></html>"
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    return folder


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a benchmark as a user does."""
    command = [sys.executable, str(BENCHMARKS / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rows(report: str) -> dict[str, list[str]]:
    """Return the rows of a report's tables by their first cell."""
    lines = [re.split(r"  +", line) for line in report.splitlines()]
    return {cells[0]: cells[1:] for cells in lines if len(cells) > 1}


def test_extract_writes_what_it_prints(pages: Path, tmp_path: Path) -> None:
    """Every step and every extractor has a row, below the command and the versions."""
    done = run("extract.py", "--data", pages, "--pages", 3, "--output", tmp_path / "new" / "report.txt")

    assert done.returncode == 0, done.stderr
    report = (tmp_path / "new" / "report.txt").read_text(encoding="utf-8")
    assert done.stdout == report
    assert report.startswith("$ python benchmarks/extract.py --data ")
    assert "trafilatura 2." in report
    assert "by outcome: tagger 3." in report
    found = rows(report)
    assert found["trafilatura"][-1] == "1.00"
    assert {"scrapy-dripper", "scrapy-dripper, in batches", "trafilatura fast=True"} <= set(found)
    steps = ["decode", "parse", "blocks", "features", "model", "labels", "main_html", "markdown", "text"]
    assert [name for name in found if name in steps] == steps


def test_crawl_loses_no_item(pages: Path, tmp_path: Path) -> None:
    """Every variant crawls every page."""
    done = run("crawl.py", "--data", pages, "--pages", 3, "--repeats", 1, "--output", tmp_path / "report.txt")

    assert done.returncode == 0, done.stderr
    found = rows((tmp_path / "report.txt").read_text(encoding="utf-8"))
    peers = ("trafilatura in the callback", "trafilatura, 2 processes")
    for variant in ("scrapy-dripper, a thread", "1 worker", "2 workers", *peers):
        assert found[variant][-3:] == ["0", "0", "0"], (variant, done.stderr)
    assert found["no extraction"][-3:] == ["0", "0", "-"]
    assert int(found["32"][-1]) >= int(found["2"][-1]) > 0  # the simulated curve


def test_a_hostile_page_ends_and_nothing_is_lost(pages: Path, tmp_path: Path) -> None:
    """A page that hangs the engine ends as a timeout; SIGINT meanwhile ends the crawl."""
    arguments = ("--data", pages, "--pages", 3, "--only", "stuck", "--timeout", 1, "--output", tmp_path / "report.txt")
    done = run("attacks.py", *arguments)

    assert done.returncode == 0, done.stderr
    row = rows((tmp_path / "report.txt").read_text(encoding="utf-8"))["an engine that is stuck for ever"]
    assert row[1] == "timeout"
    assert row[-1] == "0"


def test_missing_data_is_said_at_once(tmp_path: Path) -> None:
    """The message says how to get the data."""
    done = run("extract.py", "--data", tmp_path, "--output", tmp_path / "report.txt")

    assert done.returncode == 1
    assert "tar -xf" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "report.txt").exists()


def test_favor_measures_every_set_at_every_weight(pages: Path, tmp_path: Path) -> None:
    """A greater weight of recall never lowers recall; the plot has a line for each set and one for their mean."""
    data = tmp_path / "data"
    data.mkdir()
    pages.rename(data / "html")
    lines = [
        json.dumps({"id": name, "text": "Paragraph 1 of page", "url": f"https://{name}.example/", "train": True})
        for name in ("one", "two", "three")
    ]
    (data / "pages.jsonl").write_text("\n".join(lines), encoding="utf-8")
    report = tmp_path / "favor.txt"
    done = run("favor.py", f"mine={data}", "--weights", 4, 0.1, "--output", report)

    assert done.returncode == 0, done.stderr
    text = report.read_text(encoding="utf-8")
    assert "mine, articles, 3 pages" in text
    recall = {name: float(cells[1]) for name, cells in rows(text).items() if len(cells) == 3 and "." in cells[0]}
    assert list(recall) == ["precision", "balanced", "recall", "times 0.1", "times 4"]
    assert recall["times 0.1"] <= recall["times 4"]
    plot = report.with_suffix(".svg").read_text(encoding="utf-8")
    assert plot.count("<polyline") == 2
    assert plot.count("<circle") == 3  # a point of each line, and the key


def test_the_reader_gets_pages_to_learn_from_and_one_of_each_site(tmp_path: Path) -> None:
    """The same seed draws the same pages. Pages that are only for checking are never drawn."""
    told = {
        "elsewhere": [{"id": f"news-{i}", "train": i != 1, "text": f"Text {i}."} for i in range(3)],
        "sites": [{"id": f"blog__{i}", "site": "blog", "kind": "content", "text": f"Text {i}."} for i in range(3)],
    }
    for name, records in told.items():
        (tmp_path / name / "html").mkdir(parents=True)
        for record in records:
            html = f"<nav>Home</nav><h1>Title</h1><p>{record['text']} It has some words, and a few more.</p>"
            (tmp_path / name / "html" / f"{record['id']}.html").write_text(html, encoding="utf-8")
        lines = "\n".join(map(json.dumps, records))
        (tmp_path / name / "pages.jsonl").write_text(lines, encoding="utf-8")

    done = [run("readers_check.py", tmp_path / out, "--data", tmp_path, "--pages", 5) for out in ("one", "two")]

    assert done[0].returncode == 0, done[0].stderr
    assert done[0].stdout == done[1].stdout
    drawn = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert [name for name in drawn if name.startswith("news")] == ["news-0", "news-2"]
    assert len(drawn) == 3
    page = (tmp_path / "one" / "news-0" / "page.txt").read_text(encoding="utf-8")
    assert "A h1: Title" in page


ARTICLE = """<html><head><title>{name}</title></head><body><nav><a href="/home">Home</a>
<a href="/shop">The shop</a></nav><article><h1>{name}</h1>{paragraphs}<h2>Tools</h2><ul>
<li>a hammer with a long handle</li><li>a saw for the wood</li></ul>
<p>All of this is told in <a href="/book">the book of the harbour</a> as well.</p></article></body></html>"""


@pytest.fixture
def annotated(tmp_path: Path) -> Path:
    """Ten annotated pages, each with a list and a link in its text, and two links in a menu."""
    for folder in ("html", "ground-truth"):
        (tmp_path / "data" / folder).mkdir(parents=True)
    for name in "abcdefghij":
        title = f"The story of harbour {name}"
        texts = [
            f"Paragraph {i} of harbour {name} is a sentence that is long enough, with {i} ships." for i in range(8)
        ]
        html = ARTICLE.format(name=title, paragraphs="".join(f"<p>{text}</p>" for text in texts))
        (tmp_path / "data" / "html" / f"{name}.html").write_text(html, encoding="utf-8")
        rest = ["Tools", "a hammer with a long handle", "a saw for the wood"]
        rest.append("All of this is told in the book of the harbour as well.")
        truth = {"main_content": "\n".join([title, *texts, *rest]), "title": title, "with": [], "without": []}
        record = {"url": f"https://{name}.example/", "ground_truth": truth}
        (tmp_path / "data" / "ground-truth" / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
    return tmp_path / "data"


def test_rag_finds_the_lists_and_links_of_the_truth(annotated: Path, tmp_path: Path) -> None:
    done = run("rag.py", "--data", annotated, "--peers", "", "--pages", 10, "--output", tmp_path / "report.txt")

    assert done.returncode == 0, done.stderr
    assert "10 pages with 0 code, 0 tables, 10 lists" in done.stdout
    chunks, words, links = re.findall(r"^scrapy-dripper .*$", done.stdout, re.M)
    assert re.split("  +", chunks)[-3:] == ["0 of 0", "0 of 10", "0"]
    assert re.split("  +", words)[1:] == ["0.0%, 0.0%"]
    assert "10 of the main content, 20 others" in done.stdout
    assert re.split("  +", links)[1:] == ["10", "100.0%", "100.0%"]


def test_revisits_tell_changes_from_visits(annotated: Path, tmp_path: Path) -> None:
    arguments = ["--data", annotated, "--peers", "", "--pages", 4, "--output", tmp_path / "report.txt"]
    done = run("revisits.py", *arguments)

    assert done.returncode == 0, done.stderr
    visits, _, pairs = done.stdout.partition("All ")
    found = rows(visits)
    assert found["content_hash"][:2] == ["100%", "100%"]  # time stamp, nonces
    assert found["content_hash"][5:] == ["0%"] * 4
    assert found["simhash, 3 bits"][5] == "100%"  # a number
    assert rows(pairs)["content_hash"] == ["0", "0", "0"]
    assert "All 45 pairs of 10 different pages" in done.stdout


def test_a_peer_that_is_unknown_is_named(annotated: Path) -> None:
    done = run("rag.py", "--data", annotated, "--peers", "crawl5ai")

    assert done.returncode == 1
    assert done.stderr == "expected peers from crawl4ai, trafilatura (got crawl5ai)\n"
