"""The model card: what a model was made from, what it is worth and what it is bad at."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from scrapy_dripper.evaluation.bootstrap import mean_interval, paired_interval
from scrapy_dripper.evaluation.metrics import ALL, ScoreRow, format_table, summaries
from scrapy_dripper.training.data import Sample

_CARD = """\
# Model card: tagger

The probability that a block of a web page is main content, in two stages. The first is the mean of gradient-boosted
trees over {features} features of a block, and of {networks} small networks that also see those of the blocks around.
The second is trees over what the first says of the page as a whole. The answer is the mean of both stages, calibrated
on held-out pages. No part reads text beyond counts of characters and of some words, and the types that the page's head
names. It runs through onnxruntime on a CPU. Made by `make train`; the seed, library versions and data hashes are in
`manifest.json`.

## Data
{data}
The pages themselves belong to their publishers and are not part of this model or its repository.

## How it was measured
Word F1: for each page, `\\w+` words of the extracted and of the true text compared as multisets; the mean over pages.
The whole way from the bytes of a page to its text, fallbacks included, {folds} folds grouped by host: no page is
measured by a model that has seen its host.

{figures}
## What it is bad at
{weak}
* Pages whose content is put there by JavaScript: a crawler that does not run it has nothing to label.
* Languages: the development pages are mostly English; other languages and scripts are measured on few pages.

## By language
What the pages themselves declare (`<html lang>`), languages of fewer than {few} pages together.

{languages}
"""

_KNOWN = {
    "e4903b41c73309f9a4a2576661e05c795b8cd0fac434b64b5f9f16a13c45e3dd": (
        "of WCXB, the Web Content eXtraction Benchmark v1.0 by Murrough Foley (2026), CC-BY-4.0: its development split "
        "without the pages whose host is also in its test split. The main content was reviewed by people."
    ),
    "ab185d5f156ee47f6786c64a717e5f4d3b0bc287650588c015135708cce81db2": (
        "of public corpora (product-extraction-benchmark, autopager, formasaurus, webstruct) whose labels come from "
        "**one reading of the block list by a language model**, by the conventions of WCXB, unreviewed."
    ),
}
"""What is known of data, by their hash."""


FEW = 5
"""Fewer pages of a language are not listed by themselves."""

_lang = re.compile(rb"<html\b[^<>]*?\blang\s*=\s*[\"']?([a-zA-Z]{2,3})\b", re.I).search


def _by_language(samples: Sequence[Sample], rows: Sequence[ScoreRow]) -> list[ScoreRow]:
    """Return the scores with the declared language of each page in the place of its type."""
    heads = [sample.path.read_bytes()[:20_000] for sample in samples]
    declared = [match[1].decode().lower() if (match := _lang(head)) else "not declared" for head in heads]
    counts = Counter(declared)
    names = [name if counts[name] >= FEW else "others" for name in declared]
    return [replace(row, page_type=name) for row, name in zip(rows, names, strict=True)]


def _about(name: str, digest: str, pages: int, measured: bool) -> str:
    known = _KNOWN.get(digest, f"of the folder `{name}` (SHA-256 `{digest[:16]}...`), not known to this code.")
    return f"* {pages:,} pages {known}" + ("" if measured else " Training data only: nothing is measured on them.")


def card(
    samples: Sequence[Sample],
    extra: Sequence[Sample],
    ours: Sequence[ScoreRow],
    peer: Sequence[ScoreRow],
    notes: Mapping[str, Any],
) -> str:
    """Return the model card as Markdown; without scores it says that the model was not measured."""
    figures, weak = "Not measured: trained with `--no-measure`.\n", "* Not measured."
    languages = "Not measured."
    if ours:
        mean = mean_interval([row.f1 for row in ours])
        gain = paired_interval([a.f1 - b.f1 for a, b in zip(ours, peer, strict=True)])
        figures = (
            f"Word F1 **{mean.mean:.4f}** [{mean.low:.4f}, {mean.high:.4f}]; Trafilatura "
            f"{notes['libraries']['trafilatura']} with its defaults on the same pages "
            f"{mean.mean - gain.mean:.4f}, a difference of {gain.mean:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}] "
            "(95 % bootstrap intervals over pages).\n\n"
            f"The tagger:\n\n{format_table(summaries(ours), markdown=True)}\n\n"
            f"Trafilatura:\n\n{format_table(summaries(peer), markdown=True)}\n"
        )
        table = summaries(ours)
        worst = sorted((name for name in table if name != ALL), key=lambda name: table[name].f1)[:3]
        languages = format_table(summaries(_by_language(samples, ours)), markdown=True).replace("type", "language", 1)
        weak = "* Page types with the lowest F1: " + ", ".join(f"{name} ({table[name].f1:.3f})" for name in worst) + "."
    return _CARD.format(
        networks=notes["networks"],
        features=notes["features"],
        data="\n".join(
            _about(name, digest, len(pages), pages is samples)
            for (name, digest), pages in zip(notes["data_sha256"].items(), (samples, extra), strict=False)
        ),
        folds=notes["folds"],
        figures=figures,
        weak=weak,
        languages=languages,
        few=FEW,
    )
