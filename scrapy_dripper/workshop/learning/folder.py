"""Write a model folder: the graphs of the base model, with the learnt weights beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scrapy_dripper.engines.files import hashes, sha256
from scrapy_dripper.engines.tagger.learnt import LEARNT, Learnt, Site
from scrapy_dripper.engines.tagger.model import GRAPHS, MANIFEST, Model
from scrapy_dripper.replace import replace_file
from scrapy_dripper.workshop.dataset.bootstrap import Interval, paired_interval
from scrapy_dripper.workshop.dataset.sets import TRAINING_PAGES
from scrapy_dripper.workshop.dataset.tables import markdown_table
from scrapy_dripper.workshop.learning.corrections import Correction
from scrapy_dripper.workshop.learning.learn import LEAST, Gain

NOTES = "learnt"
"""Key of the manifest for the learnt sites, the number of pages, and the gain."""
CORRECTIONS = "corrections"
"""Name of the set of corrected pages in the manifest's list of training pages."""
CARD = "README.md"
_BEGIN, _END = "<!-- learnt -->\n", "<!-- end of learnt -->\n"

_CARD = """\
# Model card: tagger, with a user's corrections

This is the model that is described below, with additional weights for {count}. `scrapy-dripper learn` fitted the
weights to {pages} corrected pages. They are added to the model's log-odds. Pages of other sites have the same
probabilities as before. The weights depend on the tags, classes and ids of the elements around a block. They hold no
text of pages.

The table shows the word F1 on held-out pages, by the model as it was, and with weights that were fitted to the other
pages of the site. Sites that are left as they were did not gain, or have a single page. "Unsure" means that
the held-out pages did not gain, but that this may be by chance.

{table}

"""


def total(gains: Sequence[Gain]) -> tuple[float, float, Interval] | None:
    """Return the word F1 before and after over all held-out pages, and the 95 % interval of the difference.

    Sites that are not learnt count as unchanged. Return None if no page was held out.
    """
    pairs = [
        (old, new if gain.learnt else old)
        for gain in gains
        if gain.after
        for old, new in zip(gain.before, gain.after, strict=True)
    ]
    if not pairs:
        return None
    before, after = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    return before, after, paired_interval([new - old for old, new in pairs])


def rows(gains: Sequence[Gain]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the lines of the table of gains."""
    head = ["site", "pages", "before", "after", "gain", ""]
    body = []
    for gain in gains:
        before = f"{sum(gain.before) / len(gain.before):.3f}"
        after = f"{sum(gain.after) / len(gain.after):.3f}" if gain.after else "-"
        sure = gain.mean >= LEAST
        said = ("learnt" if sure else "learnt, unsure") if gain.learnt else "left as it was"
        body.append([gain.site, str(len(gain.before)), before, after, f"{gain.mean:+.3f}" if gain.after else "-", said])
    return head, body


def write(
    folder: Path, base: Path, sites: Mapping[str, Site], gains: Sequence[Gain], corrections: Sequence[Correction]
) -> None:
    """Write the folder of a model with the weights of sites. Weights of the base for other sites are kept.

    The same base and corrections give the same bytes. Raise OSError if a file cannot be written.
    """
    manifest = _manifest(base)
    known = Model(base).learnt
    learnt = Learnt({**(known.sites if known else {}), **sites})
    about = (base / CARD).read_text(encoding="utf-8") if (base / CARD).is_file() else ""
    about = about.partition(_END)[2] or about  # the base may itself have learnt weights
    folder.mkdir(parents=True, exist_ok=True)
    for name in GRAPHS:
        if not (folder / name).exists() or not (folder / name).samefile(base / name):
            replace_file(folder / name, (base / name).read_bytes())
    learnt.write(folder)
    figures = total(gains)
    notes = {
        "sites": sorted(sites),
        "pages": len(corrections),
        "held_word_f1": [round(value, 4) for value in figures[:2]] if figures else None,
        "base": sha256(base / MANIFEST),
    }
    seen = dict(manifest.get(TRAINING_PAGES) or {})
    seen[CORRECTIONS] = sorted({*seen.get(CORRECTIONS, ()), *(one.sha256 for one in corrections)})
    values = {
        **manifest,
        "weights_sha256": hashes(folder, (*GRAPHS, LEARNT)),
        NOTES: notes,
        TRAINING_PAGES: seen,
    }
    text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    replace_file(folder / MANIFEST, text)
    count = "1 site" if len(sites) == 1 else f"{len(sites)} sites"
    table = markdown_table(*rows(gains))
    card = _CARD.format(count=count, pages=len(corrections), table=table)
    replace_file(folder / CARD, _BEGIN + card + _END + about)


def trained_on(base: Path) -> set[str]:
    """Return the SHA-256 of the pages that the graphs of a model were trained on, as listed in its manifest.

    Corrections of the base are not included, because its graphs were not trained on them.
    """
    sets = _manifest(base).get(TRAINING_PAGES)
    lists = [pages for name, pages in sets.items() if name != CORRECTIONS] if isinstance(sets, dict) else []
    return {digest for pages in lists if isinstance(pages, list) for digest in pages}


def is_ours(folder: Path) -> bool:
    """Return True if a folder was written by :func:`write`, so that it may be overwritten."""
    return (folder / MANIFEST).is_file() and isinstance(_manifest(folder).get(NOTES), dict)


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
