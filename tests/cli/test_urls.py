"""The URLs of pages that come as files: declared, below that of a folder, or in a list."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.test_inputs import mhtml

URL = "https://example.com/news/1"
RULES = ("--rules", "rules.json", "-f", "jsonl")
TEXT = "<h1>Tides</h1><p class=own>The tide is high at noon</p><p>Read our other stories about the sea</p>"
SCRIPT = f"<script>'<head></head>'</script>{'<!-- -->' * 9}"


def page(head: str = "", before: str = "") -> str:
    return f"<!doctype html>{before}<html><head><title>Tides</title>{head}</head><body>{TEXT}</body></html>"


@pytest.fixture(autouse=True)
def _rules(here: Path) -> None:
    Path("rules.json").write_text(json.dumps({"example.com/news/*": {"whole": ".own"}}))


CANONICAL = f"<link rel=canonical href='{URL}'>"


@pytest.mark.parametrize(
    "html",
    [
        page(CANONICAL),
        page(f"<meta property='OG:URL' content=' {URL} '>"),
        page(SCRIPT + CANONICAL),
        page() + CANONICAL,
        page("<base href=https://example.com/><link rel='x canonical' href=/news/1>"),
        page("<link rel=canonical href=https://other.example/>", f"\n<!-- saved from url=(0026){URL} -->\n"),
        page("", f"<!--\n Page saved with SingleFile \n url: {URL} \n saved date: Mon Jun 01 2026\n-->"),
        mhtml(page().encode(), f"Content-Type: text/html\r\nContent-Location: {URL}").decode(),
    ],
    ids=["canonical", "og:url", "after a script", "in the body", "relative", "saved from", "SingleFile", "MHTML"],
)
@pytest.mark.parametrize("jobs", [(), ("--jobs", 1)], ids=["here", "a worker"])
def test_the_url_that_a_page_declares_chooses_the_rules(html: str, jobs: tuple[Any, ...], extract: Run) -> None:
    Path("page.html").write_text(html, encoding="utf-8")

    done = extract("page.html", *RULES, *jobs)

    (record,) = done.records
    assert (record["url"], record["text"], done.err) == (URL, "The tide is high at noon", "")


@pytest.mark.parametrize(
    "html",
    [
        page(),
        page("<link rel=canonical href=/news/1><meta property=og:url content='javascript:x'>"),
        page("", "<!-- saved from url=(0014)about:internet -->"),
        page() + "<p>" + "x" * 400_000 + CANONICAL,
    ],
    ids=["none", "no URL", "about:internet", "far behind"],
)
def test_a_page_without_a_url_is_told(html: str, extract: Run) -> None:
    """One line has the number of pages to which an option could not apply, and a file that shows which."""
    for name in ("a", "b"):
        Path(f"{name}.html").write_text(html, encoding="utf-8")
    Path("c.html").write_text(page(CANONICAL), encoding="utf-8")

    done = extract(".", *RULES, "--sites", "memory")

    assert done.code == 0
    assert done.err == (
        "scrapy-dripper: --rules and --sites cannot apply to 2 of 3 pages, whose URL is unknown (such as ./a.html): "
        "--url or --urls gives it\n"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], ""),
        (["--rules", "every.json"], ""),
        (["--rules", "rules.json"], "--rules cannot apply to 1 of 1 pages"),
        (["--sites", "all"], "--sites cannot apply to"),
    ],
)
def test_options_that_need_no_url(options: list[str], words: str, extract: Run) -> None:
    Path("every.json").write_text(json.dumps({"*": {"whole": ".own"}}))
    Path("page.html").write_text(page())

    done = extract("page.html", *options)

    assert (done.code, words in done.err, done.err.count("\n")) == (0, True, 1 if words else 0)


def tree(*names: str) -> None:
    """Write pages that declare another URL than the one that they get."""
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(page("<link rel=canonical href=https://other.example/>"), encoding="utf-8")


@pytest.mark.parametrize(
    "base", ["https://example.com/news", "https://example.com/news/", "https://example.com/news/?a=1#b"]
)
def test_a_folder_of_a_url(base: str, extract: Run) -> None:
    tree("site/a.html", "site/deep/b c?.html", "site/deep/\u00e9%.html")

    done = extract("site", "--url", base, *RULES)

    assert {record["url"].removeprefix("https://example.com/news/") for record in done.records} == {
        "a.html",
        "deep/b%20c%3F.html",
        "deep/%C3%A9%25.html",
    }
    assert {record["text"] for record in done.records} == {"The tide is high at noon"}


LISTS = {
    "list.csv": f'\ufefffile,n,url\r\na.html,1,{URL}\r\n"b,\n.html",2,"{URL}?a,b"\r\nc.html,3,\r\n',
    "list.jsonl": "\n".join(
        json.dumps(row)
        for row in (
            {"file": "a.html", "url": URL},
            {"file": "b,\n.html", "url": URL + "?a,b", "more": 1},
            {"file": "c.html", "url": None},
        )
    )
    + "\n\n",
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("inputs", [(), ("site",), ("site/b,\n.html", "./site/a.html", "site/c.html")])
def test_a_list_of_files_and_urls(name: str, inputs: tuple[str, ...], extract: Run) -> None:
    """Names are relative to the folder of the list. A page without a URL in it has the one that it declares."""
    tree("site/a.html", "site/b,\n.html", "site/c.html")
    Path("site", name).write_text(LISTS[name], encoding="utf-8", newline="")

    done = extract(*inputs, "--urls", f"site/{name}", *RULES)

    assert (done.code, done.err) == (0, "")
    found = {record["id"]: record["url"] for record in done.records}
    assert found == {"a": URL, "b, ": URL + "?a,b", "c": "https://other.example/"}


@pytest.mark.parametrize(
    ("name", "text", "code", "said"),
    [
        ("x.csv", f"file,url\na.html,{URL}\n no.html,{URL}\n", 1, "line 3:  no.html not found: names are relative"),
        ("x.csv", "file,url\nsite,\n", 1, "x.csv, line 2: site not found"),
        ("x.csv", f"file,url\na.html,{URL}\nb.html,\n./a.html,{URL}2\n", 2, "4: ./a.html has another URL in line 2"),
        ("x.csv", f"name;url\na.html;{URL}\n", 2, "x.csv, line 1: expected the columns file and url (got 'name;url')"),
        ("x.csv", "", 2, "x.csv, line 1: expected the columns file and url"),
        ("x.csv", "file,url\n", 2, "x.csv, line 2: expected the name of a file"),
        ("x.csv", f"file,url\na.html,{URL},b\n", 2, "x.csv, line 2: there are more values than columns"),
        ("x.csv", 'file,url\n"a.html', 2, "x.csv, line 2: unexpected end of data"),
        ("x.csv", "file,url\n,x\n", 2, "x.csv, line 2: expected the name of a file as file (got '')"),
        ("x.csv", "file,url\na.html,example.com/a\n", 2, "2: expected a URL with http:// or https:// as url (got 'exa"),
        ("x.jsonl", '{"file": "a.html", "url": ""}\n{"file": "a.html"\n', 2, "x.jsonl, line 2: expected a JSON object"),
        ("x.jsonl", '{"file": "a.html", "url": ""}\n[1]\n', 2, "x.jsonl, line 2: expected an object with file and url"),
        ("x.jsonl", '{"file": "a.html", "URL": ""}\n', 2, "x.jsonl, line 1: expected an object with file and url"),
        ("x.jsonl", '{"file": "a.html", "url": 5}\n', 2, "x.jsonl, line 1: expected a URL"),
        ("x.jsonl", '{"file": ["a.html"], "url": ""}\n', 2, "x.jsonl, line 1: expected the name of a file"),
        ("x.jsonl", '{"file": "a.html", "url": ' + "[" * 100_000, 2, "x.jsonl, line 1: expected a JSON object"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("inputs", [(), (".",)])
def test_what_is_wrong_in_a_list_is_named_with_its_line(
    name: str, text: str, code: int, said: str, inputs: tuple[str, ...], extract: Run
) -> None:
    """A file that is missing is like an input that is missing. After other errors, nothing is extracted."""
    tree("a.html", "b.html", "site/c.html")
    Path(name).write_text(text, encoding="utf-8")

    done = extract(*inputs, "--urls", name)

    assert (done.code, said in done.err, "Traceback" in done.err) == (code, True, False)
    if code == 2:
        assert (done.out, done.err.count("\n")) == ("", 1)


def test_a_list_that_does_not_fit_the_inputs(extract: Run) -> None:
    tree("a.html", "b.html", "site/c.html")
    Path("x.csv").write_text(f"file,url\na.html,{URL}\nb.html,{URL}2\n")

    assert "cannot be read: No such file" in extract("a.html", "--urls", "none.csv").err
    done = extract("site", "a.html", "--urls", "x.csv", *RULES)
    assert [record["url"] for record in done.records] == ["https://other.example/", URL]
    assert "1 files of x.csv are not among the inputs" in done.err
