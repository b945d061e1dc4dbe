"""Run a crawl of the example project, watch it, and show the items."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from scrapy.crawler import AsyncCrawlerProcess
from scrapy.utils.project import get_project_settings

HERE = Path(__file__).resolve().parent
EPILOG = """\
examples:
  python example_project/crawl.py
      crawl the example's own website, which is served on a free port of 127.0.0.1 while the crawl runs
  python example_project/crawl.py --urls "https://example.org https://example.com/a/page"
      crawl these URLs, with one request a second to each host, as far as their robots.txt allows
  python example_project/crawl.py --spider strict
      crawl the same website with other settings: no fallback, and only the first part of pages that are too large
  python example_project/crawl.py --js
      download a page that JavaScript writes, by plain HTTP and with Chromium

Every page is a row of the table. The columns are the source of the main content, the number of blocks and of main
blocks, the words of the Markdown (in Chinese and Japanese, characters), the milliseconds spent on the page, and, if the
model did not decide, the fallback reason. A page that is not HTML is shown as skipped, and a page that could not be
downloaded with its error.

exit code: 0 if at least one page had main content, 1 if none did, 2 for wrong usage
"""


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line. Raise SystemExit for wrong usage and for ``--help``."""
    parser = argparse.ArgumentParser(
        description="Crawl pages and extract their main content with scrapy-dripper.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--urls", nargs="+", metavar="URL", help="crawl these URLs instead of the example's website")
    what.add_argument("--js", action="store_true", help="crawl a page that JavaScript writes, through Chromium")
    what.add_argument(
        "--spider",
        choices=("site", "strict", "callback"),
        default="site",
        help="the spider that crawls the example's website (%(default)s)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=HERE / "output",
        metavar="FOLDER",
        help="folder for the items, the Markdown files and the log (default: output, beside this file)",
    )
    options = parser.parse_args(arguments)
    options.urls = " ".join(options.urls or []).split()
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run a crawl and return the exit code."""
    options = parse_arguments(arguments)
    sys.path.insert(0, str(HERE))
    os.environ["SCRAPY_SETTINGS_MODULE"] = "example.settings"
    from example.browser import advice
    from example.console import Watcher, summary, table

    name, values = options.spider, {}
    if options.urls:
        name, values = "urls", {"urls": " ".join(options.urls)}
    elif options.js:
        name = "js"
        if missing := advice():
            print(missing, file=sys.stderr)
            return 1

    output: Path = options.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    log = output / "crawl.log"
    settings = get_project_settings()
    settings.setdict(
        {
            "OUTPUT_DIR": str(output),
            "FEEDS": {output / "pages.jsonl": {"format": "jsonlines", "encoding": "utf8", "overwrite": True}},
            "LOG_LEVEL": "WARNING",
            "LOG_FILE": str(log),
            "LOG_FILE_APPEND": False,
        },
        priority="cmdline",
    )
    process = AsyncCrawlerProcess(settings)
    crawler = process.create_crawler(name)
    watcher = Watcher(crawler)
    crawl = process.crawl(crawler, **values)
    process.start()
    if error := crawl.exception():
        print(f"The crawl did not start: {error}", file=sys.stderr)
        return 1

    for line in table(watcher.all_rows(), shutil.get_terminal_size((100, 24)).columns):
        print(line)
    print()
    print("\n".join(summary(watcher, crawler.stats.get_stats(), str(output), str(log))))
    for rendered, text in sorted(watcher.texts.items()):
        how = "Chromium renders it" if rendered else "plain HTTP gives it"
        print(f"\n--- The Markdown of the page as {how} ---")
        print(text.strip() or "(nothing)")
    return 0 if watcher.extracted else 1


if __name__ == "__main__":
    if hasattr(sys.stdout, "reconfigure"):  # A terminal that does not use UTF-8 must not end the crawl with an error.
        sys.stdout.reconfigure(errors="replace")
    sys.exit(main())
