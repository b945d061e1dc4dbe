"""Corrected pages, whose main blocks are known from a person's labels or from the true text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from scrapy_dripper.data import Document
from scrapy_dripper.output.text import text
from scrapy_dripper.page import PageError
from scrapy_dripper.rules import hosts_of
from scrapy_dripper.workshop.annotation.export import LabelsError, main_blocks
from scrapy_dripper.workshop.annotation.pages import Sheet, sheet
from scrapy_dripper.workshop.annotation.store import Record
from scrapy_dripper.workshop.dataset.alignment import align
from scrapy_dripper.workshop.dataset.headlines import headlines
from scrapy_dripper.workshop.dataset.pages import Sample

NO_URL = "its URL is unknown, and so is its site: set it with --url when you inspect or annotate the page"


class CorrectionError(ValueError):
    """A page cannot be learnt from. The message says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """A page of n blocks with its right labels and its true main content."""

    name: str
    """Name of the page in messages."""
    sha256: str
    """Hash of the page's bytes."""
    document: Document
    host: str
    """Host of the URL without ``www.``."""
    main: npt.NDArray[np.bool_]
    """The right labels, shape (n,)."""
    trust: npt.NDArray[np.float64]
    """How reliable each label is, 0 to 1, shape (n,)."""
    truth: str
    """The main content as text."""
    title: str


def of_record(record: Record, page: Sheet) -> Correction:
    """Return the correction of a page that a person has labelled.

    Raise :exc:`CorrectionError` if the blocks are not those that were labelled, or the URL is unknown.
    """
    try:
        main = main_blocks(record, page)
    except LabelsError as error:
        raise CorrectionError(str(error)) from None
    document = replace(page.document, url=record.url)
    truth = text(page.page, main)
    return Correction(page.name, page.sha256, document, _host(record.url), main, np.ones(len(main)), truth, page.title)


def of_sample(sample: Sample) -> Correction:
    """Return the correction of a page with its true text.

    Raise :exc:`CorrectionError` if the page has no blocks, or its URL is unknown.
    """
    try:
        page = sheet(Document(sample.path.read_bytes(), sample.url), sample.id, sample.id)
    except PageError as error:
        raise CorrectionError(f"{error.reason}: {error}") from None
    found = align(page.page.blocks.text, sample.truth)
    trust = found.weight
    if sample.title_apart:
        trust[headlines(page.page, sample.title)] = 0
    document, host = replace(page.document, url=page.url), _host(page.url)
    return Correction(
        sample.id, page.sha256, document, host, found.main, trust, sample.truth, sample.title or page.title
    )


def by_site(corrections: Iterable[Correction]) -> dict[str, list[Correction]]:
    """Return corrections by site, in an order that does not depend on the order of the argument.

    The site of a host is the host itself, or the topmost domain above it that is also the host of a correction.
    """
    every = sorted(corrections, key=lambda one: one.sha256)
    known = {one.host for one in every}
    sites: dict[str, list[Correction]] = {host: [] for host in sorted(known)}
    for one in every:
        sites[[host for host in hosts_of(f"//{one.host}") if host in known][-1]].append(one)
    return {site: pages for site, pages in sites.items() if pages}


def _host(url: str) -> str:
    hosts = hosts_of(url)
    if not hosts:
        raise CorrectionError(NO_URL)
    return hosts[0]
