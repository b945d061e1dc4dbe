"""The dates of a page, in ISO 8601: first those for machines, then those beside the headline, then others.

Dates for machines are in ISO 8601 or RFC 5322. Written dates are read with the month names of 21 languages. Libraries
that guess the language, such as dateparser, take milliseconds for each text.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator
from email.utils import parsedate_to_datetime
from itertools import chain, islice
from typing import TYPE_CHECKING

from scrapy_dripper.declared import Declared
from scrapy_dripper.declared.elements import LONGEST_TEXT, UNSEEN, Marked, text_of

if TYPE_CHECKING:
    from lxml.html import HtmlElement

EARLIEST = 1800
"""The earliest year of a date. Digitized papers can be that old."""
EPOCH = "1970-01-01"
"""The value that content management systems write if there is no date."""
LONGEST_LINE = 60
"""Maximum length of a text beside the headline that may be the date of the page, in characters."""
ANCESTORS = 6
"""Number of ancestors of a date that are checked for being an event or a comment."""
LONGEST_DRAFT = 90
"""Maximum number of days between the last change of a draft and its publication."""

_LANGUAGES = """
january february march april may june july august september october november december
januar februar märz april mai juni juli august september oktober november dezember
janvier février mars avril mai juin juillet août septembre octobre novembre décembre
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
januari februari maart april mei juni juli augustus september oktober november december
januari februari mars april maj juni juli augusti september oktober november december
januar februar marts april maj juni juli august september oktober november december
januar februar mars april mai juni juli august september oktober november desember
stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia
ledna února března dubna května června července srpna září října listopadu prosince
января февраля марта апреля мая июня июля августа сентября октября ноября декабря
січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня
ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık
يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر
januari februari maret april mei juni juli agustus september oktober november desember
ιανουαρίου φεβρουαρίου μαρτίου απριλίου μαΐου ιουνίου ιουλίου αυγούστου σεπτεμβρίου οκτωβρίου νοεμβρίου δεκεμβρίου
tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta elokuuta \
syyskuuta lokakuuta marraskuuta joulukuuta
január február március április május június július augusztus szeptember október november december
"""
_SHORT = """
jan feb mar apr may jun jul aug sep oct nov dec
jän febr mär avr mai juni juli août sept okt nov dez
ene fév mrt abr mag giu lug ago set ott nov dic
янв фев мар апр мая июн июл авг сен окт ноя дек
sty lut mar kwi maj cze lip sie wrz paź lis gru
jan fev mar abr mei jui juil agu sep out nov des
ιαν φεβ μαρ απρ μαΐ ιουν ιουλ αυγ σεπ οκτ νοε δεκ
jan febr márc ápr máj jún júl aug szept okt nov dec
"""
MONTHS: dict[str, int] = {
    name: number
    for lines in (_SHORT, _LANGUAGES)
    for line in lines.strip().splitlines()
    for number, name in enumerate(line.split(), 1)
}
"""Month names and their abbreviations, in lower case."""

# Names of meta elements, in lower case.
_PUBLISHED = (
    "article:published_time", "og:article:published_time", "datepublished", "parsely-pub-date", "sailthru.date",
    "citation_publication_date", "citation_date", "citation_online_date", "dc.date.issued", "dcterms.issued",
    "dc.date.created", "dcterms.created", "dc.date", "dcterms.date", "pubdate", "publishdate", "publish-date",
    "publish_date", "published_date", "published", "publication_date", "article.published", "article_date_original",
    "cxenseparse:recs:publishtime", "og:pubdate", "og:published_time", "video:release_date", "displaydate",
    "creation_date", "created", "date", "release_date", "datecreated",
)  # fmt: skip
_MODIFIED = (
    "article:modified_time", "og:article:modified_time", "datemodified", "og:updated_time", "dc.date.modified",
    "dcterms.modified", "article.updated", "last-modified", "lastmod", "updated_time", "modified", "revised",
)  # fmt: skip
_MONTH_FIRST = ("en", "en-us", "en-ph", "en-ca", "es-us", "")
"""Languages in which the month comes first in 05/06/2024. Pages of all countries declare ``en``."""

_iso = re.compile(
    r"(\d{4})-?(\d\d)-?(\d\d)"
    r"(?:(?:T|t|\s{1,3})(\d\d):?(\d\d)(?::?(\d\d)(?:[.,]\d{1,9})?)?\s?(Z|z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?)?(?!\d)"
).match
_WRITTEN = tuple(
    re.compile(pattern).search
    for pattern in (
        r"(?P<m>[^\W\d_]{3,12})\.?\s{1,3}(?P<d>\d{1,2})(?:st|nd|rd|th)?,?\s{1,3}(?P<y>\d{4})(?!\d)",
        r"(?<!\d)(?P<d>\d{1,2})(?:st|nd|rd|th|er|º|\.)?[\s,-]{1,3}(?:(?:of|de|d')\s?)?(?P<m>[^\W\d_]{3,12})\.?"
        r"[\s,-]{1,3}(?:(?:de|del)\s)?(?P<y>\d{4})(?!\d)",
        r"(?<!\d)(?P<y>\d{4})\.?\s{1,3}(?P<m>[^\W\d_]{3,12})\.?\s{1,3}(?P<d>\d{1,2})(?!\d)",
        r"(?<!\d)(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)",
        r"(?P<y>\d{4})\s?[年년]\s?(?P<m>\d{1,2})\s?[月월]\s?(?P<d>\d{1,2})\s?[日일]",
        r"(?<![\d.])(?P<d>\d{1,2})\.\s?(?P<m>\d{1,2})\.\s?(?P<y>\d{4})(?!\.?\d)",
        r"(?<!\d)(?P<d>\d{1,2})\s{1,3}tháng\s{1,3}(?P<m>\d{1,2})(?:\s{1,3}năm|,)?\s{1,3}(?P<y>\d{4})(?!\d)",
    )
)
"""Patterns of written dates, whose first match counts if its month is a number or a name."""
_numbers = re.compile(r"(?<!\d)(\d{1,2})([/-])(\d{1,2})[/-](\d{4})(?!\d)").search
_in_path = re.compile(r"/((?:19|20)\d\d)[/-]?([01]\d)[/-]?([0-3]\d)(?!\d)").search
_year = re.compile(r"(?:19|20)\d\d").search
_published = re.compile(r"\b(?:published|posted|written|created)\b", re.I).search
_modified = re.compile(r"\b(?:updated|modified|reviewed|edited)\b", re.I).search
_is_other = re.compile(r"\b(?:join(?:ed)?|member|registered|born|since|copyright|expires|until)\b|©", re.I).search
_is_reply = re.compile(r"(?:^|[\s_-])(?:comment|reply|review)(?=$|[\s_\d-])", re.I).search
_is_event = re.compile(r"\bevents?\b|startdate|enddate|doortime|validthrough", re.I).search


def iso_date(text: str, day_first: bool = False) -> str | None:
    """Return the date in a text, preferably at its beginning, or None. Dates for machines keep their time and zone.

    ``day_first`` is as in :func:`written_date`.
    """
    text = text.strip()[:LONGEST_TEXT]
    if not text:
        return None
    return _machine_date(text) or written_date(text, day_first)


def _machine_date(text: str) -> str | None:
    found = _iso(text)
    if found is not None:
        year, month, day, hour, minute, second, zone = found.groups()
        date = _valid(year, month, day)
        if date is None or hour is None:
            return date
        try:
            time = dt.time(int(hour), int(minute), int(second or 0)).isoformat()
        except ValueError:
            return date
        return f"{date}T{time}{_zone(zone)}"
    if text[:1].isalpha() and text[3:5] == ", " and text[5:6].isdigit():  # RFC 5322: Mon, 06 May 2024 07:08:09 GMT
        try:
            moment = parsedate_to_datetime(text)
        except (TypeError, ValueError, IndexError, OverflowError):
            return None
        date = _valid(moment.year, moment.month, moment.day)
        return date and f"{date}T{moment.time().isoformat()}{_zone(moment.strftime('%z'))}"
    return None


def written_date(text: str, day_first: bool = False) -> str | None:
    """Return the first written date near the beginning of a text, or None if there is none.

    05/06/2024 is the sixth of May, as in the USA. With ``day_first``, it is the fifth of June, as in most countries.
    """
    text = text[:LONGEST_TEXT].lower()
    for written in _WRITTEN:
        found = written(text)
        if found is not None and (month := MONTHS.get(found["m"]) or (found["m"] if found["m"].isdecimal() else 0)):
            return _valid(found["y"], month, found["d"])
    found = _numbers(text)
    if found is None:
        return None
    first, dash, second, year = found.groups()
    if day_first or dash == "-" or int(first) > 12:
        return _valid(year, second, first) or _valid(year, first, second)
    return _valid(year, first, second)


def date_in_path(path: str) -> str | None:
    """Return the date in the path of a URL, such as ``/2024/05/06/``; None if there is none."""
    found = _in_path(path[:2_000])
    return None if found is None else _valid(*found.groups())


def _valid(year: str | int, month: str | int, day: str | int) -> str | None:
    try:
        date = dt.date(int(year), int(month), int(day))
    except ValueError:
        return None
    text = date.isoformat()
    late = dt.date.today() + dt.timedelta(days=1)  # it is tomorrow in other time zones; later dates are those of events
    return text if date.year >= EARLIEST and date <= late and text != EPOCH else None


def _zone(zone: str | None) -> str:
    """Return a time zone as ``Z`` or ``+02:00``; empty without one."""
    if not zone:
        return ""
    if zone[0] not in "+-" or not zone.strip("+-0:"):
        return "Z"
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return f"{zone[0]}{digits[:2]}:{digits[2:]}"


class Dating:
    """Finds the dates of one page."""

    def __init__(self, declared: Declared, marked: Marked, around: list[HtmlElement], language: str) -> None:
        """``around`` are the elements around the headline, in document order."""
        self.declared, self.marked, self.around = declared, marked, around
        self.day_first = language.lower() not in _MONTH_FIRST

    def dates(self, url: str) -> tuple[str, str]:
        """Return the dates of publication and of the last change of the page at a URL. An unknown date is empty."""
        meta, linked = self.declared.texts, self.declared.linked.texts
        published = self._first(linked("datePublished")) or self._first(meta(*_PUBLISHED))
        modified = self._first(linked("dateModified")) or self._first(meta(*_MODIFIED))
        published = published or self._in_properties("datepublished", "pubdate")
        published = published or self._first(linked("dateCreated", "uploadDate"))
        modified = modified or self._in_properties("datemodified")
        kinds = self.marked.times, self.marked.dated  # ``time`` elements; those whose class names a date
        replies = [one for kind in kinds for one in kind if _is_in(one, _is_reply)]
        times, named = ([one for one in kind if one not in replies] for kind in kinds)
        for found in (self._of(times), self._beside_headline(), self._of(named), self._of(replies)):
            for date, is_change in () if published else list(found):
                if is_change:
                    modified = modified or date
                else:
                    published = published or date
        published = published or date_in_path(url) or ""
        if published and modified and _days(modified) < _days(published) - LONGEST_DRAFT:
            published = modified  # changed long before its publication, so it has been published again
        return published, modified

    def _first(self, written: Iterable[str]) -> str:
        return next((date for text in written if (date := iso_date(text, self.day_first))), "")

    def _in_properties(self, *names: str) -> str:
        elements = (element for name in names for element in self.marked.properties.get(name, ())[:5])
        return next((date for element in elements if (date := self._date_of(element))), "")

    def _date_of(self, element: HtmlElement) -> str | None:
        """Return the date of an element: the date for machines, or else the visible one."""
        said = (element.get(name) or "" for name in ("datetime", "content", "title"))
        return self._first(said) or written_date(text_of(element, 100), self.day_first)

    def _of(self, elements: Iterable[HtmlElement]) -> Iterator[tuple[str, bool]]:
        """Yield the date of each element, visible or for machines, and whether it is that of a change."""
        for element in elements:
            date = self._date_of(element)
            if date and not _is_in(element, _is_event):  # which a page announces or lists
                yield date, _is_change(f"{element.get('class') or ''} {text_of(element, 100)}")

    def _beside_headline(self) -> Iterator[tuple[str, bool]]:
        """Yield the date in each short text around the headline, and whether it is that of a change."""
        for node in self.around:
            for text in ("" if node.tag in UNSEEN else node.text, node.tail):
                if not text or len(text) > 4 * LONGEST_LINE or not _year(text):
                    continue
                said = " ".join(text.split())
                date = written_date(said, self.day_first) if len(said) <= LONGEST_LINE else None
                if date and not _is_other(said):
                    yield date, _is_change(said)


def _is_in(element: HtmlElement, named: Callable[[str], object]) -> bool:
    """Return True for an element in or near one whose property, type or class has a certain name."""
    around = chain((element,), islice(element.iterancestors(), ANCESTORS))
    names = ("itemprop", "property", "itemtype", "class")
    return any(named(" ".join(one.get(name) or "" for name in names)) for one in around)


def _days(date: str) -> int:
    return dt.date.fromisoformat(date[:10]).toordinal()


def _is_change(text: str) -> bool:
    return bool(_modified(text)) and not _published(text)
