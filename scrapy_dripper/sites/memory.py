"""The memory of sites counts, in bounded space, the pages of a host on which each text and each place occur.

Texts and places are hashes. Boilerplate is text among the main blocks of a page that other pages of the site have in
the same place.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.characters import words_of
from scrapy_dripper.page.page import Bools, Flag, Page
from scrapy_dripper.page.tags import LONGEST_CLASS
from scrapy_dripper.rules import host_of

if TYPE_CHECKING:
    from lxml.html import HtmlElement

Floats = npt.NDArray[np.float32]
Hashes = npt.NDArray[np.uint64]
Column = npt.NDArray[Any]

HASH = np.dtype("<u8")
"""The data type of a hash, in the memory and in messages to worker processes."""


class Tally:
    """Hashes in ascending order, each with the number of pages that have it, a sum over these pages, and when it was
    seen last."""

    BYTES = 8 + 2 + 4 + 4
    """Size of a hash with its columns, in bytes."""

    def __init__(self) -> None:
        self.hashes: Hashes = np.zeros(0, dtype=HASH)
        self.counts: npt.NDArray[np.uint16] = np.zeros(0, dtype="<u2")
        self.sums: npt.NDArray[np.uint32] = np.zeros(0, dtype="<u4")
        self.last: npt.NDArray[np.uint32] = np.zeros(0, dtype="<u4")

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, the hashes first."""
        return self.hashes, self.counts, self.sums, self.last

    def has(self, hashes: Hashes) -> Bools:
        """Return which hashes are known."""
        at = np.searchsorted(self.hashes, hashes)
        known = at < len(self.hashes)
        known[known] = self.hashes[at[known]] == hashes[known]
        return known

    def add(self, hashes: Hashes, values: Column, time: int) -> None:
        """Count the hashes of a page, which are distinct and in ascending order, and add a value to the sum of each."""
        at, old = np.searchsorted(self.hashes, hashes), self.has(hashes)
        self.counts[at[old]] += np.uint16(1)
        self.sums[at[old]] += values[old].astype("<u4")
        self.last[at[old]] = time
        at, new = at[~old], ~old
        self.hashes = np.insert(self.hashes, at, hashes[new])
        self.counts = np.insert(self.counts, at, np.uint16(1))
        self.sums = np.insert(self.sums, at, values[new].astype("<u4"))
        self.last = np.insert(self.last, at, np.uint32(time))

    def limit(self, most: int) -> None:
        """Keep a share of ``most`` hashes if there are more: those on most pages, the latest before the others."""
        if len(self.hashes) > most:
            # The hash comes last, so that the result does not depend on the order of pages.
            self.keep(np.sort(np.lexsort((self.hashes, self.last, self.counts))[-int(KEPT * most) :]))

    def halve(self) -> None:
        """Halve all counts, and the sums with them, to forget what is rare."""
        halves = self.counts // np.uint16(2)
        self.sums = (self.sums.astype("<u8") * halves // self.counts).astype("<u4")
        self.counts = halves
        self.keep(self.counts > 0)

    def keep(self, which: Bools | npt.NDArray[np.intp]) -> None:
        """Keep some of the hashes."""
        self.hashes, self.counts, self.sums, self.last = (column[which] for column in self.columns)


PLACE_ELEMENTS = 3
"""Number of elements that define a place: that of the block and the nearest ones around it."""
PLACE_BITS = np.uint64(32)
"""Number of the lower bits of a hash, which identify the text. The upper bits identify the place."""
PAGE_TEXTS = 1_000
"""Maximum number of distinct texts in the hashes of a page. Most pages have a few hundred."""
MOST_HOSTS = 512
"""Maximum number of hosts in a memory. The least recently seen one is evicted first."""
MOST_TEXTS = 4_096
"""Maximum number of texts of a host. Those on the fewest pages are evicted first, the oldest before the others."""
MOST_PAGES = 1_024
"""Number of pages of a host that are recognised if they occur again. After the same number of pages, all counts are
halved, so that the memory adapts to changes of the site."""
MOST_PLACES = 1_024
"""Maximum number of places of a host. Those on the fewest pages are evicted first, with their texts."""
KEPT = 0.75
"""Share of the texts, or the places, of a host that remain after an eviction."""
BYTES_PER_HOST = (MOST_TEXTS + MOST_PLACES) * Tally.BYTES + MOST_PAGES * HASH.itemsize
"""Maximum size of the arrays of a host, in bytes."""
REPETITIVE = 0.9
"""A place is one for boilerplate if at least this share of its texts, counted once per page, is on more than one page.
In the places of a page's own text, most texts are on one page only. Versions of a page with few new texts are copies
(:data:`SAME_PAGE`), and are not counted.
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
SAME_PAGE = 0.8
"""If at least this share of the main texts of a page is known, the page is a copy of one seen before."""
REPEATED_AROUND = 0.8
"""Minimum share of repeated text in the element around a block. A theme repeats whole elements. If an author repeats a
sentence or a heading, the text around it is new. An element of a single block that has a class of its own, and no
heading, is one of the theme as well."""
LEAST_WORDS = 60
"""Minimum number of words of main content that must remain. With fewer words, the page is a copy of others."""
LEAST_SHARE = 0.1
"""Minimum share of the words of main content that must remain."""
MOST_WORDS_ABOVE = 60
"""Maximum number of words of boilerplate above the page's own text, such as a notice. Words in a ``<nav>`` do not
count. Longer repeated text is an article that lists of the site show in full. It is the main content of this page, even
if comments follow.
"""
OWN_WORDS = 10
"""Minimum number of words in a text, as opposed to a date or a label."""

_digit = re.compile(r"\d").search


def places(page: Page) -> Hashes:
    """Return a hash of the place and the text of each of a page's n blocks, of shape (n,).

    The place consists of the tags and classes of the block's element and the two elements around it. A headline is thus
    in another place than a link to it in a list. Class names with digits are left out, because many of them identify
    the page. The upper half of the bits identifies the place (:data:`PLACE_BITS`), so that its texts can be found.
    """
    tree = page.tree
    parents, tag_classes = tree.parent.tolist(), tree.tag_class.tolist()
    names: dict[int, bytes] = {}
    of_context: dict[int, bytes] = {}
    found = []
    for text, context in zip(page.blocks.text, page.blocks.context.tolist(), strict=True):
        if context not in of_context:
            parts, node = [], context
            for _ in range(PLACE_ELEMENTS):
                if node < 0:
                    break
                own = tag_classes[node]
                if own not in names:
                    names[own] = name_of(tree.nodes[node])
                parts.append(names[own])
                node = parents[node]
            of_context[context] = _half(b"".join(parts))
        # A hash is little-endian, so the lower half comes first.
        found += [_half(text.encode("utf-8", "surrogatepass")), of_context[context]]
    return np.frombuffer(b"".join(found), dtype=HASH)


def _half(data: bytes) -> bytes:
    return blake2b(data, digest_size=HASH.itemsize // 2).digest()


def name_of(node: HtmlElement) -> bytes:
    """Return the tag and the classes of an element. Classes with digits are left out, because many identify a page."""
    own = (name for name in (node.get("class") or "")[:LONGEST_CLASS].split() if not _digit(name))
    return f"{node.tag} {' '.join(own)}\n".encode("utf-8", "surrogatepass")


def packed_hashes(found: Hashes, main: Bools) -> bytes:
    """Return what :meth:`SiteMemory.learn` needs: the number of main hashes, the main hashes, and the others.

    Both arrays have shape (n,). They hold each hash once.
    """
    own = set(found[main].tolist())  # a few hundred, for which sets are faster than arrays
    kept = sorted(own)[:PAGE_TEXTS]
    others = sorted(set(found.tolist()) - own)[: PAGE_TEXTS - len(kept)]
    return np.array([len(kept), *kept, *others], dtype=HASH).tobytes()


def hashes(data: bytes) -> Hashes:
    """Return the hashes that bytes hold. Raise ValueError for an invalid size."""
    return np.frombuffer(data, dtype=HASH)


def unpacked_hashes(data: bytes) -> tuple[Hashes, Hashes]:
    """Return the main hashes of packed hashes, and the others. Raise ValueError if the data are invalid."""
    values = hashes(data)
    if not len(values) or not int(values[0]) < len(values) <= PAGE_TEXTS + 1:
        raise ValueError(f"expected the hashes of a page (got {len(data):,} bytes)")
    main = int(values[0])
    return values[1 : 1 + main], values[1 + main :]


class Host:
    """The texts of one host and all of their places, and the pages seen last."""

    def __init__(self) -> None:
        self.pages = 0
        """Number of counted pages. It is halved together with the counts."""
        self.clock = 0
        self.texts, self.places = Tally(), Tally()
        """The sum of a place is its number of distinct texts. Texts that have been evicted are included."""
        self.seen: Hashes = np.zeros(0, dtype=HASH)
        """Hashes of the URLs of the last pages, the latest one last."""

    def repeated(self, page: np.uint64) -> Hashes:
        """Return the hashes of the repeated texts, for a page whose URL has the hash ``page``."""
        again = bool((self.seen == page).any())  # the page itself does not count
        twice = self.texts.counts > 1
        texts, counts = self.texts.hashes[twice], self.texts.counts[twice]
        at = np.searchsorted(self.places.hashes, texts >> PLACE_BITS)
        shared = np.bincount(at, weights=counts, minlength=len(self.places.hashes))
        repetitive = shared >= REPETITIVE * self.places.sums
        known = self.places.counts >= KNOWN_PLACE + again
        least = np.maximum(np.where(known, REPEATED_SOONER, REPEATED) + again, REPEATED_SHARE * self.pages)
        repeated: Hashes = texts[repetitive[at] & (counts >= least[at])]
        return repeated

    def learn(self, page: np.uint64, main: Hashes, others: Hashes) -> bool:
        """Count the texts of a page and return True. Return False if it was seen before, at this or another URL."""
        again = bool((self.seen == page).any())
        if not again:
            self.seen = np.append(self.seen, page)[-MOST_PAGES:]
        if again or (len(main) and self.texts.has(main).mean() >= SAME_PAGE):
            return False
        self.clock += 1
        self.pages += 1
        texts = np.unique(np.concatenate([main, others]))
        self.places.add(*np.unique(texts >> PLACE_BITS, return_counts=True), self.clock)
        self.texts.add(texts, np.zeros(len(texts)), self.clock)
        self.places.limit(MOST_PLACES)
        if self.pages >= MOST_PAGES:
            self.pages //= 2
            self.texts.halve()
            self.places.halve()
        self.texts.keep(np.isin(self.texts.hashes >> PLACE_BITS, self.places.hashes))
        self.texts.limit(MOST_TEXTS)
        return True


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

    def repeated(self, url: str) -> bytes:
        """Return the hashes of the texts that the site of a page repeats, for :func:`.boilerplate`."""
        host = self._hosts.get(host_of(url))
        return b"" if host is None else host.repeated(_address(url)).tobytes()

    def learn(self, url: str, packed: bytes) -> bool:
        """Count the texts of a page, and return True.

        Return False if the page was seen before, at this URL or another one (a print version, other parameters), or if
        its URL has no host. Raise ValueError if ``packed`` is not the result of :func:`packed_hashes`.
        """
        name = host_of(url)
        main, others = unpacked_hashes(packed)
        if not name:
            return False
        host = self._hosts.setdefault(name, Host())
        self._hosts.move_to_end(name)
        if len(self._hosts) > self._most:
            self._hosts.popitem(last=False)
        return host.learn(_address(url), main, others)


def _address(url: str) -> np.uint64:
    """Return the hash of a URL without its fragment."""
    data = blake2b(url.partition("#")[0].encode("utf-8", "surrogatepass"), digest_size=HASH.itemsize).digest()
    address: np.uint64 = np.frombuffer(data, dtype=HASH)[0]
    return address


def _is_box(page: Page, block: int, holder: int) -> bool:
    """Return True if the theme names the element of a block, which is below the one that holds other blocks as well."""
    node = int(page.blocks.context[block])
    if page.tree.flags[node] & Flag.HEADING:
        return False
    while node != holder and b" " not in name_of(page.tree.nodes[node]).strip():
        node = int(page.tree.parent[node])
    return node != holder


def boilerplate(page: Page, main: Bools, found: Hashes, repeated_texts: Hashes) -> Bools:
    """Return which main blocks are boilerplate of the site. All arrays but ``repeated_texts`` have shape (n,).

    ``found`` is the result of :func:`places`, and ``repeated_texts`` has the hashes from :meth:`SiteMemory.repeated`.
    """
    none = np.zeros(len(main), dtype=np.bool_)
    repeated = np.isin(found, repeated_texts)
    if not (repeated & main).any():
        return none
    chars = page.blocks.chars()
    of_all, of_repeated = (np.cumsum(np.append(0, sizes)).tolist() for sizes in (chars, chars * repeated))
    words = np.zeros(len(main), dtype=np.int64)
    for i in np.flatnonzero(main).tolist():
        words[i] = len(words_of(page.blocks.text[i]))
    taken = none.copy()
    for i in np.flatnonzero(repeated & main).tolist():
        holder = page.holder(i)
        first, end = (
            (int(page.tree.block_start[holder]), int(page.tree.block_end[holder])) if holder >= 0 else (i, i + 1)
        )
        around = of_repeated[end] - of_repeated[first] >= REPEATED_AROUND * (of_all[end] - of_all[first])
        taken[i] = around or (words[i] >= OWN_WORDS and _is_box(page, i, holder))
    whole = words.sum()
    own = np.flatnonzero(main & ~repeated & (words >= OWN_WORDS))
    above = slice(own[0] if len(own) else None)
    navigation = (page.tree.flags[page.blocks.context] & Flag.NAV) > 0
    if words[above][taken[above] & ~navigation[above]].sum() > MOST_WORDS_ABOVE:
        taken[above] = False
    left = whole - words[taken].sum()
    return taken if left >= max(LEAST_WORDS, LEAST_SHARE * whole) else none


@dataclass(frozen=True, slots=True, eq=False)
class Repeated:
    """The texts of a page at their places, and those that other pages of its site repeat."""

    page: Page
    found: Hashes
    repeated: Hashes

    def among(self, main: Bools) -> Bools:
        """Return which main blocks are boilerplate."""
        return boilerplate(self.page, main, self.found, self.repeated)

    def packed_hashes(self, main: Bools) -> bytes:
        """Return what the site memory learns from the page."""
        return packed_hashes(self.found, main)
