"""Crawls of annotated pages with a Qwen3 model, and with the tagger: word F1 of the items, fallbacks, CPU time.

    python benchmarks/qwen3_crawl.py MODEL                  the pages that its training held out
    python benchmarks/qwen3_crawl.py MODEL --pages 60       fewer of them
    python benchmarks/qwen3_crawl.py MODEL --longest 20     the longest of all pages: which blocks get labels

Each crawl runs in a separate process. All crawls use a proxy on the loopback interface that serves the pages under
their real URLs, so nothing is downloaded. Pages are held out as in ``python -m scrapy_dripper.training.qwen3`` with the
same --folds and --seed. The bundled tagger was trained on all development pages, so its own figures are not held out.
The model's figures are, whatever the drafts are: its labels are those of greedy decoding, and drafts only affect the
time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus import DEFAULT
from report import heading, publish, table
from server import serve_pages
from tqdm import tqdm

from scrapy_dripper.dataset.metrics import ALL, ScoreRow, score, summaries
from scrapy_dripper.dataset.pages import Sample, load_pages
from scrapy_dripper.engines.qwen3.prepared import Prepared, load_prepared
from scrapy_dripper.engines.qwen3.prompt import Prompt, page_html
from scrapy_dripper.extraction import FallbackReason
from scrapy_dripper.page.simplify import simplify
from scrapy_dripper.training.qwen3.pages import sample_page, split

HERE = Path(__file__).parent
TAGGER, WINDOW, TRUNCATE, FALLBACK = "tagger", "qwen3, windows", "qwen3, truncated", "qwen3, fallback"
CASCADES = (0.97,)
"""Values of DRIPPER_CASCADE."""
LONG_LIMIT, LONG_TRUNCATE = 32_768, 200
"""Tokens of the longest training prompts of the published weights, and characters that they read of a text."""
WINDOWS = (1, 2, 4, 8, 16)
"""Minimum number of windows of a page, for each row of a table."""
CHARS_PER_TOKEN = (2.5, 3.0, 3.5)
"""Characters of simplified HTML per token, for an estimate without the tokenizer of the published weights."""
ANSWER_TOKENS = 6
"""Approximate number of tokens of the answer for a block."""
SETTINGS: dict[str, Any] = {
    "CONCURRENT_REQUESTS": 16,
    "ROBOTSTXT_OBEY": False,
    "RETRY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "ERROR",
    "DOWNLOAD_TIMEOUT": 3600,
    "DRIPPER_TIMEOUT": 3600,
}
NUMBER = "X-Page"
"""Header that tells the proxy which page is requested."""


@dataclass(frozen=True)
class Crawl:
    """The results of a crawl."""

    cpu: float
    """CPU seconds of the process, including downloads. Wall-clock time would include the load of the machine."""
    items: list[dict[str, Any]]
    """The items, in the order of the pages."""
    stats: dict[str, Any]

    @property
    def fallbacks(self) -> Counter[str]:
        """Pages that fell back, by reason."""
        return Counter(item["reason"] for item in self.items if item["reason"] is not None)


# ---------------------------------------------------------------------- one crawl, in a process of its own
def crawl(job: dict[str, Any]) -> dict[str, Any]:
    """Crawl all pages of a job."""
    import scrapy
    from scrapy import signals
    from scrapy.crawler import AsyncCrawlerProcess

    from scrapy_dripper import Dripper

    items: list[dict[str, Any]] = []
    marks: list[float] = []

    class Pages(scrapy.Spider):
        name = "pages"

        async def start(self) -> AsyncIterator[Any]:
            for number, url in enumerate(job["urls"]):
                meta = {"proxy": job["proxy"], "download_slot": "proxy", "handle_httpstatus_all": True}
                yield scrapy.Request(url, headers={NUMBER: number}, meta=meta, cb_kwargs={"number": number})

        async def parse(self, response: Any, number: int) -> AsyncIterator[Any]:
            page = await Dripper.from_crawler(self.crawler).extract(response)
            assert page is not None
            reason = page.fallback_reason and str(page.fallback_reason)
            yield {"number": number, "text": page.text or "", "source": page.source, "reason": reason,
                   "windows": page.work.get("windows", 0), "truncated": page.truncated, "blocks": page.blocks,
                   "labelled": sum(p > 0 for p in page.probabilities)}  # fmt: skip

    def scraped(item: dict[str, Any]) -> None:
        items.append(item)
        print(len(items), flush=True)

    def mark() -> None:
        marks.append(time.process_time())

    process = AsyncCrawlerProcess({**SETTINGS, "CONCURRENT_REQUESTS_PER_DOMAIN": 16, **job["settings"]})
    crawler = process.create_crawler(Pages)
    crawler.signals.connect(mark, signals.spider_opened)
    crawler.signals.connect(mark, signals.spider_closed)
    crawler.signals.connect(scraped, signals.item_scraped)
    process.crawl(crawler)
    process.start()
    assert crawler.stats is not None
    stats = {name: value for name, value in crawler.stats.get_stats().items() if name.startswith("dripper/")}
    items.sort(key=lambda item: item["number"])
    return {"cpu": marks[1] - marks[0], "items": items, "stats": stats}


# ---------------------------------------------------------------------- all crawls
class Proxy:
    """Serves pages for any URL. The header says which page is requested."""

    def __init__(self, samples: list[Sample], keep: Path | None) -> None:
        self._keep = keep
        bodies = [sample.read_html().encode() for sample in samples]
        self.url = f"http://127.0.0.1:{serve_pages(lambda _, headers: bodies[int(headers[NUMBER])])}"
        # Only http requests reach a proxy unencrypted. The query makes every URL unique.
        self.urls = []
        for number, sample in enumerate(samples):
            url = sample.url.partition("#")[0].replace("https://", "http://", 1) or "http://unknown.invalid/"
            self.urls.append(f"{url}{'&' if '?' in url else '?'}page={number}")

    def crawl(self, name: str, settings: dict[str, Any]) -> Crawl:
        """Crawl all pages with some settings, unless the result is already stored."""
        job = {"urls": self.urls, "proxy": self.url, "settings": settings}
        kept = None if self._keep is None else self._keep / f"{name.replace(', ', '-').replace(' ', '-')}.json"
        if kept is not None and kept.is_file():
            return Crawl(**json.loads(kept.read_text(encoding="utf-8")))
        with tempfile.TemporaryDirectory() as folder:
            path, out = Path(folder, "job.json"), Path(folder, "crawl.json")
            path.write_text(json.dumps(job), encoding="utf-8")
            command = [sys.executable, str(Path(__file__).resolve()), "--job", str(path), str(out)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                for _ in tqdm(process.stdout, desc=name, total=len(self.urls), unit="page"):
                    pass
            if process.returncode:
                raise SystemExit(f"the crawl '{name}' failed with exit code {process.returncode}")
            text = out.read_text(encoding="utf-8")
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(text, encoding="utf-8")
        return Crawl(**json.loads(text))


def rows_of(samples: list[Sample], crawled: Crawl) -> list[ScoreRow]:
    """Return the score of each item."""
    if [item["number"] for item in crawled.items] != list(range(len(samples))):
        raise SystemExit(f"{len(samples)} pages were asked for, and {len(crawled.items)} items came")
    return [
        score(s.id, s.page_type, item["text"], s.truth, s.with_snippets, s.without_snippets)
        for s, item in zip(samples, crawled.items, strict=True)
    ]


def by_type(samples: list[Sample], crawls: dict[str, Crawl]) -> str:
    """Return the word F1 of all crawls by page type."""
    found = {name: summaries(rows_of(samples, one)) for name, one in crawls.items()}
    types = list(next(iter(found.values())))
    head = ["word F1", *(f"{name.lower()} ({next(iter(found.values()))[name].pages})" for name in types)]
    return table(head, [[name, *(f"{own[one].f1:.3f}" for one in types)] for name, own in found.items()])


def outcomes(crawls: dict[str, Crawl]) -> str:
    """Return the sources and fallback reasons of the pages, and the CPU time."""
    columns = "qwen3,tagger,no main,oversize,others,in windows,truncated,prompts,passes,CPU s/page"
    rows = []
    for name, one in crawls.items():
        reasons = one.fallbacks
        main, over = reasons.pop(str(FallbackReason.NO_MAIN), 0), reasons.pop(str(FallbackReason.OVERSIZE), 0)
        counts = [
            *(sum(item["source"] == source for item in one.items) for source in ("qwen3", "tagger")),
            *(main, over, reasons.total()),
            *(sum(item["windows"] > 1 for item in one.items), sum(item["truncated"] for item in one.items)),
            *(one.stats.get(f"dripper/qwen3/{what}", 0) for what in ("windows", "passes")),
        ]
        rows.append([name, *map(str, counts), f"{one.cpu / len(one.items):.2f}"])
    return table(["crawl", *columns.split(",")], rows)


def over_context(samples: list[Sample], crawls: dict[str, Crawl]) -> str:
    """Return the results for pages that are too long for one prompt, with each setting."""
    long = [k for k, item in enumerate(crawls[WINDOW].items) if item["windows"] > 1]
    if not long:
        return "No page is longer than the model's context."
    chosen = [samples[k] for k in long]
    rows = []
    for name in (WINDOW, TRUNCATE, FALLBACK, TAGGER):
        if name not in crawls:
            continue
        items = [{**crawls[name].items[k], "number": i} for i, k in enumerate(long)]
        labelled = sum(item["reason"] in (None, str(FallbackReason.NO_MAIN)) for item in items)
        whole = sum(not item["truncated"] for item in items if item["reason"] != str(FallbackReason.OVERSIZE))
        total = summaries(rows_of(chosen, Crawl(1.0, items, {})))[ALL]
        figures = [f"{value:.3f}" for value in (total.f1, total.precision, total.recall)]
        rows.append([name, str(labelled), str(whole), str(len(long) - labelled), *figures])
    most = max(crawls[WINDOW].items[k]["windows"] for k in long)
    about = f"Pages that are too long for one prompt: {len(long)}, read in up to {most} windows"
    head = ["crawl", "labelled", "every block", "fell back", "word F1", "precision", "recall"]
    return about + "\n\n" + table(head, rows)


def by_windows(samples: list[Sample], crawls: dict[str, Crawl]) -> str:
    """Return the word F1 by the number of windows of a page, to see whether dividing a page costs anything."""
    scores = {name: [row.f1 for row in rows_of(samples, crawls[name])] for name in (WINDOW, TAGGER)}
    rows = []
    for least, above in zip(WINDOWS, (*WINDOWS[1:], 1 << 30), strict=True):
        own = [k for k, item in enumerate(crawls[WINDOW].items) if least <= item["windows"] < above]
        if own:
            last = "" if above == least + 1 else f" to {above - 1}" if above < 1 << 30 else " or more"
            means = [f"{sum(one[k] for k in own) / len(own):.3f}" for one in scores.values()]
            rows.append([f"{least}{last}", str(len(own)), *means])
    return table(["windows", "pages", *(f"word F1, {name}" for name in scores)], rows)


def longest(samples: list[Sample], prepared: Prepared, number: int) -> tuple[list[Sample], list[int]]:
    """Return the pages with the most tokens, longest first, and their numbers of tokens."""
    prompt = Prompt(prepared.tokenizer(), prepared.prompt)
    found = []
    for sample in tqdm(samples, desc="lengths", unit="page"):
        page = sample_page(sample, prepared.profile)
        if page is not None:
            found.append((len(prompt.encode([page_html(simplify(page, prepared.truncate_chars))])[0]), sample))
    found.sort(key=lambda one: one[0], reverse=True)
    return [sample for _, sample in found[:number]], [tokens for tokens, _ in found[:number]]


def labelled_blocks(tokens: list[int], crawls: dict[str, Crawl]) -> str:
    """Return, page by page, how many blocks the model has labelled."""
    rows = []
    for k, count in enumerate(tokens):
        items = [one.items[k] for one in crawls.values()]
        blocks = crawls[WINDOW].items[k]
        rows.append([f"{count:,}", f"{blocks['blocks']:,}", str(blocks["windows"]),
                     *(item["reason"] if item["reason"] == str(FallbackReason.OVERSIZE) else f"{item['labelled']:,}"
                       for item in items)])  # fmt: skip
    whole = sum(item["labelled"] == item["blocks"] > 0 for item in crawls[WINDOW].items)
    about = f"Blocks that were labelled, page by page. In windows all blocks of {whole} of {len(rows)} pages were."
    return about + "\n\n" + table(["tokens", "blocks", "windows", *crawls], rows)


def lengths(samples: list[Sample]) -> str:
    """Return how many pages would be too long for the published weights, for some numbers of characters per token."""
    sizes = []
    for sample in tqdm(samples, desc="lengths", unit="page"):
        page = sample_page(sample, "v1.0")
        sizes.append((sum(map(len, simplify(page, LONG_TRUNCATE))), len(page.blocks)) if page is not None else (0, 0))
    rows = []
    for ratio in CHARS_PER_TOKEN:
        tokens = sorted(1000 + chars / ratio + ANSWER_TOKENS * n for chars, n in sizes)
        over = sum(one > LONG_LIMIT for one in tokens)
        rows.append([f"{ratio}", f"{tokens[len(tokens) // 2]:,.0f}", f"{tokens[-1]:,.0f}", str(over),
                     f"{over / len(tokens):.1%}"])  # fmt: skip
    about = (
        f"Of all {len(sizes):,} pages in the profile v1.0, texts cut at {LONG_TRUNCATE} characters, with prompt and "
        f"answer, those over\n{LONG_LIMIT:,} tokens, by characters a token (an estimate: no tokenizer of the published "
        "weights was at hand):"
    )
    return about + "\n\n" + table(["characters a token", "median tokens", "most", "over", "share"], rows)


def run(arguments: argparse.Namespace) -> str:
    """Run all crawls and return the report."""
    prepared = load_prepared(arguments.model)
    everything = load_pages(arguments.data)
    engine = {"DRIPPER_ENGINE": "qwen3", "DRIPPER_MODEL": str(arguments.model.resolve())}
    variants: dict[str, dict[str, Any]] = {
        WINDOW: {**engine, "DRIPPER_OVERSIZE": "window"},
        TRUNCATE: {**engine, "DRIPPER_OVERSIZE": "truncate"},
        FALLBACK: engine,
    }
    if arguments.longest:
        samples, tokens = longest(everything, prepared, arguments.longest)
        about = f"The {len(samples)} longest of {len(everything):,} pages, most of which the model has learnt from."
    else:
        _, samples = split(everything, arguments.folds, arguments.seed)
        about = (
            f"{{}} of {len(everything):,} pages, of hosts that the model has not seen (fold 1 of {arguments.folds}, "
            f"seed {arguments.seed}).\nThe bundled tagger has learnt from all pages, so its figures, and those of "
            "cascades, are not held out."
        )
        variants |= {f"{WINDOW}, cascade {one:g}": {**variants[WINDOW], "DRIPPER_CASCADE": one} for one in CASCADES}
        variants[TAGGER] = {}
        if arguments.pages:
            number = min(arguments.pages, len(samples))
            samples = [samples[i * len(samples) // number] for i in range(number)]
        about = about.format(len(samples))
    proxy = Proxy(samples, arguments.keep)
    crawls = {name: proxy.crawl(name, settings) for name, settings in variants.items()}
    parts = [
        heading("qwen3_crawl.py", ["scrapy-dripper", "scrapy", "onnxruntime", "tokenizers", "trafilatura"]),
        f"{prepared.name}: {prepared.layers} layers, context {prepared.context:,}, profile {prepared.profile}, "
        f"{prepared.dtype} on {prepared.device}.\n{about}",
    ]
    if arguments.longest:
        parts += [labelled_blocks(tokens, crawls), outcomes(crawls)]
    else:
        parts += [by_type(samples, crawls), outcomes(crawls), over_context(samples, crawls)]
        parts += [by_windows(samples, crawls), lengths(everything)]
    return "\n\n".join(parts)


def main() -> None:
    """Run the benchmark, or one of the crawls that it starts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?", metavar="MODEL", help="prepared folder")
    parser.add_argument("--data", type=Path, default=DEFAULT.parent, help="folder with html/ and ground-truth/")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pages", type=int, help="crawl so many of them; default: all")
    parser.add_argument("--longest", type=int, metavar="N", help="the N pages of all that are longest")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep each crawl there, and go on from what is there")
    parser.add_argument("--output", type=Path, help="where the report goes; by default results/qwen3-*.txt")
    parser.add_argument("--job", type=Path, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        done = crawl(json.loads(arguments.job[0].read_text(encoding="utf-8")))
        arguments.job[1].write_text(json.dumps(done), encoding="utf-8")
        return
    if arguments.model is None:
        parser.error("MODEL is missing: a folder made with 'scrapy-dripper export'")
    name = "qwen3-longest.txt" if arguments.longest else "qwen3-crawl.txt"
    publish(run(arguments), arguments.output or HERE / "results" / name)


if __name__ == "__main__":
    main()
