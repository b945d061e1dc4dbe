"""The URLs that a crawl has found, in a file that says after any end of the crawl which of them are left."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote_plus, urldefrag, urljoin, urlsplit, urlunsplit

from w3lib.url import canonicalize_url, safe_url_string

from scrapy_dripper.egress import checked_host

BLOCK = 1 << 16
"""Number of bytes to read together in search of the end of a line."""

_PORTS = {"http": 80, "https": 443}
TRACKING = frozenset(
    "gclid gclsrc dclid gbraid wbraid fbclid msclkid yclid ysclid twclid ttclid igshid igsh li_fat_id mc_cid mc_eid "
    "mkt_tok cmpid s_cid srsltid ref_src xtor _ga _gl _hsenc _hsmi __hstc __hssc __hsfp".split()
)
"""Names of parameters that say where a reader comes from, and nothing about the page. So do those that begin with
:data:`CAMPAIGN`."""
CAMPAIGN = ("utm_", "mtm_", "pk_", "piwik_", "itm_", "hsa_", "vero_", "oly_")


@dataclass
class Site:
    """What is known about one of the sites of a crawl."""

    number: int
    url: str
    """The first URL of the user on this site."""
    home: str | None = None
    """The URL of the first page, after its redirects. Its host is the one that is followed."""
    queue: deque[tuple[str, int]] = field(default_factory=deque)
    """The pages that are to be asked for, with the number of links that lead there from the first one."""
    sitemaps: dict[str, bool] = field(default_factory=dict)
    """The sitemaps that were asked for, and whether all that they name is in the file."""
    others: set[str] = field(default_factory=set)
    """Other sites on which robots.txt names a sitemap."""
    delay: float = 0.0
    asked: int = 0
    """Number of pages that were asked for and have not come yet."""
    begun: int = 0
    """Number of pages that have been extracted, or are being extracted."""
    is_ready: bool = False
    """True when robots.txt has been read."""
    has_more: bool = False
    """True if there are pages beyond the largest number."""

    @property
    def name(self) -> str:
        """What the URLs of the site have in common."""
        return site_of(self.home or self.url)

    @property
    def usual_sitemap(self) -> str:
        """Where a sitemap is that robots.txt does not name."""
        return urljoin(self.home or self.url, "/sitemap.xml")


class Frontier:
    """The sites of a crawl, and all URLs that were found there, each once.

    The file has a line for each URL, before it is asked for. What is :meth:`add`\\ ed is there after :meth:`flush`,
    which comes before the page that it was found on is done. So after ``kill -9``, a page is either not done, or
    nothing of what was found on it is lost.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.sites: list[Site] = []
        self.known: set[str] = set()
        """URLs that were found, or that redirects have led to, in one form for all that Scrapy takes for equal."""
        self._lines: list[str] = []
        self._file: IO[str] | None = None
        self._found: list[tuple[Site, str, int]] = []
        for entry in records(path):
            with suppress(KeyError, IndexError, TypeError):  # a damaged line
                self._read(entry)

    def _read(self, entry: dict[str, Any]) -> None:
        if "start" in entry:
            self.sites.append(Site(len(self.sites), entry["start"]))
            return
        site = self.sites[entry["site"]]
        match entry:
            case {"url": url, "depth": depth}:
                self._found.append((site, url, depth))
            case {"sitemap": url, "read": read}:
                site.sitemaps[url] = read
            case {"home": url}:
                site.home = url

    def begin(self, urls: Iterable[str], done: Iterable[str]) -> None:
        """Open the file, and queue the URLs of the user and all others that are not ``done``.

        Raise OSError if the file cannot be written.
        """
        self._file = append(self._path)
        self.known.update(map(canonicalize_url, done))
        by_name = {name: site for site in self.sites for name in (site_of(site.url), site.name)}
        first = []
        for url in urls:
            if (site := by_name.get(site_of(url))) is None:
                by_name[site_of(url)] = site = Site(len(self.sites), url)
                self.sites.append(site)
                self._note(site, start=url)
            first.append((site, url, 0))
        for site, url, depth in first + self._found:
            self._queue(site, url, depth)
        self._found.clear()
        self.flush()

    def add(self, site: Site, url: str, depth: int) -> None:
        """Queue a page, unless its URL is known."""
        url = safe_url_string(urldefrag(url).url)
        if self._queue(site, url, depth):
            self._note(site, url=url, depth=depth)

    def _queue(self, site: Site, url: str, depth: int) -> bool:
        is_new = (known := canonicalize_url(url)) not in self.known
        if is_new:
            self.known.add(known)
            site.queue.append((url, depth))
        return is_new

    def move(self, site: Site, home: str) -> None:
        """Keep the URL of the first page of a site."""
        site.home = home
        self._note(site, home=home)

    def sitemap(self, site: Site, url: str, *, is_read: bool) -> None:
        """Keep that a sitemap was asked for, or that all that it names is here."""
        site.sitemaps[url] = is_read
        self._note(site, sitemap=url, read=is_read)

    def _note(self, site: Site, **values: Any) -> None:
        self._lines.append(json.dumps({"site": site.number} | values, ensure_ascii=False) + "\n")

    def flush(self) -> None:
        """Write what was found. Raise OSError if that fails."""
        assert self._file is not None
        self._file.write("".join(self._lines))
        self._file.flush()
        self._lines.clear()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def site_of(url: str) -> str:
    """Return what the URLs of a site have in common: the host without ``www.``, and the port if it is an unusual one.

    Raise :exc:`~scrapy_dripper.egress.RefusedError` if it is no URL of the web.
    """
    host, parts = checked_host(url).removeprefix("www."), urlsplit(url)
    return host if parts.port in (None, _PORTS[parts.scheme]) else f"{host}:{parts.port}"


def is_on(url: str, sites: Container[str | None]) -> bool:
    """Return True for a URL of one of these sites."""
    return name_of(url) in sites


def name_of(url: str) -> str | None:
    """Return what :func:`site_of` returns, or None for what is no URL of the web."""
    try:
        return site_of(safe_url_string(url))
    except ValueError:
        return None


def without_tracking(url: str) -> str:
    """Return a URL without the parameters that say where a reader comes from. Everything else stays as it is."""
    parts = urlsplit(url)
    if not parts.query:
        return url
    left = [one for one in parts.query.split("&") if not _tracks(unquote_plus(one.partition("=")[0]).lower())]
    return urlunsplit(parts._replace(query="&".join(left)))


def _tracks(name: str) -> bool:
    return name in TRACKING or name.startswith(CAMPAIGN)


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file of JSON lines, none if there is no file.

    Lines that are no records are left out, and a last line without an end, which :func:`append` takes away.
    """
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict) and line.endswith("\n"):
                yield record


def append(path: Path) -> IO[str]:
    """Open a file of lines to add to it. A last line that was cut, because its writer was killed, is taken away."""
    with path.open("a+b") as file:
        end = file.tell()
        while end:
            start = max(0, end - BLOCK)
            file.seek(start)
            if (at := file.read(end - start).rfind(b"\n")) >= 0:
                end = start + at + 1
                break
            end = start
        file.truncate(end)
    return path.open("a", encoding="utf-8", errors="replace", newline="\n")
