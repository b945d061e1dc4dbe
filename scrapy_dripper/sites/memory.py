"""The memory of sites, which counts in bounded space on how many pages of a host each text and each place occur."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from scrapy_dripper.sites.places import HASH, PLACE, Hashes, parts_of

Counts = npt.NDArray[np.uint16]
Bools = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]

MOST_HOSTS = 512
"""Maximum number of hosts in a memory. The least recently seen one is evicted first."""
MOST_TEXTS = 4_096
"""Maximum number of texts of a host. Those on the fewest pages are evicted first, the oldest before the others."""
KEPT_TEXTS = 3_072
"""Number of texts of a host that remain after an eviction."""
MOST_PAGES = 1_024
"""Number of pages of a host that are recognised if they occur again. After the same number of pages, all counts are
halved, so that the memory adapts to changes of the site."""
MOST_PLACES = 1_024
"""Maximum number of places of a host. Those on the fewest pages are evicted first, with their texts."""
KEPT_PLACES = 768
"""Number of places of a host that remain after an eviction."""
BYTES_PER_HOST = MOST_TEXTS * (8 + 2 + 4) + MOST_PLACES * (8 + 2 + 4) + MOST_PAGES * 8
"""Maximum size of the arrays of a host, in bytes."""
REPETITIVE = 0.9
"""A place is one for furniture if at least this share of its texts, counted once per page, is on more than one page. In
the places of a page's own text, most texts are on one page only. Versions of a page with few new texts are copies
(:data:`SAME`), and are not counted.
"""
REPEATED = 3
"""Minimum number of other pages on which a repeated text occurs."""
REPEATED_SOONER = 2
"""The same number for a place on at least :data:`KNOWN_PLACE` other pages, such as a box in several languages.
"""
KNOWN_PLACE = 5
"""Minimum number of other pages with a place for :data:`REPEATED_SOONER` to apply."""
REPEATED_SHARE = 0.2
"""Minimum share of the seen pages of the host on which a repeated text occurs."""
SAME = 0.8
"""If at least this share of the main texts of a page is known, the page is a copy of one seen before."""

_LONGEST_HOST = 253
"""Maximum length of a host name, in characters (RFC 1035)."""


@dataclass(slots=True, eq=False)
class Host:
    """The texts of one host and all of their places, as columns sorted by hash, and the pages seen last."""

    pages: int = 0
    """Number of counted pages. It is halved together with the counts."""
    texts: Hashes = field(default_factory=lambda: np.zeros(0, dtype=HASH))
    counts: Counts = field(default_factory=lambda: np.zeros(0, dtype=np.uint16))
    """Number of pages with each text."""
    last: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, dtype=np.uint32))
    """The value of ``clock`` when each text was last seen."""
    clock: int = 0
    seen: Hashes = field(default_factory=lambda: np.zeros(0, dtype=HASH))
    """Hashes of the URLs of the last pages, the latest one last."""
    places: Hashes = field(default_factory=lambda: np.zeros(0, dtype=HASH))
    """Hashes of the places."""
    place_counts: Counts = field(default_factory=lambda: np.zeros(0, dtype=np.uint16))
    """Number of pages with each place."""
    place_texts: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, dtype=np.uint32))
    """Number of distinct texts in each place, summed over the pages. Texts that have been evicted are included."""

    def repeated(self, page: np.uint64) -> Hashes:
        """Return the hashes of the repeated texts, for a page whose URL has the hash ``page``."""
        again = bool((self.seen == page).any())  # the page itself does not count
        twice = self.counts > 1
        texts, counts = self.texts[twice], self.counts[twice]
        at = np.searchsorted(self.places, texts >> PLACE)
        shared = np.bincount(at, weights=counts, minlength=len(self.places))
        repetitive = shared >= REPETITIVE * self.place_texts
        known = self.place_counts >= KNOWN_PLACE + again
        least = np.maximum(np.where(known, REPEATED_SOONER, REPEATED) + again, REPEATED_SHARE * self.pages)
        repeated: Hashes = texts[repetitive[at] & (counts >= least[at])]
        return repeated

    def learn(self, page: np.uint64, main: Hashes, others: Hashes) -> bool:
        """Count the texts of a page and return True. Return False if it was seen before, at this or another URL."""
        again = bool((self.seen == page).any())
        if not again:
            self.seen = np.append(self.seen, page)[-MOST_PAGES:]
        if again or (len(main) and _has(self.texts, main, np.searchsorted(self.texts, main)).mean() >= SAME):
            return False
        self.clock += 1
        self.pages += 1
        texts = np.unique(np.concatenate([main, others]))
        self._count_places(*np.unique(texts >> PLACE, return_counts=True))
        self._count_texts(texts)
        self._evict()
        if self.pages >= MOST_PAGES:
            self.pages //= 2
            self.counts //= np.uint16(2)
            self.place_counts //= np.uint16(2)
            self.place_texts //= np.uint32(2)
            self._keep(self.counts > 0)
            self._keep_places(self.place_counts > 0)
        return True

    def _count_places(self, places: Hashes, texts: Indices) -> None:
        """Count the places of a page, given as sorted distinct hashes with their numbers of texts."""
        at = np.searchsorted(self.places, places)
        old = _has(self.places, places, at)
        self.place_counts[at[old]] += np.uint16(1)
        self.place_texts[at[old]] += texts[old].astype(np.uint32)
        at, new = at[~old], places[~old]
        self.places = np.insert(self.places, at, new)
        self.place_counts = np.insert(self.place_counts, at, np.uint16(1))
        self.place_texts = np.insert(self.place_texts, at, texts[~old].astype(np.uint32))

    def _count_texts(self, texts: Hashes) -> None:
        """Count the texts of a page, given as sorted distinct hashes."""
        at = np.searchsorted(self.texts, texts)
        old = _has(self.texts, texts, at)
        self.counts[at[old]] += np.uint16(1)
        self.last[at[old]] = self.clock
        at, new = at[~old], texts[~old]
        self.texts = np.insert(self.texts, at, new)
        self.counts = np.insert(self.counts, at, np.uint16(1))
        self.last = np.insert(self.last, at, np.uint32(self.clock))

    def _evict(self) -> None:
        """Evict places and texts if there are too many.

        They are sorted by their columns, and by hash last, so that the result does not depend on the order of the
        columns.
        """
        if len(self.places) > MOST_PLACES:
            self._keep_places(np.sort(np.lexsort((self.places, self.place_counts))[-KEPT_PLACES:]))
        if len(self.texts) > MOST_TEXTS:
            self._keep(np.sort(np.lexsort((self.texts, self.last, self.counts))[-KEPT_TEXTS:]))

    def _keep_places(self, which: Bools | Indices) -> None:
        """Keep some places, and the texts there."""
        self.places, self.place_counts = self.places[which], self.place_counts[which]
        self.place_texts = self.place_texts[which]
        self._keep(np.isin(self.texts >> PLACE, self.places))

    def _keep(self, which: Bools | Indices) -> None:
        self.texts, self.counts, self.last = self.texts[which], self.counts[which], self.last[which]


def _has(column: Hashes, hashes: Hashes, at: Indices) -> Bools:
    """Return which hashes are in a sorted column, given their positions there."""
    if not len(column):
        return np.zeros(len(hashes), dtype=np.bool_)
    known: Bools = column[np.minimum(at, len(column) - 1)] == hashes
    return known


class SiteMemory:
    """The texts on the pages of hosts. It may be used by one thread at a time.

    Its size is limited to :data:`BYTES_PER_HOST` for each of :data:`MOST_HOSTS` hosts. It counts texts and their
    places, and no labels, so that a mistake of the model never confirms itself.
    """

    def __init__(self, most_hosts: int = MOST_HOSTS) -> None:
        self._hosts: OrderedDict[str, Host] = OrderedDict()
        self._most = most_hosts

    def __len__(self) -> int:
        """Return the number of hosts."""
        return len(self._hosts)

    def __iter__(self) -> Iterator[tuple[str, Host]]:
        """Yield the hosts with their names, the most recently seen one last."""
        yield from self._hosts.items()

    def known(self, url: str) -> bytes:
        """Return the hashes of the texts that the site of a page repeats, for :func:`.furniture`."""
        host = self._hosts.get(host_of(url))
        return b"" if host is None else host.repeated(_address(url)).tobytes()

    def learn(self, url: str, digest: bytes) -> bool:
        """Count the texts of a page, and return True.

        Return False if the page was seen before, at this URL or another one (a print version, other parameters), or if
        its URL has no host. Raise ValueError if ``digest`` is not the result of
        :func:`~scrapy_dripper.sites.places.digest`.
        """
        name = host_of(url)
        main, others = parts_of(digest)
        if not name:
            return False
        host = self._hosts.get(name)
        if host is None:
            host = Host()
        self.put(name, host)
        return host.learn(_address(url), main, others)

    def put(self, name: str, host: Host) -> None:
        """Add a host as the most recently seen one, and evict the least recently seen one if there are too many."""
        self._hosts[name] = host
        self._hosts.move_to_end(name)
        while len(self._hosts) > self._most:
            self._hosts.popitem(last=False)


def host_of(url: str) -> str:
    """Return the lower-case host of a URL without ``www.``; an empty string if it has none."""
    try:
        name = (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""
    return name if len(name) <= _LONGEST_HOST else ""


def _address(url: str) -> np.uint64:
    """Return the hash of a URL without its fragment."""
    data = blake2b(url.partition("#")[0].encode("utf-8", "surrogatepass"), digest_size=HASH.itemsize).digest()
    address: np.uint64 = np.frombuffer(data, dtype=HASH)[0]
    return address
