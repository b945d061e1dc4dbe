"""Load sets of pages with ground truth from two layouts.

* That of WCXB: ``html/ID.html`` and ``ground-truth/ID.json``, see :mod:`scrapy_dripper.workshop.dataset.pages`.
* A single file: ``html/ID.html`` and ``pages.jsonl``, with one page per line. A line has an ``id`` and ``text``, the
  main content, or ``facts``, short texts of the main content by name: of the rest of such a page, nothing is known.
  Lines with neither, or with ``"kind": "other"``, are skipped. A line may also have ``url``, ``host``, ``language``,
  ``title``, ``title_in_text``, ``kind``, ``generator``, ``train`` and ``site``.

This module also decides which pages of the second layout are used for training: those with ``"train": true``, and
:data:`SITE_PAGES` random pages of each ``site``. All others are only measured.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scrapy_dripper.workshop.dataset.metrics import without_title
from scrapy_dripper.workshop.dataset.pages import DataError, Sample, data_hash, files_hash, host_of, load_pages

PAGES = "pages.jsonl"
TRAINING_PAGES = "training_pages"
"""Key of a model's manifest: the SHA-256 of each page that the model was trained on, by set."""
SITE_PAGES = 3
"""Number of pages of a site to train on. More of them add little information."""
_SITE_SEED = 0  # fixed, so that training runs with different seeds can be compared

_MANUALS = frozenset(
    ("mkdocs", "mdbook", "docusaurus", "gitbook", "vuepress", "bookdown", "quarto", "jupyter-book", "sphinx")
)
_KINDS = frozenset(("forum", "product", "service", "listing", "collection", "documentation", "mixed"))

_FACT_KINDS = {"recipe": "article", "court": "listing", "records": "listing"}
"""The page types of the kinds of pages in sets of facts."""


@dataclass(frozen=True, slots=True)
class PageSet:
    """The pages of one folder."""

    name: str
    folder: Path
    sha256: str
    """Hash of all relevant files of the folder."""
    samples: tuple[Sample, ...]

    @property
    def learnt(self) -> list[Sample]:
        """The pages to train on."""
        return [sample for sample in self.samples if sample.learn]


@dataclass(frozen=True, slots=True)
class SetChoice:
    """A set as given on a command line: ``[NAME=]FOLDER[:WEIGHT]``."""

    folder: Path
    name: str = ""
    weight: float = 1.0
    """Weight of each page in training. With 0, the set is only measured."""

    @classmethod
    def parse(cls, text: str) -> SetChoice:
        """Parse a set. Raise ValueError if the weight is negative or there is no folder."""
        named = "=" in text and not Path(text).is_dir()  # the folder's name may contain an equals sign
        name, _, rest = text.partition("=") if named else ("", "", text)
        folder, weight = rest, 1.0
        before, colon, number = rest.rpartition(":")
        with contextlib.suppress(ValueError):  # without a number after it, the colon belongs to the folder's name
            folder, weight = (before, float(number)) if colon else (rest, 1.0)
        if not folder or not 0 <= weight < 1e6:
            raise ValueError(f"expected [NAME=]FOLDER[:WEIGHT] with a weight of at least 0 (got {text!r})")
        return cls(Path(folder), name, weight)


def load_set(choice: SetChoice, *, measure: bool = True) -> PageSet:
    """Return the pages of a folder in either layout, sorted by id.

    With ``measure=False``, they are never measured. Raise :exc:`DataError` if there are none or one is invalid.
    """
    folder, name = choice.folder, choice.name or choice.folder.resolve().name
    if (folder / PAGES).is_file():
        samples = _listed(folder, name)
        digest = files_hash(folder, [folder / PAGES, *(sample.path for sample in samples)])
    else:
        samples = [replace(sample, part=name) for sample in load_pages(folder)]
        digest = data_hash(folder)
    weighed = (
        replace(s, weight=choice.weight, learn=s.learn and choice.weight > 0, measure=s.measure and measure)
        for s in samples
    )
    return PageSet(name, folder, digest, tuple(weighed))


def load_sets(choices: Iterable[SetChoice], learn_only: Iterable[SetChoice] = ()) -> list[PageSet]:
    """Return several sets. Raise :exc:`DataError` if two sets have the same name, or two pages the same id."""
    sets = [load_set(choice) for choice in choices] + [load_set(choice, measure=False) for choice in learn_only]
    owner: dict[str, str] = {}
    for one in sets:
        if [other.name for other in sets].count(one.name) > 1:
            raise DataError(f"two sets are named {one.name!r}: give one of them another name, with NAME=FOLDER")
        same = [sample.id for sample in one.samples if sample.id in owner]
        if same:
            raise DataError(f"{one.folder} has page ids that other sets also have: {', '.join(sorted(same)[:5])}")
        owner |= {sample.id: one.name for sample in one.samples}
    return sets


def _listed(folder: Path, name: str) -> list[Sample]:
    records = sorted(_records(folder / PAGES), key=lambda record: str(record["id"]))
    if not records:
        raise DataError(f"{folder / PAGES} has no pages with text")
    drawn = _drawn(records)
    return [_sample(folder, name, record, drawn) for record in records]


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the records of pages with ground truth."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                if not isinstance(record["id"], str):
                    raise TypeError("the id is not a string")
                if not isinstance(record.get("text", ""), str | None):
                    raise TypeError(f"the text is not a string, but {type(record['text']).__name__}")
                if "facts" in record:
                    _check_facts(record["facts"])
                if (isinstance(record.get("text"), str) or "facts" in record) and record.get("kind") != "other":
                    yield record
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                what = f"{type(error).__name__}: {error}"
                raise DataError(
                    f'{path}, line {number}: expected {{"id": ..., "text": ...}} or "facts" ({what})'
                ) from None


def _check_facts(facts: Any) -> None:
    listed = isinstance(facts, dict) and all(isinstance(texts, list) for texts in facts.values())
    if not listed or not all(isinstance(text, str) for texts in facts.values() for text in texts):
        raise TypeError("the facts are not lists of strings by name")


def _drawn(records: Sequence[Mapping[str, Any]]) -> set[str]:
    """Draw the pages of each site to train on, and return their ids. The draw of a site does not depend on others."""
    sites: dict[str, list[str]] = defaultdict(list)
    for record in records:
        if "site" in record:
            sites[str(record["site"])].append(record["id"])
    return {
        name
        for site, pages in sites.items()
        for name in random.Random(f"{_SITE_SEED} {site}").sample(pages, min(SITE_PAGES, len(pages)))
    }


def _sample(folder: Path, name: str, record: Mapping[str, Any], drawn: set[str]) -> Sample:
    path = folder / "html" / f"{record['id']}.html"
    if not path.is_file():
        raise DataError(f"{folder / PAGES} names a page that does not exist: expected {path}")
    url, title, text = str(record.get("url") or ""), str(record.get("title") or ""), str(record.get("text") or "")
    learn = record["id"] in drawn if "site" in record else record.get("train", "facts" in record) is True
    return Sample(
        id=record["id"],
        url=url,
        host=str(record.get("host") or "") or host_of(url) or str(record.get("site") or ""),
        path=path,
        truth=text,
        with_snippets=(),
        without_snippets=(),
        page_type=_page_type(record),
        title=title,
        part=_part(name, record),
        language=str(record.get("language") or ""),
        learn=learn,
        facts=record.get("facts") or {},
        title_apart=not (record.get("title_in_text") or (title and without_title(text, title) != text)),
    )


def _part(name: str, record: Mapping[str, Any]) -> str:
    """Return the row of a page in the set table.

    If the records of a set have ``train``, the pages for training are in the rows of its forums and its articles. The
    other pages are in rows that are named after the part of their ids before the first hyphen."""
    if "train" not in record:
        return name
    if record["train"] is not True:
        return str(record["id"]).partition("-")[0]
    return f"{name}, forums" if record.get("kind") == "forum" else f"{name}, articles"


def _page_type(record: Mapping[str, Any]) -> str:
    kind = _FACT_KINDS.get(str(record.get("kind") or ""), str(record.get("kind") or ""))
    if record.get("generator") in _MANUALS:
        return "documentation"
    return kind if kind in _KINDS else "article"
