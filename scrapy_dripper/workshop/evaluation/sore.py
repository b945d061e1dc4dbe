"""Semantic outlier removal (SORE; Akbiyik et al. 2025, *Semantic Outlier Removal with Embedding Models and LLMs*).

The segments of a page that are most similar to its title and description are its core. A segment that is nearer to a
phrase of an outlier group than to the core, or far from the core, is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Embedder = Callable[[Sequence[str]], Floats]
"""Returns a vector for each of n texts, of shape (n, dimensions), such as a sentence encoder."""

GROUPS: Mapping[str, str] = {
    "dates": "Date; 21.02.2023; 21.02.2024; 21.02.2025; Published at; Last updated; Time; Published; Updated; "
    "dd/mm/yyyy; mm/dd/yyyy; yyyy-mm-dd; dd.mm.yy",
    "authorship": "Author; Writer; Contributor; Editor; Posts; Written by",
    "comments": "Comment; Reply; Feedback; Discussion; Leave a comment",
    "sources": "Source; Website; Publisher; URL; Link",
    "related": "Related; Read more; Look:; Similar; See also; Also read; Read next; Get more; Frequently asked "
    "questions",
    "calls to action": "CTA; Buy; Shop; Order; Click here; Check out; View more; Visit; Let me know; Download; "
    "Subscribe; Sign up; Contact us; Receive notifications",
    "navigation": "Breadcrumbs; Home >; Home > About; Navigation; Home; About",
    "contact": "Contact; Email; Phone; Address; Contact us",
    "social media": "Social; Facebook; Twitter; Instagram; LinkedIn; TikTok; Share; Like; Follow; 3425 views",
    "legal": "Legal; Terms; Privacy; Policy; Disclaimer; Cookie; Accept; Settings",
    "infrastructure": "Footer; Copyright; All rights reserved; Search; Find; Look for; Explore; Error; 404; Not found; "
    "Page not found; Try again later",
    "commercial": "Advertisement; Sponsored; Promotion; Sponsor; Subscription; Subscribe; Newsletter; Membership; "
    "Join; Affiliate; Affiliate links; Disclosure; Affiliate Disclosure",
    "other": "Refresh this page; Login required; License; Enter your email; Thank you for reading; Subscribe for free",
}
"""The phrases of the paper's outlier groups (A.2)."""
FAR = "too irrelevant"


class SoreSettings(NamedTuple):
    """The parameters of the method, with the paper's values."""

    core: float = 0.2
    """Share of the segments that are the core."""
    cutoff: float = 0.8
    """Distance from the core over which a segment is removed."""
    outlier: float = 0.2
    """Distance to an outlier phrase under which a segment is removed, if the core is not nearer."""


class Sore:
    """Finds outliers among the segments of pages. The phrases are embedded once."""

    def __init__(self, embed: Embedder, settings: SoreSettings | None = None) -> None:
        self._embed, self._settings = embed, settings or SoreSettings()
        phrases = [(name, phrase) for name, group in GROUPS.items() for phrase in group.split("; ")]
        self._names = [name for name, _ in phrases]
        self._phrases = _unit(embed([phrase for _, phrase in phrases]))

    def __call__(self, segments: Sequence[str], metadata: str) -> list[str | None]:
        """Return for each segment the group that it belongs to, or :data:`FAR`; None if it stays.

        ``metadata`` is the title of the page, with its description. Without it, every segment stays.
        """
        if not segments or not metadata.strip():
            return [None] * len(segments)
        core_share, cutoff, outlier = self._settings
        about, *_ = vectors = _unit(self._embed([metadata, *segments]))
        rows = vectors[1:]
        size = max(1, round(core_share * len(rows)))
        core = np.argsort(-(rows @ about), kind="stable")[:size]
        far = 1 - (rows @ rows[core].T).max(axis=1)
        similarity = rows @ self._phrases.T
        nearest, near = similarity.argmax(axis=1), 1 - similarity.max(axis=1)
        found: list[str | None] = [
            self._names[phrase] if near_by <= min(outlier, from_core) else FAR if from_core > cutoff else None
            for phrase, near_by, from_core in zip(nearest.tolist(), near.tolist(), far.tolist(), strict=True)
        ]
        for place in core.tolist():
            found[place] = None
        return found


def _unit(vectors: Floats) -> Floats:
    """Return vectors of length 1; zeros stay zeros. The cosine distance of two is 1 - a b."""
    rows = np.asarray(vectors, dtype=np.float32)
    unit: Floats = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return unit
