"""CPU seconds that parsing takes on pages made to hurt parsers: the table in docs/pages.md."""

from __future__ import annotations

import argparse
import time
from itertools import islice

from scrapy_dripper.page import PageError
from scrapy_dripper.page.parse import parse

MEGABYTES = 10_000_000


def filled(piece: str) -> str:
    """Return a page of 10 MB made of one piece."""
    return piece * (MEGABYTES // len(piece))


def tag(attributes: int) -> str:
    """Return a tag with so many attributes, each as short as can be: long tags are looked at before parsing."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = (f"{a}{b}{c}{d}" for a in ("", *letters) for b in letters for c in letters for d in letters)
    return f"<p {' '.join(islice(names, attributes))}>x"


PAGES = {
    "200,000 nested `<div>`": lambda: "<div>" * 200_000 + "x",
    "20,000 unclosed tags of all kinds": lambda: "".join(f"<{('p', 'b', 'i', 'u')[i % 4]}>x" for i in range(20_000)),
    "3,000 misnested `<font>`": lambda: "<font><p>x" * 3_000 + "</font>" * 3_000,
    "100,000 attributes on a tag": lambda: tag(100_000),
    "10 MB of `<p>x` (2.5 million elements)": lambda: filled("<p>x"),
    "10 MB of end tags without a start, in 2,000 nested tags": lambda: "<div>" * 2_000 + filled("</b>"),
    "10 MB of tags with 2,700 attributes each": lambda: filled(tag(2_700)),
    "10 MB of tags with 4,000 attributes each": lambda: filled(tag(4_000)),
}


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print("| hostile page | CPU seconds |\n|---|---:|")
    for name, page in PAGES.items():
        html = page()
        start = time.process_time()
        try:
            parse(html)
            outcome = ""
        except PageError as error:
            outcome = f", `{error.reason}`"
        print(f"| {name} | {time.process_time() - start:.2f}{outcome} |", flush=True)


if __name__ == "__main__":
    main()
