"""Call-outs: the boxed notes, tips and warnings of documentation generators."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from scrapy_dripper.page.tags import LONGEST_CLASS
from scrapy_dripper.page.vocabulary import complete
from scrapy_dripper.structures.items import Items, Paragraph, Quote, Runs, Title, line_text

if TYPE_CHECKING:
    from lxml.etree import _Element

_CALLOUT_NAMES = {
    "note": "note notice info information seealso see-also abstract summary todo example question help faq default "
    "primary secondary nota notes remark",
    "tip": "tip hint success check done",
    "important": "important",
    "warning": "warning attention",
    "caution": "caution danger error bug failure fail missing",
}
ALERTS = {name: alert for alert, names in _CALLOUT_NAMES.items() for name in names.split()}
"""Names of call-outs in generators, and the matching GitHub alerts."""

CALLOUT_FAMILIES = frozenset(
    "admonition admonitionblock markdown-alert custom-block hint-container theme-admonition callout starlight-aside "
    "hint blockquote-tag confluence-information-macro alert".split()
)
_SITE_ALERTS = frozenset({"alert-dismissible", "alert-dismissable", "fade", "alert-banner"})
"""Classes of site-wide alerts."""
_NEXT_THEME = frozenset("default primary info success warning danger".split())
"""Classes that Hexo's NexT theme combines with ``note``."""

_PLAIN_CALLOUTS = frozenset("note tip hint important warning caution danger attention seealso notice".split())
"""Classes that make a call-out by themselves."""

_kind = re.compile(
    r"(?:markdown-alert|theme-admonition|callout|starlight-aside-|hint|blockquote-tag|confluence-information-macro|alert"
    r"|admonition)-([a-z]+)"
).fullmatch
_title = re.compile(
    r"(?:^|\s)(?:(?:admonition|markdown-alert|custom-block|hint-container|callout|starlight-aside_|blockquote-tag|alert)"
    r"-(?:title|header|heading)(?:-container)?|starlight-aside__title|note__?title|notetitle|note-title|admonitionHeading\w*|title)(?=\s|$)"
).search
callout_names = complete((*sorted(CALLOUT_FAMILIES), *sorted(_PLAIN_CALLOUTS)))
"""Matches a name that each class attribute of a call-out has in some case, after white space. It also matches other
attributes."""


def has_callout_class(name: str) -> bool:
    """Return True if an element with this class attribute may be a call-out."""
    return _alert_of(name[:LONGEST_CLASS]) != ""


def alert_of(element: _Element) -> str:
    """Return the GitHub alert that matches a call-out, in lower case, or an empty string for other elements."""
    name = (element.get("class") or "")[:LONGEST_CLASS]
    if element.tag == "details":
        return next((ALERTS[token] for token in name.split() if token in ALERTS), "")
    found = _alert_of(name)
    if element.tag in ("p", "span") and _PLAIN_CALLOUTS.issuperset(name.split()):
        return ""  # the class alone says too little
    return "" if found == "note" and element.tag in ("table", "td", "th", "li", "a", "button", "label") else found


@lru_cache(4_096)
def _alert_of(name: str) -> str:
    tokens = name.split()
    known = frozenset(tokens)
    if not known.isdisjoint(_SITE_ALERTS):
        return ""
    if len(tokens) == 1 and name.strip().isupper():  # Microsoft's style
        return ALERTS.get(name.strip().lower(), "") if name.strip().lower() in _CALLOUT_NAMES else ""
    if "note" in known and not known.isdisjoint(_NEXT_THEME):
        return next(ALERTS[token] for token in tokens if token in _NEXT_THEME)
    plain = [ALERTS[token] for token in tokens if token in _PLAIN_CALLOUTS]
    # Those of older generators, and DITA's, such as "note caution note_caution".
    if plain and all(token in _PLAIN_CALLOUTS or token.startswith("note") for token in tokens):
        return next((kind for kind in plain if kind != "note"), "note")
    if known.isdisjoint(CALLOUT_FAMILIES):
        return ""
    for token in tokens:
        found = _kind(token)
        if found and found[1] in ALERTS:
            return ALERTS[found[1]]
    strict = known & {"admonition", "admonitionblock", "custom-block", "hint-container"}
    kinds = [ALERTS[token] for token in tokens if token in ALERTS] if strict else []
    return kinds[0] if kinds else "note" if "admonition" in known else ""


def callout_title(callout: _Element, alert: str) -> _Element | None:
    """Return the title of a call-out: an element with a title class, the summary, or a paragraph with its kind."""
    for node in islice(callout.iter(), 1, 12):
        if node.tag == "summary" or (isinstance(node.tag, str) and _title((node.get("class") or "")[:LONGEST_CLASS])):
            return node
    first = next(iter(callout), None)
    if first is not None and first.tag == "p" and not (callout.text or "").strip() and len(first) == 0:
        return first if says(first.text or "", alert) else None
    return None


def says(title: str, alert: str) -> bool:
    """Return True if a title only repeats the name of the alert."""
    return ALERTS.get(title.strip(" \t\r\n:!.").lower().replace(" ", "-")) == alert


def callout(items: Items, alert: str, title: Runs) -> Items:
    """Return a call-out with its items. A title that only repeats the name of the alert is left out."""
    first = items[0] if len(items) > 1 else None
    named = isinstance(first, (Title, Paragraph)) and says(line_text(first.runs), alert)
    kept = items[1:] if named else items
    return (Quote(kept, alert, title),) if kept else (Paragraph(title),) if title else ()
