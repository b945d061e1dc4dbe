"""Crawl one site with site memory and templates. Check that no item is lost, and measure the memory.

A site of many pages is made from the pages of the example project's website, or from those of annotated sites. Each
page is a copy of one of them. The texts of its main part get a number, and some paragraphs are left out, so that no two
pages are equal. The site is served over the loopback interface, by a proxy for all hosts. Refreshes are not followed,
because they lead to the live site. The first crawl has neither site memory nor templates. The second has both, is
stopped halfway, and is resumed from its ``JOBDIR``. The last one has three times as many pages, on more hosts than the
memory has room for.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from processes import children_cpu
from report import heading, publish, table
from server import serve_pages

from scrapy_dripper.dataset.neutral import words
from scrapy_dripper.dataset.prf import bag_prf

EXAMPLE = Path(__file__).parents[1] / "example_project" / "example" / "website" / "pages"
OUTPUT = Path(__file__).parent / "results" / "site-crawl.txt"
SEED = 20261123
PARTS = 10
"""Number of times that the memory of the crawl's process is recorded."""
LEFT_OUT = 0.3
"""Share of the paragraphs that are left out of a page."""

_paragraph = re.compile(r"<p\b[^<>]*>[^<>]{40,}</p>")
_text = re.compile(r"(<(?:p|h1|h2|li|td|title)\b[^<>]*>)(?=[^<>\s])")
_main = re.compile(r"<(main|article)\b.*</\1>", re.S)


def made(bodies: list[str], count: int) -> list[bytes]:
    """Return ``count`` pages of a site, made from these kinds of pages. Some kinds have many more pages than others."""
    chance = random.Random(SEED)
    weights = [1 / (rank + 1) for rank in range(len(bodies))]
    return [_page(body, number, chance) for number, body in enumerate(chance.choices(bodies, weights, k=count))]


def _page(body: str, number: int, chance: random.Random) -> bytes:
    found = _main.search(body)
    start, end = found.span() if found else (0, len(body))
    inner = _paragraph.sub(lambda one: "" if chance.random() < LEFT_OUT else one[0], body[start:end])
    inner = _text.sub(rf"\1n{number:05d} ", inner)
    return (body[:start] + inner + body[end:]).encode()


def crawl(values: dict[str, Any]) -> dict[str, Any]:
    """Crawl in this process, and return the texts by URL, the stats, the memory at each part, and the CPU seconds."""
    import scrapy
    from crawl import SETTINGS
    from scrapy.crawler import AsyncCrawlerProcess

    texts: dict[str, str] = {}
    sizes: list[float] = []
    every = max(1, values["items"] // PARTS)

    class Pages(scrapy.Spider):
        name = "pages"

        async def start(self):  # type: ignore[no-untyped-def]
            for url in values["urls"]:
                yield scrapy.Request(url, meta={"proxy": values["proxy"]})

        def parse(self, response):  # type: ignore[no-untyped-def]
            yield {"url": response.url}

    def keep(item: dict[str, Any]) -> None:
        texts[item["url"]] = item["text"] or ""
        if len(texts) % every == 0:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            sizes.append(round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1))

    addon = {
        "ADDONS": {"scrapy_dripper.Addon": 500},
        "DRIPPER_TEXT_FIELD": "text",
        "DRIPPER_PROCESSES": 1,
        "METAREFRESH_ENABLED": False,
    }
    process = AsyncCrawlerProcess({**SETTINGS, **addon, **values["settings"]})
    crawler = process.create_crawler(Pages)
    crawler.signals.connect(keep, scrapy.signals.item_scraped)
    process.crawl(crawler)
    process.start()
    assert crawler.stats is not None
    stats = {name: value for name, value in crawler.stats.get_stats().items() if name.startswith("dripper/")}
    return {"texts": texts, "stats": stats, "sizes": sizes, "cpu": children_cpu(os.getpid())}


def run(proxy: str, urls: list[str], items: int, **settings: object) -> dict[str, Any]:
    """Crawl in a process of its own."""
    values = json.dumps({"proxy": proxy, "urls": urls, "items": items, "settings": settings})
    # The answer goes into a file, because it has megabytes. With PYTHONUNBUFFERED, a signal cuts a long print() short.
    with tempfile.NamedTemporaryFile() as answer:
        command = [sys.executable, __file__, "crawl", answer.name]
        done = subprocess.run(command, input=values, capture_output=True, text=True, check=False, timeout=3_600)
        if done.returncode:
            raise RuntimeError(f"the crawl has ended with exit code {done.returncode}: {done.stderr[-2_000:]}")
        found: dict[str, Any] = json.load(answer)
    return found


def measured(bodies: list[str], count: int) -> str:
    """Return the table of the crawls of a site."""
    pages = made(bodies, count)
    proxy = f"http://127.0.0.1:{serve_pages(lambda url, _: pages[int(url.rpartition('/')[2]) % count])}"
    urls = [f"http://one.example/{number}" for number in range(count)]
    far = [f"http://host-{number % (count * 6 // 5)}.example/{number}" for number in range(3 * count)]
    on = {"DRIPPER_SITE_MEMORY": "on", "DRIPPER_TEMPLATES": "on"}
    rows, lines = [], []
    with tempfile.TemporaryDirectory() as folder:
        job = {"JOBDIR": folder}
        off = run(proxy, urls, count)
        first = run(proxy, urls, count // 2, **on, **job, CLOSESPIDER_ITEMCOUNT=count // 2)
        second = run(proxy, urls, count // 2, **on, **job)
        kept = {path.name: path.stat().st_size for path in Path(folder).glob("dripper-*")}
    many = run(proxy, far, len(far), **on)
    both = {**first["texts"], **second["texts"]}
    twice = len(first["texts"].keys() & second["texts"].keys())
    crawls = (("without", off), ("with both, first half", first), ("with both, resumed", second), ("many hosts", many))
    for name, one in crawls:
        stats, n = Counter(one["stats"]), max(1, len(one["texts"]))
        rows.append(
            [
                name,
                str(len(one["texts"])),
                f"{stats['dripper/templates/answered'] / n:.2f}",
                str(stats["dripper/templates/audit"]),
                str(stats["dripper/templates/hosts"]),
                str(stats["dripper/site_memory/hosts"]),
                f"{1_000 * one['cpu'] / n:.0f}",
                " ".join(f"{size:.0f}" for size in one["sizes"]),
            ]
        )
    head = ["crawl", "items", "answered", "audits", "hosts with templates", "in memory", "CPU ms", "MB at each tenth"]
    scores = [_same(off["texts"][url], both[url]) for url in both]
    lines.append(table(head, rows))
    lines.append(
        f"items lost: {len(set(urls) - both.keys())} with both, {len(set(far) - many['texts'].keys())} of many hosts; "
        f"twice: {twice}"
    )
    lines.append(
        f"text with both, by the text without: word F1 {sum(scores) / len(scores):.4f}, "
        f"{sum(score < 0.95 for score in scores)} of {len(scores)} pages under .95, the worst {min(scores):.3f}"
    )
    lines.append("files in JOBDIR: " + ", ".join(f"{name} {size:,} bytes" for name, size in sorted(kept.items())))
    return "\n\n".join(lines)


def _same(one: str, other: str) -> float:
    return bag_prf(Counter(words(other)), Counter(words(one))).f1


def bodies_of(data: Path | None, site: str) -> list[str]:
    """Return the pages of the example's website, or those of an annotated site."""
    files = sorted(EXAMPLE.rglob("*.html")) if data is None else sorted((data / "html").glob(f"{site}__*.html"))
    return [file.read_text(encoding="utf-8", errors="replace") for file in files]


def main() -> None:
    """Run the benchmark."""
    if sys.argv[1:2] == ["crawl"]:
        Path(sys.argv[2]).write_text(json.dumps(crawl(json.load(sys.stdin))), encoding="utf-8")
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=500, metavar="N", help="pages of the site (%(default)s)")
    parser.add_argument("--data", type=Path, help="folder of annotated pages of sites, such as .cache/sites")
    parser.add_argument("--site", nargs="+", metavar="NAME", help="its sites, by the beginning of their pages' names")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the report (%(default)s)")
    options = parser.parse_args()
    if (options.data is None) != (options.site is None):
        parser.error("--data and --site belong together")
    sites = {site: bodies_of(options.data, site) for site in options.site or ()}
    if missing := [site for site, bodies in sites.items() if not bodies]:
        parser.error(f"no page of {', '.join(missing)} in {options.data}")
    sites = {"the example's website": bodies_of(None, ""), **sites}
    reports = []
    for site, bodies in sites.items():
        title = f"{site}, {options.pages} pages made of {len(bodies)}"
        reports.append(f"{title}\n\n{measured(bodies, options.pages)}")
    head = heading("site_crawl.py", ["scrapy-dripper", "scrapy", "lxml", "numpy", "onnxruntime"])
    note = "answered: share of the pages that a template labelled. CPU ms: of the worker process, a page."
    publish(f"{head}\n\n{note}\n\n" + "\n\n\n".join(reports), options.output)


if __name__ == "__main__":
    main()
