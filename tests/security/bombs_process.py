"""Reads bombs with little memory and prints the result of each, or one line with the error."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

SPARE = 1_000 << 20
"""Bytes of address space in addition to what is used before the first page is read."""
SECONDS = 120
"""Limit of CPU time, in seconds."""


def limit() -> None:
    """Limit this process to the memory and time that the pages should need."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + SPARE, taken + SPARE))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def main(folder: Path) -> None:
    """Read the pages of a folder through the engine and through each fallback."""
    from scrapy_dripper.config import Config
    from scrapy_dripper.extractor import Extractor
    from scrapy_dripper.testing import FakeEngine
    from tests.security.checks import Silent

    ways = [(FakeEngine(), "trafilatura"), (Silent(), "trafilatura"), (Silent(), "html")]
    extractors = [Extractor(Config(fallback=fallback, metadata_field="m"), engine=engine) for engine, fallback in ways]
    for extractor in extractors:
        extractor.extract(["<p>A page without any trick in it.</p>"])
    limit()
    found = {}
    for path in sorted(folder.iterdir()):
        answers = [extractor.extract([path.read_bytes()])[0] for extractor in extractors]
        found[path.name] = [(len(one.markdown or ""), (one.text or "")[:200], str(one.error)) for one in answers]
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
