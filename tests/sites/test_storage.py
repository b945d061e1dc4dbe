"""Site memories and templates on disk are restored exactly, and the files are never incomplete."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_dripper.crawl.sites import load, save
from scrapy_dripper.sites.memory import SiteMemory, packed_hashes
from scrapy_dripper.sites.templates import Templates
from tests.sites.site import Reader, article, url

VISITS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.sets(st.integers(0, 30), max_size=9)))


def filled(visits: list[tuple[str, int, set[int]]]) -> SiteMemory:
    site = SiteMemory()
    for host, number, texts in visits:
        site.learn(f"https://{host}.org/{number}", page(texts, 2))
    return site


def page(texts: set[int], every: int) -> bytes:
    """Return the hashes of a page with texts in five places. Every second, third, ... text is main content."""
    found = np.array([(text % 5) << 32 | text for text in sorted(texts)], dtype=np.uint64)
    return packed_hashes(found, found % every == 0)


def told(site: SiteMemory) -> list[object]:
    """Return all values in a memory."""
    return [
        (name, host.pages, host.clock, *(a.tolist() for a in (*host.texts.columns, *host.places.columns, host.seen)))
        for name, host in site
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(VISITS, VISITS)
def test_a_restored_memory_continues_to_learn(
    tmp_path: Path, before: list[tuple[str, int, set[int]]], after: list[object]
) -> None:
    """A restored memory continues to learn as the original would."""
    path = tmp_path / "sites"
    site = filled(before)
    save(site, path)
    again = load(path, SiteMemory)

    assert told(again) == told(site)
    for host, number, texts in after:  # type: ignore[misc]
        for one in (site, again):
            one.learn(f"https://{host}.org/{number}", page(texts, 3))
    assert told(again) == told(site)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10, deadline=None)
@given(st.lists(st.integers(0, 30), max_size=8), st.lists(st.integers(0, 30), max_size=8))
def test_templates_go_on_where_they_were(tmp_path: Path, before: list[int], after: list[int]) -> None:
    """Templates that were written and read again give the same labels, and learn in the same way."""
    path = tmp_path / "templates"
    reader = Reader()
    reader.outcomes((article(number), url(number)) for number in before)
    save(reader.templates, path)
    again = Reader(templates=load(path, Templates))

    assert again.templates.rules(url(0)) == reader.templates.rules(url(0))
    pages = [(article(number), url(number)) for number in after]
    assert again.outcomes(pages) == reader.outcomes(pages)
    assert again.templates.rules(url(0)) == reader.templates.rules(url(0))


@pytest.mark.parametrize("change", ["cut", "longer", "flipped", "version", "empty", "text", "templates"])
def test_a_broken_file_says_so(tmp_path: Path, change: str) -> None:
    path = tmp_path / "sites"
    save(Templates() if change == "templates" else filled([("a", i, {1, 2, 10 + i}) for i in range(5)]), path)
    data = path.read_bytes()
    changed = {
        "cut": data[:-3],
        "longer": data + b"\0" * 8,
        "flipped": data[:-1] + bytes([data[-1] ^ 1]),
        "version": b"4" + data[1:],
        "empty": b"",
        "text": b"not a memory\n",
        "templates": data,
    }
    path.write_bytes(changed[change])

    with pytest.raises(ValueError, match="it is damaged, or not of format 6"):
        load(path, SiteMemory)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No temporary file is left."""
    path = tmp_path / "sites"
    old = filled([("a", 1, {1, 2})])
    save(old, path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        save(filled([("b", 1, {1, 2})]), path)

    assert told(load(path, SiteMemory)) == told(old)
    assert [file.name for file in tmp_path.iterdir()] == ["sites"]
