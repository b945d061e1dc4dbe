"""Weights that were learnt from a user's corrections. On pages of these sites, they are added to a block's log-odds.

The graphs of the model do not change. Pages of other sites have bit for bit the same probabilities as with the original
model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines import files
from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.tagger.places import PLACES, Doubles, Places, Vocabulary
from scrapy_dripper.page.page import Page
from scrapy_dripper.replace import replace_file
from scrapy_dripper.rules import hosts_of

LEARNT = "learnt.json"
"""The file of a model folder that holds the weights."""
FORMAT = 1
DIGITS = 3
"""Number of decimals of a stored weight. Smaller weights become 0."""
EDGE = 1e-5
"""Probabilities of the model are first clipped to this distance from 0 and 1."""
TRUST = 0.6
"""Factor for the model's log-odds on a corrected site, where the model is too confident."""
_RESTORE = "restore the model folder, or learn again"

Floats = npt.NDArray[np.float32]


def trusted(probabilities: Floats) -> Doubles:
    """Return the model's probabilities as log-odds, reduced by :data:`TRUST`, for a corrected site."""
    p = np.clip(probabilities.astype(np.float64), EDGE, 1 - EDGE)
    odds: Doubles = TRUST * np.log(p / (1 - p))
    return odds


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """The weights that were learnt for the pages of a site."""

    vocabulary: Vocabulary
    weights: Doubles
    """A flat column, as described in :class:`~scrapy_dripper.engines.tagger.places.Places`."""

    @classmethod
    def of(cls, value: Any) -> Site:
        """Read a site from a JSON value. Raise KeyError, TypeError, ValueError or AttributeError if it is damaged."""
        names = value["names"]
        rows = [[files.finite(weight) for weight in row] for row in names.values()]
        if any(len(row) != len(PLACES) for row in rows):
            raise ValueError(f"expected {len(PLACES)} weights for each name")
        columns = np.array(rows, dtype=np.float64).reshape(len(rows), len(PLACES)).T
        weights = np.append(columns.ravel(), files.finite(value["all"]))
        return cls({name: i for i, name in enumerate(names)}, weights)

    def written(self) -> dict[str, Any]:
        """Return the site as a JSON value. Names whose weights are too small to matter are left out."""
        rounded = np.round(self.weights, DIGITS) + 0.0  # no negative zero
        rows = rounded[:-1].reshape(len(PLACES), -1).T
        return {
            "all": rounded[-1],
            "names": {name: rows[i].tolist() for name, i in sorted(self.vocabulary.items()) if rows[i].any()},
        }

    def corrected(self, page: Page, probabilities: Floats) -> Floats:
        """Return the corrected probabilities of the n blocks of a page, of shape (n,)."""
        odds = trusted(probabilities) + Places.of(page, self.vocabulary).odds(self.weights)
        corrected: Floats = np.reciprocal(1 + np.exp(-np.clip(odds, -500, 500))).astype(np.float32)
        return corrected


class Learnt:
    """The learnt weights of sites, by host. A host includes its subdomains."""

    def __init__(self, sites: Mapping[str, Site]) -> None:
        self.sites = dict(sites)

    @classmethod
    def read(cls, folder: Path) -> Learnt:
        """Read the file of a model folder. Raise ModelError if it is damaged or has another format."""
        value = files.read_json(folder, LEARNT, _RESTORE)
        try:
            if value["format"] != FORMAT:
                raise ValueError(f"expected format {FORMAT} (got {value['format']!r})")
            return cls({str(host): Site.of(site) for host, site in value["sites"].items()})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            path = folder / LEARNT
            raise ModelError(f"{path} is damaged ({type(error).__name__}: {error}): {_RESTORE}") from None

    def write(self, folder: Path) -> None:
        """Write the file of a model folder. The same weights give the same bytes."""
        sites = {host: site.written() for host, site in sorted(self.sites.items())}
        text = json.dumps({"format": FORMAT, "places": PLACES, "sites": sites}, separators=(",", ":"))
        replace_file(folder / LEARNT, text + "\n")

    def site_of(self, url: str) -> Site | None:
        """Return the weights for the site of a URL, or None if there are none."""
        return next((site for host in hosts_of(url) if (site := self.sites.get(host))), None)

    def corrected(self, pages: Sequence[Page], probabilities: Floats, edges: npt.NDArray[np.int64]) -> Floats:
        """Return the corrected probabilities of the n blocks of a batch, of shape (n,).

        ``edges`` are the first block of each page, followed by n.
        """
        found = [self.site_of(page.url) for page in pages]
        if not any(found):
            return probabilities
        result: Floats = probabilities.copy()
        for page, site, (a, b) in zip(pages, found, pairwise(edges.tolist()), strict=True):
            if site is not None:
                result[a:b] = site.corrected(page, probabilities[a:b])
        return result
