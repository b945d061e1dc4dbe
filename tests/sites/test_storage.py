"""Site memories and templates on disk are restored exactly, and the files are never incomplete."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_dripper.sites import MemoryFileError, SiteMemory, digest, read, read_templates, write, write_templates
from scrapy_dripper.sites import memory as module
from scrapy_dripper.sites.memory import read_file, write_file
from tests.sites.site import Reader, article, url

VISITS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.sets(st.integers(0, 30), max_size=9)))


def filled(visits: list[tuple[str, int, set[int]]]) -> SiteMemory:
    site = SiteMemory()
    for host, number, texts in visits:
        site.learn(f"https://{host}.org/{number}", page(texts, 2))
    return site


def page(texts: set[int], every: int) -> bytes:
    """Return the digest of a page with texts in five places. Every second, third, ... text is main content."""
    found = np.array([(text % 5) << 32 | text for text in sorted(texts)], dtype=np.uint64)
    return digest(found, found % every == 0)


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
    write(site, path)
    again = read(path)

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
    write_templates(reader.templates, path)
    again = Reader(templates=read_templates(path))

    assert again.templates.known(url(0)) == reader.templates.known(url(0))
    pages = [(article(number), url(number)) for number in after]
    assert again.outcomes(pages) == reader.outcomes(pages)
    assert again.templates.known(url(0)) == reader.templates.known(url(0))


def test_no_file_is_an_empty_memory(tmp_path: Path) -> None:
    assert len(read(tmp_path / "sites")) == len(read_templates(tmp_path / "sites")) == 0


@pytest.mark.parametrize("change", ["cut", "flipped", "memory", "many", "text"])
def test_a_broken_file_of_templates_says_so(tmp_path: Path, change: str) -> None:
    """Other invalid files are that of a site memory, and one with more templates than the maximum."""
    path = tmp_path / "templates"
    write_templates(Reader().learnt().templates, path)
    data = path.read_bytes()
    if change == "memory":
        write(filled([("a", i, {1, 2, 10 + i}) for i in range(5)]), path)
    elif change == "many":
        rows, columns = read_file(path, 10**8)
        rows[0][1] *= 99
        write_file(path, rows, columns * 99)
    else:
        changed = {"cut": data[:-3], "flipped": data[:-1] + bytes([data[-1] ^ 1]), "text": b"not templates\n"}
        path.write_bytes(changed[change])

    with pytest.raises(MemoryFileError, match="templates is not a file of templates of this version"):
        read_templates(path)


@pytest.mark.parametrize("change", ["cut", "longer", "flipped", "version", "empty", "text", "places", "columns"])
def test_a_broken_file_says_so(tmp_path: Path, change: str) -> None:
    path = tmp_path / "sites"
    write(filled([("a", i, {1, 2, 10 + i}) for i in range(5)]), path)
    data = path.read_bytes()
    rows, columns = read_file(path, 10**8)
    changed = {
        "cut": data[:-3],
        "longer": data + b"\0" * 8,
        "flipped": data[:-1] + bytes([data[-1] ^ 1]),
        "version": b"2" + data[1:],
        "empty": b"",
        "text": b"not a memory\n",
    }
    if change == "places":  # texts in places that the host does not have
        write_file(path, rows, [*columns[:4], *(column[:0] for column in columns[4:8]), columns[8]])
    elif change == "columns":
        write_file(path, rows, columns[:-1])
    else:
        path.write_bytes(changed[change])

    with pytest.raises(MemoryFileError, match="sites is not a site memory of this version"):
        read(path)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An example is a full disk. No temporary file is left."""
    path = tmp_path / "sites"
    old = filled([("a", 1, {1, 2})])
    write(old, path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write(filled([("b", 1, {1, 2})]), path)

    assert told(read(path)) == told(old)
    assert [file.name for file in tmp_path.iterdir()] == ["sites"]
