"""Make archives of the example's website, extract them, and clean the texts: `make corpus-demo`."""

from __future__ import annotations

import argparse
import gzip
import shutil
import sys
import time
from pathlib import Path

from scrapy.http import HtmlResponse

HERE = Path(__file__).resolve().parent
SITE = "https://{day}.tarnwick.example{path}"
EPILOG = """\
The website is archived three times, as three crawls would: on Monday with all its pages that go wrong, on Tuesday as it
was, and on Wednesday with a new line on each page. The pages of Tuesday are exact duplicates, those of Wednesday near
ones. Nothing is downloaded.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the chain, and return the exit code of the command that failed, if one did."""
    parser = argparse.ArgumentParser(
        description="Archives in, a clean corpus out.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=HERE / "output" / "corpus",
        metavar="FOLDER",
        help="where all of it goes; what is there is deleted (default: output/corpus, beside this file)",
    )
    output: Path = parser.parse_args(arguments).output.resolve()
    sys.path.insert(0, str(HERE))
    from scrapy_dripper.cli import main as command

    begun = time.monotonic()
    shutil.rmtree(output, ignore_errors=True)
    archives, corpus = output / "archives", output / "pages"
    archives.mkdir(parents=True)
    for day in ("monday", "tuesday", "wednesday"):
        (archives / f"{day}.warc.gz").write_bytes(archive(day))
    for line in (
        ["extract", str(archives), "-o", str(corpus)],
        ["clean", str(corpus)],
    ):
        print("$ scrapy-dripper corpus", *line, flush=True)
        if code := command(["corpus", *line]):
            return code
    print(f"Done in {time.monotonic() - begun:.0f} s. The cleaned documents: {corpus / 'clean'}")
    return 0


def archive(day: str) -> bytes:
    """Return a WARC file of the website, each record a gzip member of its own."""
    from example.website import nasty
    from example.website.server import answer, stored_pages

    from scrapy_dripper.corpus.records import response_record

    members = []
    for path in [*stored_pages(), *(nasty.PAGES if day == "monday" else ())]:
        found = answer(path)
        body = found.body
        if day == "wednesday":
            body = body.replace(b"</h1>", b"</h1><p>Seen again on Wednesday.</p>", 1)
        headers = {"Content-Type": found.content_type} if found.content_type else {}
        response = HtmlResponse(
            SITE.format(day=day, path=path), found.status, headers=headers | dict(found.headers), body=body
        )
        members.append(gzip.compress(response_record(response, {})))
    return b"".join(members)


if __name__ == "__main__":
    sys.exit(main())
