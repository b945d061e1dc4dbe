"""Load pages with ground truth in the layout of WCXB: ``html/ID.html`` and ``ground-truth/ID.json``."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

_HTML, _TRUTH = "html", "ground-truth"
_SNIPPETS = {"with", "without"}


class DataError(ValueError):
    """The data are missing or not in the expected layout. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Sample:
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


def load_pages(folder: str | PathLike[str]) -> list[Sample]:
    """Return the pages of a folder, sorted by id. Raise :exc:`DataError` if there are none or one is invalid."""
    root = _checked(folder)
    return [_sample(root, path) for path in sorted((root / _TRUTH).glob("*.json"))]


def data_hash(folder: str | PathLike[str]) -> str:
    """Return the SHA-256, in hexadecimal, over the names and contents of all pages and ground truths of a folder.

    It does not depend on the location of the folder, the order of its files or their times. Raise :exc:`DataError` if
    there are no data.
    """
    root = _checked(folder)
    return files_hash(root, [*(root / _HTML).glob("*.html"), *(root / _TRUTH).glob("*.json")])


def files_hash(root: Path, paths: Iterable[Path]) -> str:
    """Return the SHA-256, in hexadecimal, over the contents of files and their names relative to a folder."""
    whole = hashlib.sha256()
    for name, path in sorted((path.relative_to(root).as_posix(), path) for path in paths):
        whole.update(f"{page_hash(path)} {name}\n".encode())
    return whole.hexdigest()


def page_hash(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def host_of(url: str) -> str:
    """Return the lower-case host of a URL without ``www.``, or an empty string."""
    try:
        host = urlsplit(url.strip()).hostname or ""
    except ValueError:  # such as an unclosed bracket
        return ""
    return _bare(host)


def page_type_of(document: dict[str, Any]) -> str:
    """Return the page type of an annotation. The default is ``article``; ``category`` becomes ``collection``."""
    value: Any = (document.get("_internal") or {}).get("page_type", {})
    if isinstance(value, dict):
        value = value.get("primary", "article")
    elif not isinstance(value, str):
        value = "article"
    return "collection" if value == "category" else str(value)


def grouped_folds(hosts: Sequence[str], types: Sequence[str], k: int = 5, seed: int = 0) -> npt.NDArray[np.int64]:
    """Return the fold of each page, 0 to k - 1. No host is in two folds, and the folds are balanced.

    Folds are balanced in the number of pages and in page types as far as the hosts allow. ``www.`` is ignored; a page
    without a host is treated as a host of its own. The same arguments give the same folds. Raise ValueError if k is
    less than 2 or more than the number of hosts.
    """
    if len(hosts) != len(types):
        raise ValueError(f"expected as many hosts as types (got {len(hosts)} and {len(types)})")
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for page, host in enumerate(hosts):
        groups[_bare(host) or page].append(page)
    if not 2 <= k <= len(groups):
        raise ValueError(f"k must be from 2 to the number of hosts, {len(groups)} (got {k})")

    order = list(groups.values())
    random.Random(seed).shuffle(order)
    order.sort(key=len, reverse=True)  # small hosts come last, to even out the folds
    totals = Counter(types)
    sizes = [0] * k
    mixes: list[Counter[str]] = [Counter() for _ in range(k)]
    fold_of = np.empty(len(hosts), dtype=np.int64)
    for pages in order:
        mix = Counter(types[page] for page in pages)

        def cost(fold: int, mix: Counter[str] = mix) -> tuple[float, int, int]:
            # How full the fold is of these page types, as shares of all pages of the type and of all pages.
            by_type = sum(n * mixes[fold][kind] / totals[kind] for kind, n in mix.items()) / mix.total()
            return by_type + sizes[fold] / len(hosts), sizes[fold], fold

        chosen = min(range(k), key=cost)
        sizes[chosen] += len(pages)
        mixes[chosen].update(mix)
        fold_of[pages] = chosen
    return fold_of


def related_hosts(hosts: Sequence[str]) -> list[str]:
    """Return for each host the shortest of these hosts that equals it or is a parent domain of it.

    So ``edition.news.example`` of one set and ``news.example`` of another are the same host for :func:`grouped_folds`.
    """
    known = {_bare(host) for host in hosts}

    def top(host: str) -> str:
        labels = host.split(".")
        return next(name for i in range(len(labels), -1, -1) if (name := ".".join(labels[i:])) in known and name)

    return [top(_bare(host)) if host else "" for host in hosts]


def _bare(host: str) -> str:
    return host.lower().rstrip(".").removeprefix("www.")


def _checked(folder: str | PathLike[str]) -> Path:
    root = Path(folder)
    missing = [name for name in (_HTML, _TRUTH) if not (root / name).is_dir()]
    if not missing and next((root / _TRUTH).glob("*.json"), None) is not None:
        return root
    what = f"has no folder {missing[0]!r}" if missing else f"has no *.json in {_TRUTH!r}"
    layout = (
        f'expected {_HTML}/ID.html for each page, and {_TRUTH}/ID.json beside it with {{"url": ..., "ground_truth": '
        '{"main_content": "the text"}}'
    )
    archive = root.with_name(f"{root.name}.tar.xz")
    unpack = f"; unpack the data with: tar -xf {archive} -C {root.parent}" if archive.is_file() else ""
    raise DataError(f"{root} {what if root.is_dir() else 'is not there'}: {layout}{unpack}")


def _sample(root: Path, path: Path) -> Sample:
    html = root / _HTML / f"{path.stem}.html"
    if not html.is_file():
        raise DataError(f"{path} has no page: expected {html}")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        truth = _truth(document)
        url = str(document.get("url") or "")
        return Sample(
            id=path.stem,
            url=url,
            host=host_of(url),
            path=html,
            truth=truth.get("main_content") or "",
            with_snippets=tuple(_snippets(truth.get("with"))),
            without_snippets=tuple(_snippets(truth.get("without"))),
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


def _snippets(value: Any) -> Iterator[str]:
    return (str(snippet) for snippet in value or ())
