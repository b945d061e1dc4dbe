"""Checks for active content in HTML with two parsers: lxml's, which wrote it, and one like a browser's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from lxml import html as lxml_html

from scrapy_dripper.engines.base import EngineError, Labels
from scrapy_dripper.page.page import Page
from scrapy_dripper.testing import FakeEngine

_ACTIVE = frozenset(
    "script style link meta base iframe frame object embed applet portal fencedframe svg template animate set use "
    "foreignobject noscript xmp plaintext textarea title noembed noframes marquee isindex layer xml".split()
)
_URLS = frozenset("href src srcset poster cite data action formaction background lowsrc dynsrc longdesc ping".split())
_RUNS = re.compile(r"(?:feed:|view-source:|jar:)*(?:java|vb|live)script:|mocha:|data:(?!image/(?!svg))")
_WHITE = re.compile("[\\0-\x20\x7f-\xa0]")


class Silent(FakeEngine):
    """An engine that labels nothing, so that the fallback gets every page."""

    def answer(self, page: Page) -> Labels | EngineError:
        """Return an error."""
        return EngineError("on purpose")


_SUSPICIOUS = re.compile(
    rf"<(?:{'|'.join(sorted(_ACTIVE))})\b|(?:script|data|mocha)\s*:|on[a-z]+\s*=|srcdoc|style\s*=|http-equiv|action|ping",
    re.I,
)


def active(html: str) -> str | None:
    """Return the first danger in a document, or None. Most documents need not be parsed for it."""
    if not _SUSPICIOUS.search(_WHITE.sub("", unescape(html))) and not _SUSPICIOUS.search(html):
        return None
    return next(iter(dangers(html)), None)


def runs(url: str) -> bool:
    """Return True if a browser that follows or loads the URL could run code from it."""
    return _RUNS.match(_WHITE.sub("", url).lower()) is not None


def dangers(html: str) -> list[str]:
    """Return what is dangerous in a document; the list is empty if nothing is."""
    return [f"{tag} {name}={value}" for tag, name, value in _found(html)]


def _found(html: str) -> Iterator[tuple[str, str, str]]:
    for tag, attributes in elements(html):
        formula = tag == "script" and attributes.get("type", "").strip().lower().startswith("math/")
        player = tag == "iframe" and not attributes.keys() & {"src", "srcdoc"}
        if tag in _ACTIVE and not (player or (formula and "src" not in attributes)):
            yield tag, "", ""
        for name, value in attributes.items():
            address = _WHITE.sub("", value).lower()
            if (
                name.startswith("on")
                or name in ("style", "srcdoc", "formaction", "action", "background", "http-equiv", "ping", "autofocus")
                or (":" in name and name != "xml:lang")
                or (name in _URLS and any(map(_RUNS.match, [address, *address.split(",")])))
                or (name.startswith("data-") and re.match("(?:java|vb)script:", address))
            ):
                yield tag, name, value


def elements(html: str) -> list[tuple[str, dict[str, str]]]:
    """Return tags and attributes of all elements, as libxml2 and, if it is there, a parser of HTML 5 find them."""
    found = [
        (node.tag.lower(), {str(name).lower(): str(value) for name, value in node.attrib.items()})
        for node in lxml_html.document_fromstring(html or "<p>").iter()
        if isinstance(node.tag, str)
    ]
    try:
        from resiliparse.parse.html import HTMLTree, NodeType
    except ImportError:
        return found
    # Not by a selector: each element of its answer is searched for from the start of the document.
    nodes = [node for node in HTMLTree.parse(html).document if node.type == NodeType.ELEMENT]
    return found + [(node.tag.lower(), {name.lower(): node[name] or "" for name in node.attrs or ()}) for node in nodes]
