"""Semantic outlier removal, the method ``sore``: embed the blocks of a page, and remove those far from its core.

It is that of Akbiyik et al. 2025, *Semantic Outlier Removal with Embedding Models and LLMs*. The blocks whose meaning
is nearest to the title and the description of a page are its core. A block that is nearer to a phrase of an outlier
group than to the core, or far from the core, is removed, with its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from scrapy_dripper.characters import words_of
from scrapy_dripper.config import Config, MethodOptions, load
from scrapy_dripper.data import Extraction
from scrapy_dripper.fallback.methods import by_blocks, limited_tree
from scrapy_dripper.page import Page

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
"""The reason of a block that is far from the core."""
MOST_CHARS = 1_000
"""Number of characters of a block that are embedded. The meaning of a longer one shows in its beginning, and the memory
of an embedder grows with its longest text."""
MOST_CORE = 200
"""Maximum number of blocks of the core, so that the work is linear in the number of blocks."""


def by_sore(text: str, url: str, config: Config, size: int) -> Extraction:
    """Return a page without its semantic outliers (``sore``).

    ``details["removed"]`` has the numbers of the blocks that were removed, by reason: the name of a group, or
    :data:`FAR`. A page without title and description stays whole.
    """
    sore = _sore(config.methods.embedder, config.methods.groups)
    removed: dict[str, list[int]] = {}

    def choose(page: Page) -> npt.NDArray[np.bool_]:
        about = ". ".join(filter(None, [page.title, *page.declared.descriptions[:1]]))
        reasons = sore(page.blocks.text, about, config.methods)
        for block, reason in enumerate(reasons):
            if reason is not None:
                removed.setdefault(reason, []).append(block)
        return np.array([reason is None for reason in reasons], dtype=np.bool_)

    made = by_blocks(limited_tree(text), choose, url, config, size, labels=True)
    return made.with_details(removed=removed, work={f"removed/{reason}": len(removed[reason]) for reason in removed})


class Sore:
    """Finds outliers among the blocks of pages. The phrases are embedded once."""

    def __init__(self, embed: Embedder, groups: Iterable[tuple[str, Iterable[str]]] = ()) -> None:
        """``groups`` are in place of, or beside, those of the paper."""
        self._embed = embed
        known = {name: group.split("; ") for name, group in GROUPS.items()} | dict(groups)
        phrases = [(name, phrase) for name, group in known.items() for phrase in group]
        self._names = [name for name, _ in phrases]
        self._phrases = self._vectors([phrase for _, phrase in phrases]) if phrases else None

    def __call__(self, blocks: Sequence[str], about: str, options: MethodOptions) -> list[str | None]:
        """Return for each block the reason for which it is removed: a group, or :data:`FAR`; None if it stays.

        ``about`` is the title of the page, with its description. Without it, every block stays.
        """
        if not blocks or not about.strip():
            return [None] * len(blocks)
        metadata, *_ = vectors = self._vectors([about, *blocks])
        rows = vectors[1:]
        size = min(MOST_CORE, max(1, round(options.k * len(rows))))
        core = np.argsort(-(rows @ metadata), kind="stable")[:size]
        far = 1 - (rows @ rows[core].T).max(axis=1)
        found: list[str | None] = [FAR if distance > options.d else None for distance in far.tolist()]
        if self._phrases is not None:
            similarity = rows @ self._phrases.T
            nearest, near = similarity.argmax(axis=1), 1 - similarity.max(axis=1)
            for place in np.flatnonzero(near <= np.minimum(options.outlier, far)).tolist():
                found[place] = self._names[nearest[place]]
        for place in core.tolist():
            found[place] = None
        return guarded(found, [len(words_of(block)) for block in blocks], options.most)

    def _vectors(self, texts: Sequence[str]) -> Floats:
        """Return vectors of length 1; those of texts without a known word are zero. So the cosine distance of two is
        1 - a b.
        """
        rows = np.nan_to_num(np.asarray(self._embed([text[:MOST_CHARS] for text in texts]), dtype=np.float32))
        if rows.ndim != 2 or len(rows) != len(texts):
            raise ValueError(f"expected a vector for each of {len(texts)} texts (got an array of shape {rows.shape})")
        unit: Floats = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
        return unit


def guarded(reasons: Sequence[str | None], words: Sequence[int], most: float) -> list[str | None]:
    """Return the reasons without those that remove too much, the largest first (section 5.1: the method reverts to a
    more conservative extraction where it would remove unexpectedly large portions).

    ``words`` are the lengths of the blocks, and ``most`` is the share of all words that may be removed.
    """
    sizes: Counter[str] = Counter()
    for reason, size in zip(reasons, words, strict=True):
        if reason is not None:
            sizes[reason] += size
    while sizes and sizes.total() > most * sum(words):
        del sizes[max(sizes, key=lambda reason: sizes[reason])]
    return [reason if reason in sizes else None for reason in reasons]


@lru_cache(maxsize=4)
def _sore(embedder: str | None, groups: tuple[tuple[str, tuple[str, ...]], ...] | None) -> Sore:
    """Return the method with the embedder at a dotted path, or with WordLlama, and with groups of the settings."""
    embed = wordllama() if embedder is None else load(embedder, 'DRIPPER_METHODS["embedder"]', "texts")
    return Sore(embed, groups or ())


@lru_cache(maxsize=1)
def wordllama() -> Embedder:
    """Return the embedder of WordLlama, whose model of 256 dimensions is in its package. Nothing is downloaded."""
    import wordllama as library  # of an extra

    folder = Path(library.__file__).parent  # it looks for its tokenizer in another folder, and would download it
    embed: Embedder = library.WordLlama.load(cache_dir=folder, disable_download=True).embed
    return embed
