"""A site memory on disk is restored exactly, and the file is never incomplete."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_dripper.sites import MemoryFileError, SiteMemory, digest, read, storage, write

VISITS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.sets(st.integers(0, 30), max_size=9)))


def filled(visits: list[tuple[str, int, set[int]]]) -> SiteMemory:
    site = SiteMemory()
    for host, number, texts in visits:
        found = np.array(sorted(texts), dtype=np.uint64)
        site.learn(f"https://{host}.org/{number}", digest(found, found % 2 == 0))
    return site


def told(site: SiteMemory) -> list[object]:
    """Return all values in a memory."""
    return [
        (name, host.pages, host.clock, *(a.tolist() for a in (host.texts, host.counts, host.last, host.seen)))
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
        found = np.array(sorted(texts), dtype=np.uint64)
        for one in (site, again):
            one.learn(f"https://{host}.org/{number}", digest(found, found % 3 == 0))
    assert told(again) == told(site)


def test_no_file_is_an_empty_memory(tmp_path: Path) -> None:
    assert len(read(tmp_path / "sites")) == 0


@pytest.mark.parametrize("change", ["cut", "longer", "flipped", "version", "empty", "text", "many"])
def test_a_broken_file_says_so(tmp_path: Path, change: str) -> None:
    path = tmp_path / "sites"
    write(filled([("a", i, {1, 2, 10 + i}) for i in range(5)]), path)
    data = path.read_bytes()
    line, _, rest = data.partition(b"\n")
    path.write_bytes(
        {
            "cut": data[:-3],
            "longer": data + b"\0" * 8,
            "flipped": data[:-1] + bytes([data[-1] ^ 1]),
            "version": line.replace(b'"format": 1', b'"format": 9') + b"\n" + rest,
            "empty": b"",
            "text": b"not a memory\n",
            "many": line.replace(b", 5]", b", 5000000]") + b"\n" + rest,
        }[change]
    )

    with pytest.raises(MemoryFileError, match="sites is not a site memory of this version"):
        read(path)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An example is a full disk. No temporary file is left."""
    path = tmp_path / "sites"
    old = filled([("a", 1, {1, 2})])
    write(old, path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write(filled([("b", 1, {1, 2})]), path)

    assert told(read(path)) == told(old)
    assert [file.name for file in tmp_path.iterdir()] == ["sites"]
