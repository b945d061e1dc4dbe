"""Pages with ground truth, and folds of them."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.rules import host_of
from scrapy_dripper_lab.folds import grouped_folds
from scrapy_dripper_lab.sets import DataError, SetChoice, load_pages, load_set, page_type_of
from tests.learning.pages import write_annotated

PAGES: dict[str, dict[str, Any]] = {
    "0002": {
        "url": "https://www.Example.com/b",
        "_internal": {"page_type": {"primary": "category"}},
        "ground_truth": {
            "main_content": "Größe zählt",
            "with": ["zählt"],
            "without": ["Menu", "Cart"],
            "title": "B",
        },
        "sure": 0.6,
    },
    "0001": {"url": "http://example.com:8080/a", "_internal": {}, "ground_truth": {"main_content": None}},
    "X10": {"ground_truth": {"main_content": ""}},
}


def write(folder: Path, pages: dict[str, dict[str, Any]] = PAGES) -> Path:
    for key, document in pages.items():
        write_annotated(folder, key, f"<p>Größe {key}</p>", document)
    return folder


def test_pages_come_in_order_with_all_fields(tmp_path: Path) -> None:
    """Missing fields are those of a trusted article without content, URL or snippets."""
    first, second, third = load_pages(write(tmp_path / "data"))
    assert [first.id, second.id, third.id] == ["0001", "0002", "X10"]
    assert second.url == "https://www.Example.com/b"
    assert second.host == first.host == "example.com"
    assert second.page_type == "collection"
    assert second.truth == "Größe zählt"
    assert (second.with_snippets, second.without_snippets) == (("zählt",), ("Menu", "Cart"))
    assert (second.title, second.sure) == ("B", 0.6)
    assert (third.url, third.host, third.truth, third.title, third.page_type) == ("", "", "", "", "article")
    assert (third.with_snippets, third.without_snippets, third.sure) == ((), (), 1.0)


def test_html_is_read_when_asked_for(tmp_path: Path) -> None:
    """The page is decoded as UTF-8; invalid bytes raise no error."""
    sample = load_pages(write(tmp_path))[0]
    assert sample.read_html() == "<p>Größe 0001</p>"
    sample.path.write_bytes(b"<p>\xff</p>")
    assert sample.read_html() == "<p>\ufffd</p>"


@pytest.mark.parametrize("existing", [[], ["html"], ["ground-truth"], ["html", "ground-truth"]])
def test_missing_data_say_what_is_expected(tmp_path: Path, existing: list[str]) -> None:
    """The error names the folder and the files that it should hold."""
    folder = tmp_path / "cache" / "some-data"
    for name in existing:
        (folder / name).mkdir(parents=True)
    with pytest.raises(DataError, match=r"expected html/ID\.html") as caught:
        load_pages(folder)
    assert str(folder) in str(caught.value)


def test_an_annotation_without_its_page_is_an_error(tmp_path: Path) -> None:
    """The error names the file that was expected."""
    write(tmp_path)
    (tmp_path / "html" / "X10.html").unlink()
    with pytest.raises(DataError, match=r"expected .*X10\.html"):
        load_pages(tmp_path)


@pytest.mark.parametrize(
    ("content", "got"),
    [
        ('{"main_content": "The text."}', "expected .*main_content.* .got 'main_content'"),
        ('{"ground_truth": {"text": "The text."}}', "got 'ground_truth' with 'text' in it"),
        ('{"ground_truth": {"main_content": ["The text."]}}', "got 'ground_truth' with 'main_content' in it"),
        ('{"ground_truth": "The text."}', "got 'ground_truth'"),
        ('{"ground_truth": ["text"]}', "got 'ground_truth'"),
        ("{", "property name"),
        ("[]", "got list"),
        ('"text"', "got str"),
        ('{"sure": "very"}', "got 'sure'"),
    ],
)
def test_a_broken_annotation_is_an_error(tmp_path: Path, content: str, got: str) -> None:
    """The error names the file. A text of another shape would count as empty, and every extraction as wrong."""
    (write(tmp_path) / "ground-truth" / "0001.json").write_text(content)
    with pytest.raises(DataError, match=rf"0001\.json is not an annotation: .*{got}"):
        load_pages(tmp_path)


def test_snippets_without_a_text_are_a_page_without_main_content(tmp_path: Path) -> None:
    """Two annotations of WCXB are like that."""
    (page,) = load_pages(write(tmp_path, {"p": {"ground_truth": {"title": "T", "with": ["a"], "without": []}}}))
    assert (page.truth, page.with_snippets) == ("", ("a",))


def test_the_hash_is_of_names_and_contents_only(tmp_path: Path) -> None:
    """Folder, order, time and unrelated files do not change it."""
    one = write(tmp_path / "one")
    two = write(tmp_path / "two" / "deeper", dict(reversed(PAGES.items())))
    os.utime(two / "html" / "0001.html", (0, 0))
    (two / "notes.txt").write_text("not data")
    (two / "html" / ".hidden").write_text("not data")
    assert load_set(SetChoice(one)).sha256 == load_set(SetChoice(two)).sha256


def test_the_hash_changes_with_any_file(tmp_path: Path) -> None:
    """Any change that could change a model changes it: of a page, of an annotation, or of the names of two pages."""
    html, truth = write(tmp_path) / "html", tmp_path / "ground-truth" / "0001.json"
    hashes = [load_set(SetChoice(tmp_path)).sha256]
    first, second = ((html / f"{name}.html").read_text() for name in ("0001", "0002"))
    for path, text in ((html / "0001.html", second), (html / "0002.html", first), (truth, truth.read_text() + " ")):
        path.write_text(text)
        hashes.append(load_set(SetChoice(tmp_path)).sha256)
    assert len(set(hashes)) == 4


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://www.example.com/a?b", "example.com"),
        ("http://EXAMPLE.com:8080", "example.com"),
        ("https://user@shop.example.co.uk./", "shop.example.co.uk"),
        ("https://www.www.com", "www.com"),
        ("//example.com/a", "example.com"),
        ("example.com/a", ""),
        ("http://[", ""),
        ("", ""),
    ],
)
def test_host_of(url: str, host: str) -> None:
    """Pages of a host look alike, so ``www.``, port and case are left out."""
    assert host_of(url) == host


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, "article"),
        ({"_internal": None}, "article"),
        ({"_internal": {"page_type": {"primary": "forum"}}}, "forum"),
        ({"_internal": {"page_type": {}}}, "article"),
        ({"_internal": {"page_type": "product"}}, "product"),
        ({"_internal": {"page_type": "category"}}, "collection"),
        ({"_internal": {"page_type": None}}, "article"),
    ],
)
def test_page_type_of(document: dict[str, Any], expected: str) -> None:
    """Page types are those that WCXB's own evaluation counts."""
    assert page_type_of(document) == expected


hosts_and_types = st.lists(
    st.tuples(
        st.sampled_from(["", "a.com", "www.a.com", "b.com", "c.com", "WWW.C.com", "d.com", "e.org"]),
        st.sampled_from(["article", "forum", "product"]),
    ),
    min_size=12,
    max_size=80,
).filter(lambda pages: len({host_of(f"http://{host}") for host, _ in pages} - {""}) >= 4)


@given(hosts_and_types, st.integers(2, 4))
def test_no_host_is_in_two_folds(pages: list[tuple[str, str]], k: int) -> None:
    """Each page has one fold, no fold is empty, and all pages of a host are in the same fold."""
    hosts, types = [host for host, _ in pages], [kind for _, kind in pages]
    folds = grouped_folds(hosts, types, k)
    assert folds.shape == (len(pages),)
    assert set(folds.tolist()) == set(range(k))
    of_host = defaultdict(set)
    for host, fold in zip(hosts, folds.tolist(), strict=True):
        if host:
            of_host[host.lower().removeprefix("www.")].add(fold)
    assert all(len(found) == 1 for found in of_host.values())
    assert folds.tolist() == grouped_folds(hosts, types, k).tolist()


def test_folds_are_alike() -> None:
    """With hosts of different sizes, folds differ by one or two pages, in total and for each type."""
    hosts = [f"h{i // (1 + i % 3)}.com" for i in range(300)]
    types = [("article", "article", "forum", "product")[i % 4] for i in range(300)]
    folds = grouped_folds(hosts, types, 5).tolist()
    sizes = Counter(folds)
    assert max(sizes.values()) - min(sizes.values()) <= 3
    for kind in set(types):
        of_kind = Counter(fold for fold, other in zip(folds, types, strict=True) if other == kind)
        assert max(of_kind.values()) - min(of_kind.values()) <= 4


def test_pages_without_host_are_not_one_host() -> None:
    """Unknown hosts are spread over the folds."""
    folds = grouped_folds([""] * 10, ["article"] * 10, 5).tolist()
    assert sorted(Counter(folds).values()) == [2] * 5
