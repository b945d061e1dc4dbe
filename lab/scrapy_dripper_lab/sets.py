"""Load sets of pages with ground truth from two layouts.

* That of WCXB: ``html/ID.html`` and ``ground-truth/ID.json``.
* A single file: ``html/ID.html`` and ``pages.jsonl``, with one page per line. A line has an ``id`` and ``text``, the
  main content, or ``facts``, short texts of the main content by name: of the rest of such a page, nothing is known.
  Lines with neither, or with ``"kind": "other"``, are skipped. A line may also have ``url``, ``host``, ``language``,
  ``title``, ``title_in_text``, ``kind``, ``generator``, ``train`` and ``site``.

This module also decides which pages of the second layout are used for training: those with ``"train": true``, and
:data:`SITE_PAGES` random pages of each ``site``. All others are only measured.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import lzma
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from scrapy_dripper.cli.console import UsageError, why
from scrapy_dripper.engines.files import sha256
from scrapy_dripper.learning.metrics import without_title
from scrapy_dripper.rules import host_of

_HTML, _TRUTH = "html", "ground-truth"
_SNIPPETS = {"with", "without"}

T = TypeVar("T")


class DataError(UsageError):
    """The data are missing or not in the expected layout. The message says what to do."""


@dataclass(frozen=True, slots=True)
class AnnotatedPage:
    """A page and its ground truth. The HTML is read on demand."""

    id: str
    url: str
    host: str
    """Host of the URL without ``www.``; empty if unknown."""
    path: Path
    """The HTML file."""
    truth: str
    """The main content as plain text; empty if the page has none."""
    with_snippets: tuple[str, ...]
    without_snippets: tuple[str, ...]
    page_type: str
    title: str
    sure: float = 1.0
    """Confidence of the annotator, 0 to 1; 1 if the labels were reviewed."""
    part: str = ""
    """The row of the set table to which the page belongs."""
    language: str = ""
    """ISO 639-1 code; empty if unknown."""
    learn: bool = True
    """True if the page may be used for training."""
    measure: bool = True
    """True if the page may be used for measurements."""
    weight: float = 1.0
    """Weight of the page in training."""
    copy_of: str = ""
    """Id of the original if this is a changed copy; empty for a real page."""
    title_apart: bool = False
    """True if the truth leaves out the headline by convention, so that a headline is neither right nor wrong."""
    facts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The facts of a page whose truth is partial, by name. They are main content, and ``truth`` is empty."""

    def read_html(self) -> str:
        """Return the page decoded as UTF-8. Invalid bytes become U+FFFD."""
        return self.path.read_text(encoding="utf-8", errors="replace")


def load_pages(folder: str | PathLike[str]) -> list[AnnotatedPage]:
    """Return the pages of a folder, sorted by id. Raise :exc:`DataError` if there are none or one is invalid."""
    root = Path(folder)
    paths = sorted((root / _TRUTH).glob("*.json"))
    missing = [name for name in (_HTML, _TRUTH) if not (root / name).is_dir()]
    if missing or not paths:
        what = f"has no folder {missing[0]!r}" if missing else f"has no *.json in {_TRUTH!r}"
        raise DataError(
            f"{root} {what if root.is_dir() else 'is not there'}: expected {_HTML}/ID.html for each page, and "
            f'{_TRUTH}/ID.json beside it with {{"url": ..., "ground_truth": {{"main_content": "the text"}}}}'
        )
    return [_annotated_page(root, path) for path in paths]


def files_hash(root: Path, paths: Iterable[Path]) -> str:
    """Return the SHA-256, in hexadecimal, over the contents of files and their names relative to a folder.

    It does not depend on the location of the folder, the order of its files or their times.
    """
    whole = hashlib.sha256()
    for name, path in sorted((path.relative_to(root).as_posix(), path) for path in paths):
        whole.update(f"{sha256(path)} {name}\n".encode())
    return whole.hexdigest()


def page_type_of(document: dict[str, Any]) -> str:
    """Return the page type of an annotation. The default is ``article``; ``category`` becomes ``collection``."""
    value: Any = (document.get("_internal") or {}).get("page_type", {})
    if isinstance(value, dict):
        value = value.get("primary", "article")
    elif not isinstance(value, str):
        value = "article"
    return "collection" if value == "category" else str(value)


def _annotated_page(root: Path, path: Path) -> AnnotatedPage:
    html = root / _HTML / f"{path.stem}.html"
    if not html.is_file():
        raise DataError(f"{path} has no page: expected {html}")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        truth = _truth(document)
        url = str(document.get("url") or "")
        return AnnotatedPage(
            id=path.stem,
            url=url,
            host=host_of(url),
            path=html,
            truth=truth.get("main_content") or "",
            with_snippets=tuple(map(str, truth.get("with") or ())),
            without_snippets=tuple(map(str, truth.get("without") or ())),
            page_type=page_type_of(document),
            title=truth.get("title") or "",
            sure=float(document.get("sure", 1.0)),
        )
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{path} is not an annotation: {error}") from None


def _truth(document: Any) -> Mapping[str, Any]:
    """Return what an annotation says of the page. Raise ValueError if it has another shape.

    A text under another name would count as empty, and every extraction as wrong.
    """
    truth = document.get("ground_truth") if isinstance(document, dict) else None
    if isinstance(truth, dict):
        missing = "" if truth.keys() >= _SNIPPETS else 0  # WCXB has pages without a text
        if isinstance(truth.get("main_content", missing), str | None):
            return truth
    keys = ", ".join(map(repr, list(document)[:5])) if isinstance(document, dict) else type(document).__name__
    inside = f" with {', '.join(map(repr, list(truth)[:5]))} in it" if isinstance(truth, dict) else ""
    raise ValueError(f'expected {{"ground_truth": {{"main_content": "the text"}}}} (got {keys}{inside})')


PAGES = "pages.jsonl"
SITE_PAGES = 3
"""Number of pages of a site to train on. More of them add little information."""
_SITE_SEED = 0  # fixed, so that training runs with different seeds can be compared

_MANUALS = frozenset(
    ("mkdocs", "mdbook", "docusaurus", "gitbook", "vuepress", "bookdown", "quarto", "jupyter-book", "sphinx")
)
_KINDS = frozenset(("forum", "product", "service", "listing", "collection", "documentation", "mixed"))

_FACT_KINDS = {
    "recipe": "article", "court": "listing", "records": "listing", "estate": "product",
    "zh-articles": "article", "zh-forums": "forum", "article": "article",
}  # fmt: skip
"""The page types of the kinds of pages in sets of facts. Those of other kinds are unknown."""


@dataclass(frozen=True, slots=True)
class PageSet:
    """The pages of one folder."""

    name: str
    folder: Path
    sha256: str
    """Hash of all relevant files of the folder."""
    samples: tuple[AnnotatedPage, ...]

    @property
    def learnt(self) -> list[AnnotatedPage]:
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
        """Parse a set. Raise :exc:`DataError` if the weight is negative or there is no folder."""
        named = "=" in text and not Path(text).is_dir()  # the folder's name may contain an equals sign
        name, _, rest = text.partition("=") if named else ("", "", text)
        folder, weight = rest, 1.0
        before, colon, number = rest.rpartition(":")
        with contextlib.suppress(ValueError):  # without a number after it, the colon belongs to the folder's name
            folder, weight = (before, float(number)) if colon else (rest, 1.0)
        if not folder or not 0 <= weight < 1e6:
            raise DataError(f"expected [NAME=]FOLDER[:WEIGHT] with a weight of at least 0 (got {text!r})")
        return cls(Path(folder), name, weight)


def load_set(choice: SetChoice, *, measure: bool = True) -> PageSet:
    """Return the pages of a folder in either layout, sorted by id.

    With ``measure=False``, they are never measured. Raise :exc:`DataError` if there are none or one is invalid.
    """
    folder, name = choice.folder, choice.name or choice.folder.resolve().name
    if (folder / PAGES).is_file():
        listed = json_lines(folder / PAGES, _record, '{"id": ..., "text": ...} or "facts"')
        known = (
            one for one in listed if (one.get("text") is not None or "facts" in one) and one.get("kind") != "other"
        )
        records = sorted(known, key=lambda record: str(record["id"]))
        if not records:
            raise DataError(f"{folder / PAGES} has no pages with text")
        drawn = _drawn(records)
        samples = [_listed_page(folder, name, record, drawn) for record in records]
        digest = files_hash(folder, [folder / PAGES, *(sample.path for sample in samples)])
    else:
        samples = [replace(sample, part=name) for sample in load_pages(folder)]
        digest = files_hash(folder, [*(folder / _HTML).glob("*.html"), *(folder / _TRUTH).glob("*.json")])
    weighed = (
        replace(s, weight=choice.weight, learn=s.learn and choice.weight > 0, measure=s.measure and measure)
        for s in samples
    )
    return PageSet(name, folder, digest, tuple(weighed))


def json_lines(path: Path, read: Callable[[Any], T], expected: str) -> Iterator[T]:
    """Yield what ``read`` makes of the JSON value on each line of a file, which may be compressed as ``.xz``.

    Raise :exc:`DataError`, saying what was ``expected``, if it raises or a line is not JSON.
    """
    number = 0
    try:
        with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):  # noqa: B007 (the error names it)
                if line.strip():
                    yield read(json.loads(line))
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise DataError(f"cannot read {path}: {why(error)}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{path}, line {number}: expected {expected} ({type(error).__name__}: {error})") from None


def _record(record: Any) -> Mapping[str, Any]:
    """Return a record. Raise TypeError or KeyError if it is not that of a page."""
    if not isinstance(record["id"], str):
        raise TypeError("the id is not a string")
    if not isinstance(record.get("text", ""), str | None):
        raise TypeError(f"the text is not a string, but {type(record['text']).__name__}")
    facts = record.get("facts", {})
    listed = isinstance(facts, dict) and all(isinstance(texts, list) for texts in facts.values())
    if not listed or not all(isinstance(text, str) for texts in facts.values() for text in texts):
        raise TypeError("the facts are not lists of strings by name")
    return dict(record)


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


def _listed_page(folder: Path, name: str, record: Mapping[str, Any], drawn: set[str]) -> AnnotatedPage:
    path = folder / "html" / f"{record['id']}.html"
    if not path.is_file():
        raise DataError(f"{folder / PAGES} names a page that does not exist: expected {path}")
    url, title, text = str(record.get("url") or ""), str(record.get("title") or ""), str(record.get("text") or "")
    learn = record["id"] in drawn if "site" in record else record.get("train", "facts" in record) is True
    return AnnotatedPage(
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
        facts={} if text else record.get("facts") or {},
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
    return f"{name}, forums" if _page_type(record) == "forum" else f"{name}, articles"


def _page_type(record: Mapping[str, Any]) -> str:
    kind = _FACT_KINDS.get(str(record.get("kind") or ""), str(record.get("kind") or ""))
    if record.get("generator") in _MANUALS:
        return "documentation"
    return kind if kind in _KINDS or (record.get("facts") and kind not in _FACT_KINDS.values()) else "article"
