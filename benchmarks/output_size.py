"""Output size of pages that are made to produce a large output: characters relative to the page, time and memory.

Each page is extracted in its own process, with all of its blocks as main content or through a fallback.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from corpus import DEFAULT
from report import heading, publish, table

if TYPE_CHECKING:
    from scrapy_dripper.engines.base import EngineError, Labels
    from scrapy_dripper.page.page import Page

SIZE = 100_000
NOTE = f"""\
Pages of about {SIZE:,} characters, from a URL of 1,900. Ways: "main" labels every block as main content; "citations",
"linear" and "html2text" add DRIPPER_LINKS, DRIPPER_COMPLEX_TABLES or DRIPPER_MARKDOWN; "truncate" adds
DRIPPER_OVERSIZE; "html" and "trafilatura" are fallbacks. Sizes are characters of each form per character of the page,
for the way with the most. CPU s per 100 kB are for the slowest way, with the ratio of a page twice as long. MB:
increase of peak memory by all ways. End: whether a page exceeded DRIPPER_MAX_OUTPUT, and whether all of it came out."""
WAYS: dict[str, dict[str, Any]] = {
    "main": {},
    "citations": {"links": "citations"},
    "linear": {"complex_tables": "linear"},
    "html2text": {"markdown": "html2text"},
    "truncate": {"oversize": "truncate", "complex_tables": "linear"},
    "html": {"fallback": "html"},
    "trafilatura": {"fallback": "trafilatura"},
}


def filled(piece: str, size: int, before: str = "", behind: str = "") -> str:
    """Return one piece, repeated as often as fits, between two others."""
    return before + piece * max(1, (size - len(before) - len(behind)) // len(piece)) + behind


def _numbered(piece: str, size: int) -> str:
    return "".join(piece.replace("#", str(i)) for i in range(max(1, size // (len(piece) + 4))))


def _ragged(size: int) -> str:
    n = size // 20
    return f"<table><tr>{'<th>x' * n}{'<tr><td>x<td>y' * n}</table>"


def _spans(size: int, text: str = "x", cells: int = 1_000) -> str:
    row = f"<tr><td colspan={cells}>{text}"
    return filled(row, size, f"<table><tr>{'<td>x' * cells}", "</table>")


PAGES: dict[str, Callable[[int], str]] = {
    "paragraphs of a letter": lambda n: filled("<p>a", n),
    "list items of a letter": lambda n: filled("<li>a", n, "<ul>", "</ul>"),
    "header cells of a letter": lambda n: filled("<tr><th>a<th>b", n, "<table>", "</table>"),
    "ragged table": _ragged,
    "ragged table, longest row last": lambda n: filled(
        "<tr><td>x<td>y", n, "<table>", f"<tr>{'<td>x' * (n // 20)}</table>"
    ),
    "rows that span 1,000 columns": _spans,
    "a long text that spans 1,000 columns": lambda n: _spans(n, "x " * (n // 4)),
    "a long text that spans many rows": lambda n: (
        f"<table><tr><td rowspan=65000>{'x ' * (n // 4)}<td>y{'<tr><td>y' * (n // 20)}</table>"
    ),
    "tables of 10 rows that span 100 columns": lambda n: filled(_spans(700, cells=100), n),
    "tables in tables": lambda n: filled("<table><tr><th>a<th>b<tr><td>" * 6 + "&quot;" * 20 + "</table>" * 6, n),
    "caption of half the page": lambda n: filled(
        "<tr><td>a<td>b", n, f"<table><caption>{'x ' * (n // 4)}</caption><tr><th>a<th>b", "</table>"
    ),
    "long <base>, short links": lambda n: filled(
        "<a href=x>y</a> ", n, f"<base href='https://example.org/{'a/' * 2_000}'>"
    ),
    "short links": lambda n: filled("<p><a href=x>y</a>", n),
    "links from the root": lambda n: filled("<p><a href=/x>y</a>", n),
    "images": lambda n: filled("<p>a<img src=x.png alt=y>", n),
    "one long link around many images": lambda n: filled(
        "<p><img src=http://e.org/a.png><p><img src=http://e.org/b.png>",
        n,
        f"<p>words</p><a href='http://e.org/{'a' * (n // 2)}'>",
    ),
    "one long link around many tables": lambda n: filled(
        "<table><tr><th rowspan=2>*<th>a<tr><td>*</table>", n, f"<a href='http://e.org/{'a' * (n // 2)}'>"
    ),
    "long title of a link around paragraphs": lambda n: filled(
        "<p>*", n, f"<p>words</p><a href=/x title='{'word ' * 99}'>"
    ),
    "formats around many paragraphs": lambda n: filled("<p>a", n, "<sub><sup>" * 6),
    "emphasis around many paragraphs": lambda n: filled("<p>a", n, "<b><i><s><sub><sup>"),
    "formats that open and close": lambda n: filled("<b>a</b><i>a</i>", n),
    "quotes around empty lines of code": lambda n: filled("\n", n, f"<p>x</p>{'<blockquote>' * 10}<pre>a", "a</pre>"),
    "quotes around lines of code": lambda n: filled("a\n", n, f"<p>x</p>{'<blockquote>' * 10}<pre>", "</pre>"),
    "lists around lines of code": lambda n: filled("a\n", n, f"<p>x</p>{'<ul><li>' * 10}<pre>", "</pre>"),
    "ordered lists around lines": lambda n: filled("a<br>", n, f"<p>x</p>{'<ol start=999999999><li>' * 10}"),
    "a hundred thousand lists": lambda n: filled("<ul><li>a", n),
    "quotes in quotes, over and over": lambda n: filled("<blockquote>a" * 30 + "</blockquote>" * 30, n),
    "definitions in definitions": lambda n: filled("<dl><dt>a<dd>b", n),
    "ordered lists with large numbers": lambda n: filled("<li>a", n, "<ol start=999999999>", "</ol>"),
    "footnotes": lambda n: (
        "".join(f"<sup><a href=#fn{i}>{i}</a></sup>" for i in range(n // 60))
        + "<ol>"
        + "".join(f"<li id=fn{i}>x" for i in range(n // 60))
        + "</ol>"
    ),
    "one footnote, many marks": lambda n: filled("<a href=#fn1>1</a>", n, "", "<ol><li id=fn1>x</ol>"),
    "text of marks": lambda n: filled("*a*", n, "<p>"),
    "text of quotes and ampersands": lambda n: filled(
        "&quot;&lt;a", n, "<table><tr><th rowspan=2>a<th>b<tr><td>", "</table>"
    ),
    "no-break spaces and dollars": lambda n: filled(
        "$a\u00a0", n, "<table><tr><th rowspan=2>a<th>b<tr><td>", "</table>"
    ),
    "URLs of characters outside of ASCII": lambda n: filled("\U0001f600", n, "<p><a href='/", "'>x</a>"),
    "URLs of marks": lambda n: filled("&lt;&gt; ", n, "<p><a href='/", "'>x</a>"),
    "alternative text and title": lambda n: filled(
        "b&quot;", n, f"<p>x<img src=x.png alt='{'a&quot;' * (n // 14)}' title='", "'>"
    ),
    "figures in figures": lambda n: filled("<figure><figcaption>a</figcaption>", n),
    "ruby": lambda n: filled("<ruby>a<rt>b</ruby>", n, "<p>"),
    "backticks in code": lambda n: f"<p><code>{'`' * (n // 3)}</code> x</p><pre>{'`' * (n // 3)}\n</pre>",
    "code of one letter": lambda n: filled("<code>`</code> a ", n, "<p>"),
    "blocks of code": lambda n: filled("<pre>a", n),
    "code of one letter per element": lambda n: filled("<span>a</span>", n, "<pre>", "</pre>"),
    "players": lambda n: filled("<p>a<video src=x.mp4></video>", n),
    "MathML: operators": lambda n: filled("<mo>&#x2a0c;</mo>", n, "<p>words <math>", "</math>"),
    "MathML: fences in fences": lambda n: filled("<mfenced open='&lang;'><mi>x</mi>", n, "<p><math>", "</math>"),
    "MathML: separators": lambda n: filled(
        "<mi>x</mi>", n, f"<p><math><mfenced separators='{';' * (n // 2)}'>", "</mfenced></math>"
    ),
    "MathML: scripts in scripts": lambda n: filled("<mmultiscripts><mi>x</mi><mi>y</mi><none/>", n, "<p><math>"),
    "MathML: accents in accents": lambda n: filled(
        "<mover><mi>x</mi><mo>&#xaf;</mo></mover>", n, "<p><math>", "</math>"
    ),
    "MathML: ragged table": lambda n: (
        f"<p><math><mtable columnalign='left right'><mtr>{'<mtd><mi>x</mi>' * (n // 40)}</mtr>"
        f"{'<mtr><mtd><mi>x</mi></mtd></mtr>' * (n // 60)}</mtable></math>"
    ),
    "TeX in delimiters": lambda n: filled(r"\(a\) ", n, "<p>"),
    "TeX of what would be markup": lambda n: filled("](&lt;a", n, r"<p>\(", r"\)"),
    "KaTeX": lambda n: filled(
        "<span class=katex><annotation encoding=application/x-tex>x</annotation></span>", n, "<p>"
    ),
    "headings": lambda n: filled("<h6>a</h6>", n),
    "rules": lambda n: filled("<hr>", n, "<p>x</p>", "<p>x</p>"),
    "line breaks": lambda n: filled("a<br>", n, "<p>"),
    "line breaks in cells": lambda n: filled("a<br><br>", n, "<table><tr><th>x<th>y<tr><td>a<td>", "</table>"),
    "details": lambda n: filled("<details><summary>a</summary>b</details>", n),
    "formats with different attributes, unclosed": lambda n: _numbered("<b a#><p>x", n),
    "attributes of one letter": lambda n: filled("<p id=a dir=b lang=c title=d>x", n),
    "unknown tags": lambda n: filled("<x>a", n),
    "long class names": lambda n: f"<p class='{'a ' * (n // 2)}'>x</p>",
}


def _engine() -> Any:
    from scrapy_dripper.engines.base import Labels, Limits

    class AllMain:
        name, profile, limits = "all", "native", Limits()

        def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
            return [
                Labels(np.ones(len(page.blocks), np.float32), np.ones(len(page.blocks), np.bool_)) for page in pages
            ]

        def close(self) -> None:
            pass

    return AllMain()


def measure(name: str, factor: int | None) -> dict[str, Any]:
    """Extract one page in all ways in this process, and return the sizes and costs."""
    from scrapy_dripper import Document, Extractor
    from scrapy_dripper.config import Config
    from scrapy_dripper.extraction import FallbackReason
    from scrapy_dripper.output.content_json import to_json

    url = "https://example.org/" + "path/" * 376
    common = {"timeout": 600.0, "max_blocks": 10**6, "max_nodes": 10**6} | ({"max_output": factor} if factor else {})
    extractors = {
        way: Extractor(Config(processes=0, **common, **options), engine=_engine()) for way, options in WAYS.items()
    }

    def extract(way: str, html: str) -> tuple[Any, float]:
        document = Document(html, url)
        start = time.process_time()
        if way in ("html", "trafilatura"):
            found = extractors[way].fall_back(document, FallbackReason.ENGINE_ERROR)
        else:
            found = extractors[way].extract([document])[0]
        return found, (time.process_time() - start) * 100_000 / len(html)

    for way in WAYS:
        extract(way, "<p>a page to warm up with</p>")
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    page = PAGES[name](SIZE)
    ratios, seconds, ends = {}, {}, {}
    for way in WAYS:
        found, seconds[way] = extract(way, page)
        content = json.dumps(to_json(found.content or ()), ensure_ascii=False, separators=(",", ":"))
        forms = (found.main_html or "", found.markdown or "", found.text or "", content)
        ratios[way] = [len(form) / len(page) for form in forms]
        ends[way] = "cut" if found.truncated else "whole"
        if found.fallback_reason is FallbackReason.OVERSIZE:
            ends[way] = f"oversize, {ends[way]}"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    slowest = max(seconds, key=lambda way: seconds[way])
    most = max(ratios, key=lambda way: max(ratios[way]))
    return {
        "most": most,
        "ratios": ratios[most],
        "slowest": slowest,
        "seconds": seconds[slowest],
        "twice": extract(slowest, PAGES[name](2 * SIZE))[1] / seconds[slowest],
        "mb": (peak - base) / 1_024,
        "ends": "; ".join(dict.fromkeys(ends.values())),
    }


def measured(name: str, factor: int | None) -> list[str]:
    """Return a row of the table, from a separate process with limited memory and time."""
    command = [sys.executable, __file__, "--one", name, *(["--factor", str(factor)] if factor else [])]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (300, 300))

    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit)
    if done.returncode:
        return [name, *["-"] * 9, done.stderr.strip()[-80:] or f"killed ({done.returncode})"]
    found = json.loads(done.stdout.splitlines()[-1])
    figures = [f"{found['seconds']:.2f}", f"{found['twice']:.1f}", f"{found['mb']:.0f}"]
    return [name, found["most"], *(f"{one:.1f}" for one in found["ratios"]), found["slowest"], *figures, found["ends"]]


def real(folder: Path) -> str:
    """Return the largest output of real pages with all blocks as main content, and the page that has it."""
    from scrapy_dripper import Document, Extractor
    from scrapy_dripper.config import Config
    from scrapy_dripper.output.content_json import to_json

    extractor = Extractor(Config(max_output=10**9), engine=_engine())
    names = ["Main-HTML", "Markdown", "text", "content list"]
    most = dict.fromkeys(names, (0.0, ""))
    paths = sorted(folder.glob("*.html"))
    for path in paths:
        html = path.read_bytes()
        found = extractor.extract([Document(html, "https://example.org/some/path/of/a/page.html")])[0]
        content = json.dumps(to_json(found.content or ()), ensure_ascii=False, separators=(",", ":"))
        for name, form in zip(names, (found.main_html, found.markdown, found.text, content), strict=True):
            most[name] = max(most[name], (len(form or "") / max(1_000, len(html)), path.name))
    extractor.close()
    rows = [[name, f"{most[name][0]:.2f}", most[name][1]] for name in names]
    return f"{len(paths)} pages; characters for each byte:\n\n{table(['', 'most', 'page'], rows)}"


def main() -> None:
    """Measure all pages and write ``results/output_size.txt``. In a process that this starts, measure one page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--factor", type=int, help="DRIPPER_MAX_OUTPUT; by default its default")
    parser.add_argument("--pages", default="", metavar="TEXT", help="only the pages with that in their name")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "output_size.txt")
    parser.add_argument("--real", action="store_true", help="only show the most that comes out of real pages")
    parser.add_argument("--data", type=Path, default=DEFAULT, help="folder of real pages")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.factor)))
        return
    if arguments.real:
        print(real(arguments.data))
        return
    rows = []
    for name in filter(lambda name: arguments.pages in name, PAGES):
        rows.append(measured(name, arguments.factor))
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    head = ["page", "way", "HTML", "Markdown", "text", "list", "slowest", "CPU s", "twice", "MB", "ends"]
    packages = ("scrapy-dripper", "lxml", "trafilatura", "html2text")
    publish(f"{heading('output_size.py', packages)}\n\n{NOTE}\n\n{table(head, rows)}", arguments.output)


if __name__ == "__main__":
    main()
