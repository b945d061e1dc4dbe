"""The share of known facts that texts of extractors keep: ``python benchmarks/facts.py .cache/facts A.jsonl B.jsonl``.

Each file holds the texts of an extractor, ``{"id": ..., "text": ...}`` a line, as ``make train ARGS="--predictions
A.jsonl"`` writes ours for pages of hosts that the model has not seen. With ``--write B.jsonl``, the texts of
rs-trafilatura (a wheel for Python 3.12) are written there first.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from scrapy_dripper_lab.sets import SetChoice, load_set
from scrapy_dripper_lab.training.measure import fact_table


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a set of pages of which only facts are known")
    parser.add_argument("files", type=Path, nargs="*", help="texts of extractors, as JSON Lines")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the texts of rs-trafilatura there")
    arguments = parser.parse_args()
    samples = load_set(SetChoice(arguments.folder)).samples
    if arguments.write:
        import rs_trafilatura

        with arguments.write.open("w", encoding="utf-8") as file:
            for sample in samples:
                found = rs_trafilatura.extract_bytes(sample.path.read_bytes())
                file.write(json.dumps({"id": sample.id, "text": f"{found.title}\n{found.main_content}"}) + "\n")
    texts = {}
    for path in [*arguments.files, *([arguments.write] if arguments.write else [])]:
        lines = map(json.loads, path.open(encoding="utf-8"))
        texts[path.stem] = {line["id"]: line["text"] for line in lines}
    print(fact_table(samples, texts).text())


if __name__ == "__main__":
    main()
