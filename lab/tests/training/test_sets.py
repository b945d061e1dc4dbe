"""Sets of pages in either layout: which pages are used for training, which model measures each, and what is
recorded.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.engines.tagger.engine import MANIFEST, bundled
from scrapy_dripper.learning import TRAINING_PAGES
from scrapy_dripper.rules import host_of
from scrapy_dripper_lab.folds import grouped_folds, load_sets, related_hosts
from scrapy_dripper_lab.sets import SITE_PAGES, DataError, SetChoice, load_pages, load_set, page_type_of
from scrapy_dripper_lab.training.measure import splits
from tests.learning.pages import write_annotated, write_listed

CHECK_ONLY = Path(__file__).with_name("check_only.sha256")
"""The first 16 digits of the SHA-256 of each page of daniel, dragnet and cleaneval."""


def record(name: str, **values: Any) -> dict[str, Any]:
    return {"id": name, "url": f"https://{name}.example/", "text": f"The text of {name}.", **values}


def listed(folder: Path, *records: dict[str, Any]) -> Path:
    for one in records:
        write_listed(folder, f"<p>{one.get('text')}</p>", one)
    return folder


def wcxb(folder: Path, *names: str) -> Path:
    for name in names:
        annotation = {"url": f"https://www.{name}.example/", "ground_truth": {"main_content": name}}
        write_annotated(folder, name, f"<p>{name}</p>", annotation)
    return folder


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pages", ("pages", "", 1.0)),
        ("mine=pages/a:0.5", ("pages/a", "mine", 0.5)),
        ("pages:0", ("pages", "", 0.0)),
        ("c:/pages", ("c:/pages", "", 1.0)),
        ("mine=c:/pages:2", ("c:/pages", "mine", 2.0)),
        *((wrong, None) for wrong in ("", "mine=", "pages:-1", "pages:nan", "mine=:1")),
    ],
)
def test_a_set_on_the_command_line(text: str, expected: tuple[str, str, float] | None) -> None:
    """Name and weight are optional, and a colon in the folder's name is not a weight. An error says what is right."""
    if expected is None:
        with pytest.raises(DataError, match=r"\[NAME=\]FOLDER\[:WEIGHT\]"):
            SetChoice.parse(text)
        return
    choice = SetChoice.parse(text)
    assert (choice.folder.as_posix(), choice.name, choice.weight) == expected


def test_only_pages_that_say_so_are_learnt_from(tmp_path: Path) -> None:
    """Pages without ``"train": true`` are only measured. Each kind has its own row."""
    folder = listed(
        tmp_path / "others",
        record("fundus-a", train=True, kind="article", language="de"),
        record("harvest-b", train=True, kind="forum"),
        record("daniel-c", train=False, kind="article"),
        record("daniel-d", train="true"),
        record("plain"),
    )

    found = load_set(SetChoice(folder, "elsewhere"))

    assert {s.id: s.part for s in found.samples} == {
        "daniel-c": "daniel",
        "daniel-d": "daniel",
        "fundus-a": "elsewhere, articles",
        "harvest-b": "elsewhere, forums",
        "plain": "elsewhere",
    }
    assert [s.id for s in found.learnt] == ["fundus-a", "harvest-b"]
    assert all(s.measure for s in found.samples)
    assert (found.samples[2].language, found.samples[3].page_type) == ("de", "forum")


def test_a_few_pages_of_each_site_are_learnt_from(tmp_path: Path) -> None:
    """They are drawn separately for each site, so that an additional site does not change them; pages without a text
    are no pages of the set.
    """
    one = [record(f"one{i}", site="one", kind="content") for i in range(9)]
    two = [record(f"two{i}", site="two", generator="mkdocs") for i in range(2)]
    index = {"id": "index", "site": "one", "kind": "other", "text": None}

    alone = load_set(SetChoice(listed(tmp_path / "alone", *one, index)))
    both = load_set(SetChoice(listed(tmp_path / "both", *two, *reversed(one))))

    assert len(alone.samples) == 9
    assert len(alone.learnt) == SITE_PAGES
    assert [s.id for s in both.learnt if s.id.startswith("one")] == [s.id for s in alone.learnt]
    assert [s.id for s in both.learnt if s.id.startswith("two")] == ["two0", "two1"]
    assert {s.page_type for s in both.samples if s.id.startswith("two")} == {"documentation"}


def test_a_headline_that_the_truth_leaves_out(tmp_path: Path) -> None:
    """The annotation or the first lines of the text show it."""
    folder = listed(
        tmp_path / "pages",
        record("a", title="Rivers and stones", text="Some text."),
        record("b", title="Rivers and stones", text="Rivers and Stones\nSome text."),
        record("c", title_in_text=True),
        record("d"),
    )

    assert [s.title_apart for s in load_set(SetChoice(folder)).samples] == [True, False, False, True]


def test_weights_and_pages_to_learn_from_only(tmp_path: Path) -> None:
    """With a weight of 0, no page is used for training. An extra set is never measured."""
    pages = wcxb(tmp_path / "pages", "p0", "p1")
    more = wcxb(tmp_path / "more", "q0")

    (one,) = load_sets([SetChoice(pages, weight=0.0)])
    assert one.learnt == []
    half, extra = load_sets([SetChoice(pages, "mine", 0.5)], [SetChoice(more)])
    assert {(s.part, s.weight, s.learn, s.measure) for s in half.samples} == {("mine", 0.5, True, True)}
    assert [(s.learn, s.measure) for s in extra.samples] == [(True, False)]


def test_sets_that_cannot_be_told_apart(tmp_path: Path) -> None:
    """Names and ids must be unique, since they are keys of files and figures."""
    pages = wcxb(tmp_path / "pages", "p0")
    with pytest.raises(DataError, match="named 'pages'"):
        load_sets([SetChoice(pages), SetChoice(wcxb(tmp_path / "deeper" / "pages", "q0"))])
    with pytest.raises(DataError, match="page ids that other sets also have: p0"):
        load_sets([SetChoice(pages)], [SetChoice(listed(tmp_path / "more", record("p0")))])


@pytest.mark.parametrize("line", ["{", "[]", '{"text": "no id"}', '{"id": 7, "text": "x"}'])
def test_a_damaged_line(tmp_path: Path, line: str) -> None:
    """The error names file and line."""
    folder = listed(tmp_path / "pages", record("a"))
    with (folder / "pages.jsonl").open("a") as file:
        file.write(line)
    with pytest.raises(DataError, match=r"pages\.jsonl, line 2: expected"):
        load_set(SetChoice(folder))


def test_a_line_without_its_page(tmp_path: Path) -> None:
    folder = listed(tmp_path / "pages", record("a"))
    (folder / "html/a.html").unlink()
    with pytest.raises(DataError, match=r"does not exist: expected .*a\.html"):
        load_set(SetChoice(folder))


def test_hosts_of_several_sets() -> None:
    """A host and its subdomains are the same. Hosts that only have the same ending are not."""
    hosts = ["edition.news.example", "www.news.example", "oldnews.example", "", "a.b.example", "c.b.example"]
    assert related_hosts(hosts) == ["news.example", "news.example", "oldnews.example", "", "a.b.example", "c.b.example"]


def test_no_model_is_measured_on_a_host_that_it_has_seen(tmp_path: Path) -> None:
    """This holds across all sets. No page that is only for checking is used for training."""
    records = [record(f"daniel-{i}", host=f"h{i % 5}.example", train=False) for i in range(10)]
    records += [record(f"fundus-{i}", host=f"news.h{i % 5}.example", train=True) for i in range(10)]
    pages = wcxb(tmp_path / "pages", *(f"h{i}" for i in range(8)))
    extra = listed(tmp_path / "extra", *(record(f"x{i}", host=f"h{i}.example", train=True) for i in range(12)))
    sets = load_sets([SetChoice(pages), SetChoice(listed(tmp_path / "others", *records))], [SetChoice(extra)])
    samples = {s.id: s for one in sets for s in one.samples}

    folds, whole = splits(list(samples.values()), samples, 3)

    measured = [name for fold in folds for name in fold.measured]
    assert sorted(measured) == sorted(s.id for s in samples.values() if s.measure)
    for fold in folds:
        seen = {samples[name].host.removeprefix("news.") for name in fold.seen}
        assert not seen & {samples[name].host.removeprefix("news.") for name in fold.measured}
        assert {"x8", "x9", "x10", "x11"} <= set(fold.seen), "no fold measures their hosts"
    fitted = {name for fold in [*folds, whole] for name in (*fold.seen, *fold.held)}
    assert fitted == {name for name, s in samples.items() if s.learn}
    assert not any(name.startswith("daniel") for name in fitted)


def test_the_bundled_model_has_not_learnt_from_pages_for_checking() -> None:
    """Its manifest lists the pages it was fitted on, if its training recorded them."""
    shut = set(CHECK_ONLY.read_text().split())
    assert len(shut) == 384
    pages = json.loads((bundled() / MANIFEST).read_text(encoding="utf-8")).get(TRAINING_PAGES, {})
    digests = [digest for one in pages.values() for digest in one]
    assert all(len(digest) == hashlib.sha256().digest_size * 2 for digest in digests)
    assert not shut & {digest[:16] for digest in digests}


# ---------------------------------------------------------------------- pages with ground truth, and folds of them
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


def written(folder: Path, pages: dict[str, dict[str, Any]] = PAGES) -> Path:
    for key, document in pages.items():
        write_annotated(folder, key, f"<p>Größe {key}</p>", document)
    return folder


def test_pages_come_in_order_with_all_fields(tmp_path: Path) -> None:
    """Missing fields are those of a trusted article without content, URL or snippets."""
    first, second, third = load_pages(written(tmp_path / "data"))
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
    sample = load_pages(written(tmp_path))[0]
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
    written(tmp_path)
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
        ("{", "property name"),
        ("[]", "got list"),
        ('{"sure": "very"}', "got 'sure'"),
    ],
)
def test_a_broken_annotation_is_an_error(tmp_path: Path, content: str, got: str) -> None:
    """The error names the file. A text of another shape would count as empty, and every extraction as wrong."""
    (written(tmp_path) / "ground-truth" / "0001.json").write_text(content)
    with pytest.raises(DataError, match=rf"0001\.json is not an annotation: .*{got}"):
        load_pages(tmp_path)


def test_snippets_without_a_text_are_a_page_without_main_content(tmp_path: Path) -> None:
    """Two annotations of WCXB are like that."""
    (page,) = load_pages(written(tmp_path, {"p": {"ground_truth": {"title": "T", "with": ["a"], "without": []}}}))
    assert (page.truth, page.with_snippets) == ("", ("a",))


def test_the_hash_is_of_names_and_contents_only(tmp_path: Path) -> None:
    """Folder, order, time and unrelated files do not change it."""
    one = written(tmp_path / "one")
    two = written(tmp_path / "two" / "deeper", dict(reversed(PAGES.items())))
    os.utime(two / "html" / "0001.html", (0, 0))
    (two / "notes.txt").write_text("not data")
    (two / "html" / ".hidden").write_text("not data")
    assert load_set(SetChoice(one)).sha256 == load_set(SetChoice(two)).sha256


def test_the_hash_changes_with_any_file(tmp_path: Path) -> None:
    """Any change that could change a model changes it: of a page, of an annotation, or of the names of two pages."""
    html, truth = written(tmp_path) / "html", tmp_path / "ground-truth" / "0001.json"
    hashes = [load_set(SetChoice(tmp_path)).sha256]
    first, second = ((html / f"{name}.html").read_text() for name in ("0001", "0002"))
    for path, text in ((html / "0001.html", second), (html / "0002.html", first), (truth, truth.read_text() + " ")):
        path.write_text(text)
        hashes.append(load_set(SetChoice(tmp_path)).sha256)
    assert len(set(hashes)) == 4


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, "article"),
        ({"_internal": None}, "article"),
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
