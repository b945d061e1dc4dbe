"""The templates of hosts. A template is a cluster of pages with similar layouts, with the rules that it has learnt from
the model's labels.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import numpy as np

from scrapy_dripper.sites.columns import Floats, MemoryFileError, Tally, read_file, write_file
from scrapy_dripper.sites.memory import LONGEST_HEAD, host_of
from scrapy_dripper.sites.places import SIZE, alike
from scrapy_dripper.sites.template import ALIKE, Lesson, TemplateRules, pack_rules, read_lesson

MOST_HOSTS = 256
"""Maximum number of hosts with templates. A new host replaces the least recently seen one."""
MOST_TEMPLATES = 12
"""Maximum number of templates of a host. A new one replaces the least recently seen one that does not answer. If all
answer, it replaces the least recently seen one. So single odd pages do not replace a template of many pages."""
MOST_RULES = 1_024
"""Maximum number of places and texts of a template. Those seen on the fewest pages are removed first, the oldest before
the others.
"""
KEPT_RULES = 768
"""Number of places and texts of a template that remain after a removal."""
BYTES_PER_HOST = MOST_TEMPLATES * (MOST_RULES * Tally.BYTES + 4 * SIZE)
"""Maximum size of the arrays of a host, in bytes."""
MOST_PAGES = 128
"""After this number of pages, all counts of a template are halved, so that it adapts to changes of the site."""
LEAST = 2
"""Minimum number of pages on which a place or a text must have been seen to become a rule."""
CHECKS = 2
"""Number of checks in a row in which a template must agree with the model before it answers."""
AGREED = 0.98
"""Minimum F1, by characters, of the template's and the model's main text in a check, to count as agreement."""
FAILED = 0.8
"""If the F1 in an audit is below this value, the template is forgotten, and learnt again from scratch."""
REFUSED = 12
"""A template is forgotten after this number of pages in a row that do not fit it."""
TTL = 30 * 86_400.0
"""Age in seconds at which a template is forgotten."""
AUDITED = 0.05
"""Share of pages on which the model is asked although the template could answer."""


@dataclass(slots=True, eq=False)
class Template:
    """A template and what it has learnt."""

    number: int
    born: float
    """When it was made, in seconds since 1970."""
    pages: int = 0
    """Number of pages that it has learnt from. It is halved together with the counts."""
    shortest: int = 0
    """Number of characters in the shortest main content of its pages."""
    longest: int = 0
    """Number of characters in the longest main content of its pages."""
    refused: int = 0
    """Number of the last pages in a row that did not fit it."""
    checks: tuple[float, ...] = ()
    """F1 in the last :data:`CHECKS` checks, the latest one last."""
    centroid: Floats = field(default_factory=lambda: np.zeros(SIZE, dtype=np.float32))
    tally: Tally = field(default_factory=Tally)
    """The places and texts. The sum of each is that of the shares of main text in it, and the time is ``pages``."""

    @property
    def ready(self) -> bool:
        """True if the template answers."""
        return len(self.checks) >= CHECKS and min(self.checks, default=1.0) >= AGREED

    def rules(self) -> TemplateRules:
        """Return the rules of the template, to be sent with a document."""
        known = self.tally.counts >= LEAST
        shares = np.rint(self.tally.sums[known] / self.tally.counts[known]).astype(np.uint8)
        centroid = np.rint(self.centroid).astype(np.uint8)
        facts = self.number, self.ready, self.shortest, self.longest
        return TemplateRules(*facts, centroid, self.tally.hashes[known], shares)

    def learn(self, lesson: Lesson) -> None:
        """Learn from a page."""
        self.centroid += (lesson.vector - self.centroid) / (self.pages + 1)
        self.shortest = min(self.shortest, lesson.length) if self.pages else lesson.length
        self.longest = max(self.longest, lesson.length)
        self.pages += 1
        hashes, first = np.unique(lesson.hashes, return_index=True)
        self.tally.add(hashes, lesson.shares[first], self.pages)
        self.tally.limit(MOST_RULES, KEPT_RULES)
        if self.pages >= MOST_PAGES:
            self.pages //= 2
            self.tally.halve()
            self.tally.last -= np.minimum(self.tally.last, np.uint32(self.pages))


class Templates:
    """The templates of hosts, for one thread at a time.

    Their size is limited to :data:`BYTES_PER_HOST` for each of :data:`MOST_HOSTS` hosts. A template answers if it has
    agreed with the model on the last pages on which both were asked. It is forgotten when it no longer agrees, when
    pages no longer fit it, or when it is too old.
    """

    def __init__(self, most_hosts: int = MOST_HOSTS, clock: Callable[[], float] = time.time) -> None:
        self._hosts: OrderedDict[str, list[Template]] = OrderedDict()
        self._packed: dict[str, bytes] = {}
        self._most, self._clock = most_hosts, clock

    def __len__(self) -> int:
        """Return the number of hosts."""
        return len(self._hosts)

    def __iter__(self) -> Iterator[tuple[str, list[Template]]]:
        """Yield the hosts with their templates, the most recently seen one last."""
        yield from self._hosts.items()

    def known(self, url: str) -> bytes:
        """Return the rules of the templates of a page's host, for :func:`~scrapy_dripper.sites.say`."""
        name = host_of(url)
        if name not in self._packed:
            templates = self._hosts.get(name)
            if not templates:
                return b""
            self._packed[name] = pack_rules([one.rules() for one in templates])
        return self._packed[name]

    def learn(self, url: str, data: bytes) -> int:
        """Learn from a page, and return the number of templates that are forgotten because of it.

        Raise ValueError if ``data`` is not what :meth:`.Said.lesson` returns.
        """
        lesson, name = read_lesson(data), host_of(url)
        if not name:
            return 0
        now = self._clock()
        before = self._hosts.get(name, [])
        own = [one for one in before if now - one.born < TTL]
        found = _of_lesson(own, lesson)
        if found is not None and not _holds(found, lesson):
            own.remove(found)
            found = None
        dropped = len(before) - len(own)
        if not lesson.outcome.is_answer:
            if found is None:
                found = Template(_number(before), now)
                own = [*_with_room(own), found]
            found.learn(lesson)
        if found is not None:  # it is now the most recently seen one
            own.remove(found)
            own.append(found)
        self.put(name, own, same=lesson.outcome.is_answer and not dropped)
        return dropped

    def put(self, name: str, templates: list[Template], *, same: bool = False) -> None:
        """Set the templates of a host, and make it the most recently seen one. ``same`` says that their rules have not
        changed.
        """
        if not same:
            self._packed.pop(name, None)
        self._hosts[name] = templates
        self._hosts.move_to_end(name)
        while len(self._hosts) > self._most:
            self._packed.pop(self._hosts.popitem(last=False)[0], None)


def write_templates(known: Templates, path: Path) -> None:
    """Write templates to a file, as :func:`~scrapy_dripper.sites.write` does."""
    rows = [
        [name, [[one.number, one.born, one.pages, one.shortest, one.longest, one.refused, one.checks] for one in own]]
        for name, own in known
    ]
    columns = [column for _, own in known for one in own for column in (one.centroid, *one.tally.columns)]
    write_file(path, rows, columns)


def read_templates(path: Path) -> Templates:
    """Return the templates in a file, or none if there is no file. Raise MemoryFileError if the file cannot be used."""
    found = Templates()
    try:
        rows, columns = read_file(path, MOST_HOSTS * BYTES_PER_HOST + LONGEST_HEAD)
        left = iter(columns)
        for name, templates in rows:
            own = []
            for number, born, pages, shortest, longest, refused, checks in templates:
                centroid, *tally = islice(left, 5)
                facts = int(number), float(born), int(pages), int(shortest), int(longest), int(refused)
                own.append(Template(*facts, tuple(map(float, checks)), centroid, Tally(*tally)))
                if len(centroid) != SIZE or len(tally[0]) > MOST_RULES or len(checks) > CHECKS:
                    raise ValueError("a template exceeds a limit")
            if len(own) > MOST_TEMPLATES:
                raise ValueError("a host exceeds a limit")
            found.put(str(name), own)
    except MemoryFileError:
        raise
    except (ValueError, TypeError, IndexError) as error:
        raise MemoryFileError(f"{path} is not a file of templates of this version ({error})") from None
    return found


def _with_room(own: list[Template]) -> list[Template]:
    """Return the templates of a host. If it has the maximum number, remove one to make room."""
    if len(own) < MOST_TEMPLATES:
        return own
    out = next((one for one in own if not one.ready), own[0])
    return [one for one in own if one is not out]


def _number(own: list[Template]) -> int:
    """Return a number for a new template of a host: the highest number of its templates, plus one."""
    return max((one.number for one in own), default=0) % 0xFFFF + 1


def _of_lesson(own: list[Template], lesson: Lesson) -> Template | None:
    """Return the template of a page, or None if the page is the first of its kind."""
    for one in own:
        if one.number == lesson.number:
            return one
    if lesson.outcome.is_answer:
        return None
    # There was no template when the page was sent, but there may be one by now.
    best = max(own, key=lambda one: alike(lesson.vector, one.centroid), default=None)
    return best if best is not None and alike(lesson.vector, best.centroid) >= ALIKE else None


def _holds(one: Template, lesson: Lesson) -> bool:
    """Record the outcome of a page for its template. Return False if the template has to be forgotten."""
    if lesson.number != one.number:
        return True
    one.refused = one.refused + 1 if lesson.outcome.is_refusal else 0
    if lesson.outcome.is_check:
        was_ready = one.ready
        one.checks = (*one.checks, lesson.agreed)[-CHECKS:]
        if was_ready and lesson.agreed < FAILED:
            return False
    return one.refused < REFUSED


def is_audited(url: str) -> bool:
    """Return True for a share of :data:`AUDITED` of all URLs. It only depends on the URL, so the order of pages does
    not matter.
    """
    data = blake2b(url.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(data, "big") < AUDITED * 2**32
