"""The memory of sites: on how many pages of a host each text was seen, in bounded space."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from scrapy_dripper.sites.places import HASH, Hashes, parts_of

Counts = npt.NDArray[np.uint16]

MOST_HOSTS = 512
"""Hosts in a memory. The one that was not seen for longest makes room for a new one."""
MOST_TEXTS = 4_096
"""Texts of a host. Those that were seen on the fewest pages make room for new ones, the oldest first."""
KEPT_TEXTS = 3_072
"""Texts of a host that are left when it has too many."""
MOST_PAGES = 1_024
"""Pages of a host that are recognised when they come again. After as many pages, all counts are halved, so that the
memory follows a site that changes."""
BYTES_PER_HOST = MOST_TEXTS * (8 + 2 + 4) + MOST_PAGES * 8
"""Size of the arrays of a host at most, in bytes."""
REPEATED = 3
"""Minimum number of other pages on which a text must stand to be repeated, and ..."""
REPEATED_SHARE = 0.2
"""... the minimum share of the pages seen of the host."""
SAME = 0.8
"""A page of which at least this share of the main texts is known is another address of a page seen before."""

_LONGEST_HOST = 253
"""Characters of a host name at most (RFC 1035)."""


@dataclass(slots=True, eq=False)
class Host:
    """The texts of one host, as columns that are sorted by hash, and the pages that were seen last."""

    pages: int = 0
    """Number of pages that were counted, since the counts were last halved, and half of those before."""
    texts: Hashes = field(default_factory=lambda: np.zeros(0, dtype=HASH))
    counts: Counts = field(default_factory=lambda: np.zeros(0, dtype=np.uint16))
    """Number of pages on which each text was seen."""
    last: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, dtype=np.uint32))
    """When each text was seen last, as the number of texts lists before."""
    clock: int = 0
    seen: Hashes = field(default_factory=lambda: np.zeros(0, dtype=HASH))
    """Hashes of the addresses of the last pages, the latest one last."""

    def repeated(self, page: np.uint64) -> Hashes:
        """Return the hashes of the texts that are repeated, for a page with this hash of its address."""
        least = REPEATED + bool((self.seen == page).any())  # it is not one of the other pages
        known: Hashes = self.texts[self.counts >= max(least, REPEATED_SHARE * self.pages)]
        return known

    def learn(self, page: np.uint64, main: Hashes, others: Hashes) -> bool:
        """Count the texts of a page, and return True, unless the page was seen before, at whatever address."""
        again = bool((self.seen == page).any())
        if not again:
            self.seen = np.append(self.seen, page)[-MOST_PAGES:]
        if again or (len(main) and self._has(main, np.searchsorted(self.texts, main)).mean() >= SAME):
            return False
        self.clock += 1
        self.pages += 1
        self._count(np.unique(np.concatenate([main, others])))
        if self.pages >= MOST_PAGES:
            self.pages //= 2
            self.counts //= np.uint16(2)
            self._keep(self.counts > 0)
        return True

    def _count(self, page: Hashes) -> None:
        """Count the texts of a page, sorted and each of them once."""
        at = np.searchsorted(self.texts, page)
        old = self._has(page, at)
        self.counts[at[old]] += np.uint16(1)
        self.last[at[old]] = self.clock
        at, new = at[~old], page[~old]
        self.texts = np.insert(self.texts, at, new)
        self.counts = np.insert(self.counts, at, np.uint16(1))
        self.last = np.insert(self.last, at, np.uint32(self.clock))
        if len(self.texts) > MOST_TEXTS:
            # By count, then by time, then by hash, so that what is kept depends on nothing else.
            self._keep(np.sort(np.lexsort((self.texts, self.last, self.counts))[-KEPT_TEXTS:]))

    def _has(self, page: Hashes, at: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Return which hashes are known, given where they belong."""
        if not len(self.texts):
            return np.zeros(len(page), dtype=np.bool_)
        known: npt.NDArray[np.bool_] = self.texts[np.minimum(at, len(self.texts) - 1)] == page
        return known

    def _keep(self, which: npt.NDArray[np.bool_ | np.intp]) -> None:
        self.texts, self.counts, self.last = self.texts[which], self.counts[which], self.last[which]


class SiteMemory:
    """What was seen on the pages of hosts, for one thread at a time.

    Its size is bounded: :data:`BYTES_PER_HOST` for each of :data:`MOST_HOSTS` hosts. Only texts in their places count,
    not labels, so that a mistake of the model never confirms itself.
    """

    def __init__(self, most_hosts: int = MOST_HOSTS) -> None:
        self._hosts: OrderedDict[str, Host] = OrderedDict()
        self._most = most_hosts

    def __len__(self) -> int:
        """Return the number of hosts."""
        return len(self._hosts)

    def __iter__(self) -> Iterator[tuple[str, Host]]:
        """Yield the hosts with their names, the one that was seen last at the end."""
        yield from self._hosts.items()

    def known(self, url: str) -> bytes:
        """Return the hashes of the texts that are repeated on the site of a page, for :func:`.furniture`."""
        host = self._hosts.get(host_of(url))
        return b"" if host is None else host.repeated(_address(url)).tobytes()

    def learn(self, url: str, digest: bytes) -> bool:
        """Count the texts of a page, and return True.

        Return False if the page was seen before, at this address or another one (a print version, a URL with other
        parameters), or if its URL has no host. Raise ValueError if ``digest`` is not one of
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
        """Make a host the one that was seen last. The one that was not seen for longest is forgotten if need be."""
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
