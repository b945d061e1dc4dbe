"""Draw pages for a person to read, each beside its Markdown from this version and from an earlier one.

A fixed seed draws pages from ``facts``, ``elsewhere``, ``sites`` and the products of ``wcxb-dev``, at most one of each
host. With the models of the folds, no page is extracted by a model that was trained on its host. Each page gets a
folder. ``page.txt`` lists all of its text and marks what was extracted, ``after.md`` and ``before.md`` are the
Markdown, and ``truth.txt`` is the ground truth, or what is known of it. The reader counts junk and losses; see
``results/readers-check.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from common import table

from scrapy_dripper.learning.metrics import neutral_prf
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.page.page import Flag
from scrapy_dripper.page.parse import parse
from scrapy_dripper_lab.alignment import align
from scrapy_dripper_lab.scores import page_title
from scrapy_dripper_lab.sets import AnnotatedPage, DataError, SetChoice, load_set

ROOT = Path(__file__).parents[1]
SEED = 20261126
SETS = ("facts", "elsewhere", "sites", "wcxb-dev")
PAGES = 15
"""Pages of each set."""
AFTER, BEFORE = "after", "before"

Outputs = Mapping[str, Mapping[str, str]]
"""The output of a version by page id: ``markdown``, ``text`` and ``source``."""

_EXTRACT = """
import json, sys
from itertools import groupby
from pathlib import Path
from scrapy_dripper import Document, Extractor
from scrapy_dripper.config import Config
answers = {}
for model, pages in groupby(sorted(json.load(sys.stdin)), key=lambda page: page[0]):
    pages = list(pages)
    documents = [Document(Path(path).read_bytes(), url) for _, _, path, url in pages]
    found = Extractor(Config(model=model)).extract(documents)
    for (_, name, _, _), one in zip(pages, found):
        answers[name] = {key: getattr(one, key) or "" for key in ("markdown", "text", "source")}
json.dump(answers, sys.stdout)
"""
"""Runs in a separate process, because a process cannot import two versions of a package."""


def draw(data: Path) -> list[AnnotatedPage]:
    """Return the pages of the seed: a number of each set, from as many hosts."""
    numbers = random.Random(SEED)
    drawn = []
    for name in SETS:
        hosts: dict[str, list[AnnotatedPage]] = defaultdict(list)
        for sample in load_set(SetChoice(data / name)).samples:
            if sample.measure and (name != "wcxb-dev" or sample.page_type == "product"):
                hosts[sample.host].append(sample)
        drawn += [numbers.choice(hosts[host]) for host in numbers.sample(sorted(hosts), min(PAGES, len(hosts)))]
    return drawn


def extract(samples: Sequence[AnnotatedPage], version: Path, folds: Path | None = None) -> Outputs:
    """Extract pages with the package and the bundled model of a working copy, or with the models of the folds."""
    fold_of = json.loads((folds / "folds.json").read_text(encoding="utf-8")) if folds else {}
    models = {s.id: folds / str(fold_of[s.id]) if folds else version / "models" / "tagger" for s in samples}
    given = json.dumps([(str(models[s.id].resolve()), s.id, str(s.path.resolve()), s.url) for s in samples])
    done = subprocess.run(
        [sys.executable, "-c", _EXTRACT],
        input=given.encode(),
        cwd=version,
        env=os.environ | {"PYTHONPATH": str(version)},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: Outputs = json.loads(done.stdout)
    return found


def listing(html: bytes, url: str, texts: Mapping[str, str]) -> str:
    """Return the text of a page with one line per block: the initials of the outputs that have it, its tag, its words.

    A lower-case initial means that the output may have another block with the same words instead. The tag of a block
    that is hidden without a script is followed by ``h``.
    """
    page = cut(parse(decode_html(html, None)), url)
    found = {name[0]: align(page.blocks.text, text) for name, text in texts.items()}
    lines = []
    for i, (text, leaf) in enumerate(zip(page.blocks.text, page.blocks.leaf.tolist(), strict=True)):
        marks = "".join(
            mark.upper() if labels.main[i] else mark if labels.duplicate[i] else "-" for mark, labels in found.items()
        )
        hidden = " h" if page.tree.flags[leaf] & Flag.HIDDEN else ""
        lines.append(f"{marks} {page.tree.nodes[leaf].tag}{hidden}: {' '.join(text.split())}")
    return "\n".join(lines) + "\n"


def write(folder: Path, sample: AnnotatedPage, outputs: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Write the files for a page, and return its row of the table."""
    folder.mkdir(parents=True, exist_ok=True)
    html = sample.path.read_bytes()
    titles = (sample.title, page_title(html))
    scores = {name: neutral_prf(output["text"], sample.truth, titles).f1 for name, output in outputs.items()}
    truth = json.dumps(sample.facts, ensure_ascii=False, indent=1) if sample.facts else sample.truth
    about = [f"{sample.id} ({sample.part}, {sample.language})", f"title: {titles[0] or titles[1]}", sample.url]
    about += [f"{name}: by {outputs[name]['source']}" for name in outputs]
    shown = listing(html, sample.url, {name: output["text"] for name, output in outputs.items()})
    (folder / "page.txt").write_text("\n".join(about) + "\n\n" + shown, encoding="utf-8")
    (folder / "truth.txt").write_text(truth + "\n", encoding="utf-8")
    for name, output in outputs.items():
        (folder / f"{name}.md").write_text(output["markdown"], encoding="utf-8")
    return [sample.id, *("" if sample.facts else f"{score:.3f}" for score in scores.values())]


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(
        description=__doc__, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where to write one folder a page; pages are not ours to publish")
    parser.add_argument("--before", type=Path, metavar="COPY", help="checkout of an earlier version")
    parser.add_argument("--models", type=Path, metavar="DIR", help="what 'make train ARGS=--fold-models=DIR' wrote")
    parser.add_argument("--data", type=Path, default=ROOT / ".cache", help="folder of the sets")
    options = parser.parse_args()

    if options.before and not (options.before / "models" / "tagger").is_dir():
        parser.error(f"--before: expected a checkout with models/tagger (got {options.before})")
    try:
        samples = draw(options.data)
    except DataError as error:
        raise SystemExit(str(error)) from None
    versions = {AFTER: ROOT} | ({BEFORE: options.before.resolve()} if options.before else {})
    outputs = {
        name: extract(samples, version, options.models if name == AFTER else None) for name, version in versions.items()
    }
    rows = [
        write(options.folder / sample.id, sample, {name: found[sample.id] for name, found in outputs.items()})
        for sample in samples
    ]
    print(table(["page", *versions], rows))


if __name__ == "__main__":
    main()
