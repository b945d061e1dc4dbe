"""Text of a page and names of files stay text in reports, in annotation tasks and on terminals."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from scrapy_dripper.cli import main
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.page import read
from scrapy_dripper.workshop.annotation.listing import listing
from scrapy_dripper.workshop.annotation.web_task import web_task
from tests.security.checks import dangers, elements
from tests.security.chromium import CHROMIUM, show

PLAIN = ["one", "two", "three", "four"]
HOSTILE = [
    "<img src=x onerror=ran(1)>",
    "\"'><svg onload=ran(2)>",
    "&lt;x&gt; --> ]]> {{x}} ${x}",
    "\x1b]0;owned\x07\x1b[31m\x9b2J\r\u202e",
]
MORE = "</title></style></script><script>ran(3)</script><!--<script><img src=/load/4>"


def evaluated(folder: Path, words: list[str], more: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Evaluate four pages whose names and texts are all one of these words; return the report and the output."""
    data = folder / f"data {words[0]}"
    for part in ("html", "ground-truth"):
        (data / part).mkdir(parents=True)
    stored = folder / f"stored {words[1]}.jsonl"
    with stored.open("w", encoding="utf-8") as lines:
        for i, word in enumerate(words):
            text = f"{word} words of the page {more}"
            escaped = text.replace("&", "&amp;").replace("<", "&lt;")
            (data / "html" / f"{i} {word}.html").write_text(f"<p>{escaped}</p><p>more words</p>", encoding="utf-8")
            truth = {"main_content": f"{text}\nmore", "title": text, "with": [text], "without": [more]}
            page = {"url": f"javascript:ran(5)//{text}", "ground_truth": truth}
            page["_internal"] = {"page_type": {"primary": f"{word} {more}"}}
            (data / "ground-truth" / f"{i} {word}.json").write_text(json.dumps(page), encoding="utf-8")
            labels = {"labels": [True, False], "probabilities": [0.9, 0.1]}
            lines.write(json.dumps({"id": f"{i} {word}", "text": "some " + text, **labels}) + "\n")
    report = folder / "report.html"
    arguments = ["--predictions", str(stored), "--report", str(report), "--jobs", "1", "--resamples", "20"]
    assert main(["evaluate", str(data), *arguments]) == 0
    return report.read_text(encoding="utf-8"), capsys.readouterr().out


def tags(html: str) -> Counter[tuple[str, tuple[str, ...]]]:
    return Counter((tag, tuple(sorted(attributes))) for tag, attributes in elements(html))


def test_a_report_has_the_same_elements_whatever_its_pages_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The words are names of folders, files and page types, titles, addresses, blocks and true texts."""
    (tmp_path / "plain").mkdir()
    (tmp_path / "hostile").mkdir()
    plain, _ = evaluated(tmp_path / "plain", PLAIN, "and more", capsys)
    hostile, printed = evaluated(tmp_path / "hostile", HOSTILE, MORE, capsys)

    assert tags(hostile) == tags(plain)
    assert "ran(3)" in hostile
    assert not re.search("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", hostile)
    assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f]", printed)
    assert '<meta http-equiv="Content-Security-Policy" content="default-src &#x27;none&#x27;' in hostile


def task_page(text: str) -> str:
    """Return the annotation task of a page with these words everywhere."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    html = f'<title>{escaped}</title><div class="{escaped}" id="{escaped}"><p>{escaped}</p></div><p>more</p>'
    lines = listing(read(Document(html), Config()))
    return web_task({"id": text, "title": text, "url": f"javascript:{text}", "sha256": text}, lines)


def test_a_task_has_the_same_elements_whatever_its_page_says() -> None:
    for word in (*HOSTILE, MORE):
        assert tags(task_page(word + MORE)) == tags(task_page("words"))


@pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium or Chrome in the path")
def test_a_browser_runs_nothing_of_a_page_in_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """This holds without the report's policy too, which would hide missing escapes."""
    report, _ = evaluated(tmp_path, HOSTILE, MORE, capsys)
    pages = [report, task_page(HOSTILE[0] + MORE), task_page(HOSTILE[1] + MORE)]
    pages = [re.sub(r"<meta http-equiv[^>]*>", "", html) for html in pages]
    visit = show([*pages, "<p onclick=ran(5000)>words</p>"], pages, tmp_path)

    assert visit.ran == {5_000}
    assert [path for path in visit.asked if "load" in path] == []
    assert dangers(pages[0]) != dangers(f"{pages[0]}<script>ran(1)</script>")
