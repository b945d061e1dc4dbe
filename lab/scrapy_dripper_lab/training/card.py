"""Write the model card: training data, figures and limitations of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scrapy_dripper_lab.sets import PageSet
from scrapy_dripper_lab.training.measure import Measured

_FACTS = """\
The next table shows the share of the facts of a page that its text keeps, the share of the pages that lose more than
half of them, and the mean number of words of the texts: junk makes it easy to keep facts.

{table}
"""

_CARD = """\
# Model card: tagger

This model predicts the probability that a block of a web page is main content, in two stages. The first stage is the
mean of gradient-boosted trees over {features} features of a block{network}. Trees over the first stage's probabilities
predict the page type. The second stage consists of trees over the page type and the first stage's probabilities on the
whole page. The answer is the mean of both stages, calibrated on held-out pages. Trees over the answer predict the
expected word F1 of the page. Of the text, the model only uses counts of characters and of some words, the types in the
page's head, and which parts of the text the page also declares as facts. It runs on a CPU with onnxruntime. It was made
by `make train`; the seed, library versions and data hashes are in `manifest.json`.

## Data
{data}
The pages themselves belong to their publishers and are not part of this model or its repository.

## How it was measured
Pages are extracted from their bytes to their text, including fallbacks, in {folds} folds grouped by host across all
sets, so no page is measured with a model that has seen its host. Other extractors have their default options, unless
their names say otherwise. The figures are means over pages:

* word F1, P, R: words of the extracted and of the true text, in lower case, compared as multisets. The title is
  neutral, because not all ground truths have it, and Han characters and kana are words.
* < 0.5: share of pages with a lower word F1.
* WCXB F1: the measure of WCXB's own evaluation, with `\\w+` words, and titles as the ground truth has them.
* In the mean of sets, every set counts the same.

{figures}
{facts}
## Pages as a whole
{pages}

## Limitations
{weak}
* Pages whose content is written by JavaScript: a crawler that does not run it has nothing to label.
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
    "6abc47c93fb7f2d05c66dee83a631e19e90e0c6efb3336dfda58a8cada515869": (
        "with labels that people made, from public repositories: fundus, jocmp/mercury-parser, newspaper4k and zhw "
        "(MIT), postlight/parser (MIT or Apache-2.0), goose3 and harvest (Apache-2.0). The pages of daniel (GPL-3.0), "
        "dragnet (AGPL-3.0) and cleaneval are for checking only: nothing was fitted on any of them."
    ),
    "90b41925f649967134941bc55b0a98969b4d30a5ab47959938810720c5c6b2ac": (
        "of sites whose sources are public: the true text is the Markdown that the page was made from. A few pages of "
        "each site were used for training, and all are measured."
    ),
    "690563e8250d0c7da755f3a7df33eb3cb5fe3e2661763ce62cbae6ec4cd9a7d1": (
        "whose facts are known: ingredients and steps of recipes (test pages of hhursev/recipe-scrapers, MIT), and "
        "names and numbers in lists of court decisions (test pages of freelawproject/juriscraper, BSD-2-Clause). Of "
        "the rest of a page, nothing is known: it has the labels of trees that were fitted on the other sets, with a "
        "low weight. Each page is also seen without its declarations."
    ),
    "9bba8daa8edf9bda5d5e13e9ef8931609dc5e38c0b9b359422920c32e9b6abb0": (
        "of other kinds: homes for sale, products, heads of news, references, public bodies, declared things, "
        "and Chinese articles and forums with whole texts. They are test pages of public projects "
        "(property_web_scraper, product-extraction-benchmark, metascraper, extruct, newspaper4k, postlight/parser, "
        "goose3, snacktory, vgmdb, Mp3Streamer, plucker, city-scrapers, magic-html). Of most of them, only short facts "
        "and first words are known. Forums, papers and jobs are for checking only."
    ),
}
"""Descriptions of known data, by hash."""


def _about(one: PageSet) -> str:
    strange = f"of the folder `{one.name}` (SHA-256 `{one.sha256[:16]}...`), not known to this code."
    learnt, measured = len(one.learnt), sum(sample.measure for sample in one.samples)
    uses = f"Used for training: {learnt:,}. Measured: {measured:,}."
    if not measured:
        uses = "Training data only: nothing is measured on them."
    return f"* {len(one.samples):,} pages {_KNOWN.get(one.sha256, strange)} {uses}"


def _copies(counts: Mapping[str, int]) -> list[str]:
    kinds = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    return [f"* Modified copies of training pages: {kinds}."] if counts else []


def card(sets: Sequence[PageSet], measured: Measured | None, notes: Mapping[str, Any]) -> str:
    """Return the model card as Markdown. Without figures, it says that the model was not measured."""
    figures, weak, facts, pages = "Not measured: trained with `--no-measure`.\n", "* Not measured.", "", "Not measured."
    if measured:
        worst = sorted(measured.tables[-1].rows, key=lambda row: row[2])[:3]  # by page type; the third cell is word F1
        weak = "* Page types with the lowest word F1: " + ", ".join(f"{row[0]} ({row[2]:.3f})" for row in worst) + "."
        systems = ", ".join(f"{name} {version}" for name, version in measured.versions.items())
        figures = "\n\n".join([f"Beside {systems}:", *(table.markdown() for table in measured.tables)]) + "\n"
        pages = (
            f"The quality of a page (its expected word F1) and its word F1 correlate with {measured.correlation:.3f}. "
            f"{measured.accuracy:.3f} of the page types are right."
        )
        if measured.facts.rows:
            facts = _FACTS.format(table=measured.facts.markdown())
    return _CARD.format(
        network=", and of a small network that also sees those of the blocks around it" if notes["network"] else "",
        features=notes["features"],
        data="\n".join([*map(_about, sets), *_copies(notes["copies"])]),
        folds=notes["folds"],
        figures=figures,
        facts=facts,
        pages=pages,
        weak=weak,
    )
