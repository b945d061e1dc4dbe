"""CPU time and space per document of the steps of `corpus clean`, on the Markdown of development pages."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corpus import DEFAULT, sample
from datatrove.data import Document as Row
from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupSignature
from datatrove.utils.hashing import create_hash_func
from report import heading, publish, table

from scrapy_dripper.corpus.cleaning import HASH
from scrapy_dripper.corpus.filters import Language, Quality, Repetition, Words
from scrapy_dripper.extraction import Document
from scrapy_dripper.extractor import Extractor

REPEATS = 5


def main() -> None:
    """Extract the pages, run the steps and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20)
    arguments = parser.parse_args()
    pages, _ = sample(arguments.data, arguments.pages, arguments.seed)
    extractor = Extractor()
    rows = [
        Row(one.markdown, str(number))
        for number, one in enumerate(extractor.extract([Document(page.path.read_bytes()) for page in pages]))
        if one.markdown
    ]
    extractor.close()
    near = MinhashDedupSignature("unused", MinhashConfig(hash_config=HASH), Words())
    exact = create_hash_func(HASH)
    steps: dict[str, Callable[[Row], Any]] = {
        "exact duplicates: hash": lambda row: exact(row.text),
        "language": Language().filter,
        "quality": Quality().filter,
        "repetition": Repetition().filter,
        "near duplicates: signature": lambda row: near.get_signature(near.get_shingles(row.text)),
    }
    kept = [row for row in rows if Quality().filter(row) is True and Repetition().filter(row) is True]
    lines = []
    for name, step in steps.items():
        step(rows[0])  # loads its data in advance
        there = kept if name.startswith("near") else rows
        begun = time.process_time()
        for _ in range(REPEATS):
            for row in there:
                step(row)
        lines.append([name, f"{(time.process_time() - begun) / REPEATS / len(there) * 1e3:.2f}", f"{len(there)}"])
    characters = sum(len(row.text) for row in rows) / len(rows)
    publish(
        "\n".join(
            [
                heading("corpus_clean.py", ("scrapy-dripper", "datatrove", "py3langid", "numpy")),
                "",
                f"{len(rows)} documents of {characters:,.0f} characters of Markdown on average. CPU milliseconds a",
                "document, one thread; the last step only sees what the filters keep.",
                "",
                table(["step", "ms", "documents"], lines),
            ]
        ),
        Path(__file__).parent / "results" / "corpus_clean.txt",
    )


if __name__ == "__main__":
    main()
