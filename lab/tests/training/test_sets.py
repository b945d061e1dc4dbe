"""Sets of pages in either layout: which pages are used for training, which model measures each, and what is
recorded.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.engines.tagger.engine import MANIFEST, bundled
from scrapy_dripper.learning import TRAINING_PAGES
from scrapy_dripper_lab.folds import load_sets, related_hosts
from scrapy_dripper_lab.sets import SITE_PAGES, DataError, SetChoice, load_set
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
