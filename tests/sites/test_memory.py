"""The memory counts the pages of a host on which each text and each place occur, in bounded space."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.sites import memory
from scrapy_dripper.sites.memory import SiteMemory, hashes, packed_hashes, unpacked_hashes

Text = tuple[int, int]
"""The place of a text, and its number there."""

PAGE = st.sets(st.integers(0, 40), max_size=12)
PLACED = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=12)


def page(main: set[int], others: set[int] = frozenset()) -> bytes:  # type: ignore[assignment]
    """Return the hashes of a page whose blocks have these texts, each in a place of its own."""
    return placed({(text, text) for text in main}, {(text, text) for text in others})


def placed(main: set[Text], others: set[Text]) -> bytes:
    """Return the hashes of a page with texts in places."""
    found = np.array([place << 32 | text for place, text in [*sorted(main), *sorted(others)]], dtype=np.uint64)
    return packed_hashes(found, np.arange(len(found)) < len(main))


def repeated(site: SiteMemory, url: str = "https://e.org/new") -> set[int]:
    return {text for _, text in known_in_places(site, url)}


def known_in_places(site: SiteMemory, url: str = "https://e.org/new") -> set[Text]:
    return {(int(found >> 32), int(found & 0xFFFFFFFF)) for found in hashes(site.repeated(url)).tolist()}


@given(st.lists(PLACED, max_size=12))
def test_repeated_texts(pages: list[set[Text]]) -> None:
    """They are on three pages and a fifth of all, or on two if the place is on five, in a place for such texts.

    Each page counts once, however often it has a text.
    """
    site = SiteMemory()
    for number, others in enumerate(pages):
        site.learn(f"https://e.org/{number}", placed({(1000 + number, 0)}, others))

    times = Counter(text for others in pages for text in others)
    places = Counter(place for others in pages for place in {place for place, _ in others})
    of_place = {place: [n for (where, _), n in times.items() if where == place] for place in places}
    shared = {place: sum(n for n in ns if n > 1) / sum(ns) for place, ns in of_place.items()}
    assert known_in_places(site) == {
        (place, text)
        for (place, text), n in times.items()
        if n >= max(2 if places[place] >= 5 else 3, len(pages) / 5) and shared[place] >= 0.9
    }


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 10**6)), max_size=60))
def test_it_never_grows_over_its_bounds(visits: list[tuple[int, int]]) -> None:
    """For any pages, it holds at most 3 hosts here, and bounded numbers of texts and pages for each."""
    site = SiteMemory(most_hosts=3)
    for host, start in visits:
        site.learn(f"https://{host}.org/{start}", page(set(range(start, start + 900))))

    assert len(site) <= 3
    for _, one in site:
        arrays = (*one.texts.columns, *one.places.columns, one.seen)
        assert sum(array.nbytes for array in arrays) <= memory.BYTES_PER_HOST
        for column in (one.texts.hashes, one.places.hashes):
            assert (np.diff(column.astype(object)) > 0).all()  # sorted, each of them once
        assert set((one.texts.hashes >> np.uint64(32)).tolist()) <= set(one.places.hashes.tolist())


def test_the_host_that_was_not_seen_for_longest_is_forgotten() -> None:
    site = SiteMemory(most_hosts=2)
    for url in ("https://a.org/", "https://b.org/", "https://a.org/2", "https://c.org/"):
        site.learn(url, page({hash(url) % 999}))

    assert [name for name, _ in site] == ["a.org", "c.org"]


@pytest.mark.parametrize("place", [0, 1])
def test_texts_and_places_of_one_page_make_room_for_those_of_many(place: int) -> None:
    """The boilerplate of a site is kept for any number of pages, with texts in one place or in places of their own."""
    site = SiteMemory()
    for number in range(30):
        own = {(text * place, text) for text in range(1_000 * (number + 1), 1_000 * (number + 1) + 600)}
        site.learn(f"https://e.org/{number}", placed(own, {(7, text) for text in range(50)}))

    assert repeated(site) == set(range(50))


def test_evicted_texts_still_show_that_their_place_has_new_ones() -> None:
    """What an author repeats on some pages does not become boilerplate of a large site."""
    site = SiteMemory()
    for number in range(100):
        own = {(7, text) for text in range(1_000 * (number + 1), 1_000 * (number + 1) + 200)}
        site.learn(f"https://e.org/{number}", placed(own, {(7, text) for text in range(150)}))

    assert repeated(site) == set()


@pytest.mark.parametrize(
    ("urls", "pages"),
    [
        (["https://e.org/a"] * 9, 1),
        (["https://e.org/a", "https://e.org/a#top", "https://www.e.org/a?"], 1),
        ([f"https://e.org/a?utm_source={i}" for i in range(9)], 1),
    ],
)
def test_a_page_that_comes_again_is_counted_once(urls: list[str], pages: int) -> None:
    """If it is downloaded again, or has several URLs, its content does not become boilerplate."""
    site = SiteMemory()
    for i, url in enumerate(urls):
        site.learn(url, page(set(range(20)), {100 + i}))

    assert [host.pages for _, host in site] == [pages]
    assert repeated(site) == set()


def test_a_page_that_changes_is_not_counted_again() -> None:
    """An example is a news ticker that is downloaded every hour."""
    site = SiteMemory()
    learnt = [site.learn("https://e.org/live", page(set(range(i, i + 20)))) for i in range(0, 200, 10)]

    assert learnt == [True] + 19 * [False]


def test_a_page_does_not_count_as_another_page_of_its_site() -> None:
    """If the page itself was seen before, two other pages are not enough."""
    site = SiteMemory()
    for i in range(3):
        site.learn(f"https://e.org/{i}", page({10 + i}, {1}))

    assert repeated(site, "https://e.org/0") == set()
    assert repeated(site, "https://e.org/new") == {1}


def test_hosts_know_nothing_of_each_other() -> None:
    site = SiteMemory()
    for i in range(5):
        site.learn(f"https://a.org/{i}", page({10 + i}, {1}))

    assert repeated(site, "https://www.a.org/new") == {1}
    assert repeated(site, "https://b.org/new") == set()
    assert repeated(site, "") == set()


@pytest.mark.parametrize(
    "url", ["", "no url", "https:///x", "https://[broken", "data:text/html,x", f"http://{'a' * 300}/"]
)
def test_pages_without_a_host_are_not_learnt_from(url: str) -> None:
    site = SiteMemory()
    assert not site.learn(url, page({1}))
    assert len(site) == 0


def test_old_pages_count_less() -> None:
    """After a redesign of the site, its old texts are forgotten, and its new ones become known."""
    site = SiteMemory()
    for number in range(1_500):
        site.learn(f"https://e.org/{number}", page({10_000 + number}, {1}))
    for number in range(1_500, 4_500):
        site.learn(f"https://e.org/{number}", page({10_000 + number}, {2}))

    assert repeated(site) == {2}


@pytest.mark.parametrize("data", [b"", b"1234", b"\xff" * 8, (9).to_bytes(8, "little") * 3])
def test_invalid_digests(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"expected|buffer size"):
        unpacked_hashes(data)


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.booleans()), max_size=30))
def test_packed_hashes_have_each_hash_once(blocks: list[tuple[int, bool]]) -> None:
    """A text that is both main and not main counts as main."""
    found = np.array([text for text, _ in blocks], dtype=np.uint64)
    main, others = unpacked_hashes(packed_hashes(found, np.array([label for _, label in blocks], dtype=np.bool_)))

    assert main.tolist() == sorted({text for text, label in blocks if label})
    assert others.tolist() == sorted({text for text, _ in blocks} - set(main.tolist()))


def test_what_is_kept_has_the_size_that_is_documented() -> None:
    """100 kB for each of 512 hosts, and 1,000 texts of a page. What has to go makes room for a while."""
    site, large = SiteMemory(), SiteMemory()
    for number in range(600):
        site.learn(f"https://{number}.org/", page({number}))
    for number in range(5):
        large.learn("https://e.org/" + str(number), page(set(range(1_000 * number, 1_000 * number + 1_500))))
    ((_, host),) = large

    assert len(site) == 512
    assert pytest.approx(100_000, rel=0.01) == memory.BYTES_PER_HOST
    assert len(packed_hashes(np.arange(1_500, dtype=np.uint64), np.ones(1_500, dtype=np.bool_))) == 8 * 1_001
    assert len(host.places.hashes) == 768
