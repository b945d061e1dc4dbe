"""Parse text to a tree like that of a browser, and hold the tree to its limits.

lxml does the work, or :mod:`~scrapy_dripper.page.recover` for documents that lxml would silently cut off. Two things
need a repair. libxml2 implements HTML 4: it treats ``<source>`` and ``<embed>`` as elements with content, puts HTML5
content before the first HTML 4 tag into the ``<head>``, does not end a paragraph at a ``<section>``, and lets an
unclosed ``<svg>``, or a ``<template>`` with an unclosed tag, absorb the rest of the page. And scripts move parts of a
page before a reader sees it: those of shadow trees, and those that React sends late.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, cast

import numpy as np
from lxml import etree, html

from scrapy_dripper.characters import MAX_ATTRIBUTES, append_text, looks_binary, set_attributes, xml_text
from scrapy_dripper.config import Config
from scrapy_dripper.data import FallbackReason
from scrapy_dripper.page.charset import in_utf8
from scrapy_dripper.page.page import Over, PageError
from scrapy_dripper.page.tags import ENDS_PARAGRAPH, METADATA, SVG_BREAKOUT, SVG_HTML, UNSEEN, VOID

if TYPE_CHECKING:
    from lxml.html import HtmlElement


MAX_DEPTH = 200
"""Maximum depth of a recovered tree, low enough for recursive code. Deeper elements become siblings."""


_STRIDE = 16_384
_tag = re.compile(rb"<[a-zA-Z]").search
_attribute = re.compile(rb"""=\s*(?:"[^"]*"|'[^']*')|[\s/"'][^\s/"'>=]""").finditer  # a value to skip, or a name
_opening_quote = re.compile(rb"""=\s*(["'])""").search
_one_class = etree.ElementDefaultClassLookup(html.HtmlElement, html.HtmlComment, html.HtmlProcessingInstruction)
"""Makes all elements of one class. The lookup of lxml.html runs Python code for each element, and takes as long as the
rest of a walk over a tree. Only forms and their fields would have other classes."""

_wbr = re.compile(rb"<wbr\b[^<>]{0,99}>(?!</wbr)", re.I)
_IN_WBR = ("td", "th", "tr", "li", "dt", "dd")
"""Elements that a ``<wbr>`` in the element before swallows, if that has no end tag. Browsers know that it is empty."""
_content = re.compile(r"[^\s\0\ufeff]").search


def parse(
    text: str, data: bytes | None = None, *, flat: bool = False, depth: int = MAX_DEPTH, streamed: bool = True
) -> HtmlElement:
    """Return the ``<html>`` element of a document, with a ``<body>`` or a ``<frameset>``.

    ``data`` is the text in UTF-8, as :func:`~scrapy_dripper.page.charset.decoded` returns it, if the caller has it.
    With ``flat``, elements deeper than ``depth`` become siblings. With ``streamed``, declarative shadow trees are shown
    in place, and parts of a React page that were sent late are moved to theirs, unless ``flat`` is set. Raise
    :exc:`PageError` with reason ``empty_body``, ``not_html``, ``parse_error`` or ``truncated_parse``.
    """
    if _content(text) is None:
        raise PageError(FallbackReason.EMPTY_BODY, "the document is empty")
    kind = looks_binary(text)
    if kind is not None:
        raise PageError(FallbackReason.NOT_HTML, f"the document is {kind}")
    if data is None:
        data = in_utf8(text)
    if b"\0" in data:
        data = data.replace(b"\0", b"")  # as browsers do in text
    streamed = streamed and b"<template" in data  # of shadow trees, and in the places of parts
    if streamed:
        data = with_shadow_trees(data)
    streamed = streamed and not flat and has_parts(data)  # moving a deep part would make a flat tree deep again
    root = None if flat or has_attribute_run(data) else _tree(data, comments=streamed)
    if root is None:
        from scrapy_dripper.page.recover import RecoveryError, recover  # for few pages

        try:
            root = recover(without_templates(data), depth)
        except RecoveryError as error:
            raise PageError(FallbackReason.TRUNCATED_PARSE, str(error)) from None
    elif (b"<wbr" in data or b"<WBR" in data) and any(cell.getparent().tag == "wbr" for cell in root.iter(*_IN_WBR)):
        closed = _tree(_wbr.sub(rb"\g<0></wbr>", data), comments=streamed)
        root = root if closed is None else closed
    if streamed:
        put_in_place(root)
    repair(root)
    return root


def _tree(data: bytes, *, comments: bool, may_repeat: bool = True) -> HtmlElement | None:
    """Return the tree of a UTF-8 document, also with its comments, or None if the parser reached one of its limits."""
    # The text was encoded as UTF-8, so the encoding overrides what an XML or meta declaration says.
    parser = html.HTMLParser(
        encoding="utf-8",
        huge_tree=True,
        recover=True,
        no_network=True,
        remove_comments=not comments,
        remove_pis=True,
        collect_ids=False,
    )
    parser.set_element_class_lookup(_one_class)
    try:
        root = etree.fromstring(data, parser)
    except etree.LxmlError as error:
        if getattr(error, "code", None) == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError("the parser ran out of memory") from None
        raise PageError(FallbackReason.PARSE_ERROR, f"{type(error).__name__}: {error}") from None
    # At a limit, the parser drops the rest of the document without an exception. Only the log shows it.
    for entry in parser.error_log:
        if entry.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT:
            return None
        mismatch = may_repeat and entry.type == etree.ErrorTypes.ERR_TAG_NAME_MISMATCH
        if mismatch and ": template and " in entry.message:
            may_repeat = False  # once only, or hostile pages would be parsed again and again
            without = without_templates(data)  # the rest of the page ended up in an unclosed template
            if len(without) < len(data):
                return _tree(without, comments=comments, may_repeat=False)
    if root is None:  # nothing but comments
        root = parser.makeelement("html")
    return _one_body(cast("HtmlElement", root))


def _one_body(root: HtmlElement) -> HtmlElement:
    """Return the root with all content in its body, as in a browser.

    libxml2 puts content after ``</body>`` beside the body, and content after ``</html>`` into a second root. About 2 %
    of pages have text there.
    """
    body = root.find("body")
    if body is None:
        if root.find("frameset") is not None:
            return root
        body = cast("HtmlElement", etree.SubElement(root, "body"))
    head = root.find("head")
    if head is not None and root.index(head) < root.index(body):
        text, head.tail = xml_text(head.tail or ""), None  # with crossed tags, content can follow the head
        _put_first(body, text, root[root.index(head) + 1 : root.index(body)])
    after = False
    texts: list[str | None] = []  # joined once, since adding them one by one would be quadratic
    for top in [root, *root.itersiblings(etree.Element)]:
        if top is not root:
            texts += [" ", top.text]  # the parser has dropped the white space before it
        for child in list(top):
            if child is body:
                after = True
                texts.append(body.tail)
                body.tail = None
            elif not after:
                continue
            elif child.tag in ("head", "body"):
                texts.append(child.text)
                if len(child):
                    _add(body, texts)
                    body.extend(list(child))
                texts.append(child.tail)
                top.remove(child)
            else:
                _add(body, texts)
                body.append(child)  # with its tail
    _add(body, texts)
    return root


def _put_first(body: HtmlElement, text: str, elements: list[HtmlElement]) -> None:
    """Move text and the elements behind it to the start of a body."""
    if elements:
        elements[-1].tail = xml_text((elements[-1].tail or "") + (body.text or ""))
        body.text, body[:0] = text, elements
    elif text:
        body.text = text + xml_text(body.text or "")


def _add(body: HtmlElement, texts: list[str | None]) -> None:
    text = "".join(filter(None, texts))
    texts.clear()
    if text and not text.isspace():
        append_text(body, text)


# ---------------------------------------------------------------------- differences from browsers
_EMPTIED = "dripper-emptied"
_ENDING, _BREAKING = frozenset({"dt", *ENDS_PARAGRAPH}), SVG_BREAKOUT | {"font"}
_literal = rb"(?P<literal>script|style|title|textarea|xmp|iframe|noembed|noframes|plaintext)\b"
# A template must not hold literal text or comments, because its apparent start tag may be inside a script. An empty one
# does no harm, and may mark the place of a streamed part.
_template = re.compile(
    rb"<template\b[^<>]*>(?!</)[^<]*(?:<(?!/?(?:template\b|" + _literal + rb")|!--)[^<]*)*</template\s*>", re.I
)
_NESTED_TEMPLATES = 4
SHADOW_ROOT = b"shadow-root"
"""The tag of a shadow tree. As a custom element, it may stand in a line or hold blocks."""
_template_tags = re.compile(rb"<(?P<close>/?)(?:" + _literal + rb"|template\b(?P<attributes>[^<>]*)>)", re.I).finditer
_is_shadow = re.compile(rb"\sshadow(?:root)?mode\s*=\s*[\"']?(?:open|closed)\b", re.I).search


def without_templates(data: bytes) -> bytes:
    """Return a document without its templates, which are never shown.

    libxml2 ignores ``</template>`` while a ``<div>`` in the template is open, so the rest of the page would end up in
    it.
    """
    for _ in range(_NESTED_TEMPLATES):
        if b"<template" not in data:
            break
        data, found = _template.subn(b"", data)
        if not found:
            break
    return data


def with_shadow_trees(data: bytes) -> bytes:
    """Return a document with its declarative shadow trees as elements, in linear time. Other templates stay.

    A browser attaches ``<template shadowrootmode="open">`` to the element around it (HTML standard, 4.12.3). It is the
    one template that is shown. What a ``<slot>`` in it shows is the content of that element, which follows. In MHTML,
    Chromium names the attribute ``shadowmode``.
    """
    if b"shadowrootmode" not in data and b"shadowmode" not in data:
        return data
    is_shown: list[bool] = []  # of the templates that are open
    pieces: list[bytes] = []
    written = 0
    within: bytes | None = None  # the element whose literal text it is, such as that of a script, in which no tags are
    for tag in _template_tags(data):
        name, close = tag["literal"], tag["close"]
        if within is not None:
            if name and close and name.lower() == within != b"plaintext":  # which never ends
                within = None
        elif name:
            within = None if close else name.lower()
        else:
            if not close:
                is_shown.append(_is_shadow(tag["attributes"]) is not None)
            if is_shown and (is_shown.pop() if close else is_shown[-1]):
                pieces += [data[written : tag.start()], b"<%s%s>" % (close, SHADOW_ROOT)]
                written = tag.end()
    return b"".join([*pieces, data[written:]])


def repair(root: HtmlElement) -> None:
    """Change a parsed tree to match that of a browser, in linear time."""
    special = list(root.iter("svg", *VOID, *_ENDING))  # one walk: each takes a tenth of the time of the parser
    special += _empty([element for element in special if element.tag in VOID and (len(element) or element.text)], root)
    _leave_pictures([element for element in special if element.tag == "svg"], root)
    for element in special:
        if element.tag == "image":  # this includes SVG images, which are never used
            element.tag = "img"
    _end_paragraphs([element for element in special if element.tag in _ENDING], root)
    _leave_head(root)


def _end_paragraphs(elements: list[HtmlElement], root: HtmlElement) -> None:
    """End paragraphs before HTML5 elements that end them in a browser (HTML standard, 13.2.6.4.7), and terms before the
    next term.

    Some sites omit ``</p>`` to save bytes. Without this, a whole article could end up in the paragraph before it, and
    be hidden with it.
    """
    ended: dict[HtmlElement, HtmlElement] = {}  # paragraph to the first element that ends it
    for element in elements:
        paragraph = element.getparent()
        if paragraph is not None and paragraph.tag == ("dt" if element.tag == "dt" else "p"):
            ended.setdefault(paragraph, element)
    for paragraph, first in ended.items():
        # A copy before the paragraph gets the content that it keeps; then its own tags are stripped. The rest of its
        # content, which can be most of the page, is not moved.
        twin = paragraph.makeelement(paragraph.tag)
        set_attributes(twin, paragraph.attrib)
        twin.text = xml_text(paragraph.text or "")
        paragraph.text = None
        paragraph.addprevious(twin)
        twin.extend(paragraph[: paragraph.index(first)])
        paragraph.tag = _EMPTIED
    if ended:
        etree.strip_tags(root, _EMPTIED)


def _empty(elements: list[HtmlElement], root: HtmlElement) -> list[HtmlElement]:
    """Move the content of each element to after the element. Return the elements that stand in their places."""
    twins: list[HtmlElement] = []
    for element in elements:
        # Insert an empty copy before the element, then strip its tags. Its content is not moved, however deep it is.
        twin = element.makeelement(element.tag)
        set_attributes(twin, element.attrib)
        element.addprevious(twin)
        element.tag = _EMPTIED
        twins.append(twin)
    if elements:
        etree.strip_tags(root, _EMPTIED)
    return twins


def _leave_pictures(pictures: list[HtmlElement], root: HtmlElement) -> None:
    """End each SVG where a browser does: at the first HTML tag in it, such as ``<p>``."""
    whole: set[HtmlElement] = set()
    for picture in pictures:  # outer ones first
        if picture in whole or picture.tag == _EMPTIED:
            continue
        if _BREAKING.isdisjoint({node.tag for node in picture.iter()}):  # as nearly all
            whole.update(picture.iter("svg"))
            continue
        walk = etree.iterwalk(picture, events=("start",))
        for _, node in walk:
            if node.tag in SVG_HTML or (node.tag in UNSEEN and node.tag != "svg"):
                walk.skip_subtree()
            elif _breaks_out(node):
                _end_before(node, picture)
                break
        else:
            whole.update(picture.iter("svg"))
    if len(whole) < len(pictures):
        etree.strip_tags(root, _EMPTIED)


def _breaks_out(node: HtmlElement) -> bool:
    """Return True for a tag that ends an SVG (HTML 13.2.6.5)."""
    if node.tag == "font":
        return any(node.get(name) is not None for name in ("color", "face", "size"))
    return node.tag in SVG_BREAKOUT


def _end_before(first: HtmlElement, picture: HtmlElement) -> None:
    """Remove everything before an element of an SVG, and mark the tags around the element to be stripped."""
    node = first
    while node is not picture:
        up = node.getparent()
        for sibling in list(node.itersiblings(preceding=True)):
            up.remove(sibling)
        up.text = None
        up.tag = _EMPTIED
        node = up


def _leave_head(root: HtmlElement) -> None:
    """Move everything in the head, from the first tag on that is not allowed there, to the start of the body."""
    head, body = root.find("head"), root.find("body")
    if head is None or body is None:
        return
    for i, child in enumerate(head):
        stays = child.tag in METADATA
        if stays and (not child.tail or child.tail.isspace()):
            continue
        # For example, text after an always empty element such as <bgsound>.
        lead = xml_text(child.tail or "") if stays else ""
        moved = head[i + stays :]
        if stays:
            child.tail = None
        _put_first(body, lead, moved)
        return


# ---------------------------------------------------------------------- streamed parts
# React sends late parts of a page hidden at its end, with scripts that move each one to its place. The place is marked
# by ``<template id="B:n"></template>``, followed by a placeholder up to ``<!--/$-->``, or by ``<template
# id="P:n"></template>`` alone. The part is ``<div hidden id="S:m">``. This does what the scripts do
# (``completeBoundary`` and ``completeSegment`` in React's server renderer). Otherwise, headings would come before the
# introduction, with "Loading" in their places. The calls in the scripts tell where each part belongs; without calls, n
# equals m, as from React 19 on.
MAX_PARTS = 1_000
"""Maximum number of parts to move, and of elements in a placeholder."""
MAX_COMMENTS = 10_000
"""Maximum number of comments in a page whose parts are moved. Adjacent text nodes take quadratic time."""

_PART = "dripper-part"
_BEGIN, _END = ("$", "$?", "$!", "$~"), "/$"
_calls = re.compile(r'\$R([CRS])\("([BPS]:[0-9a-f]+)","([BPS]:[0-9a-f]+)"').findall
_number = re.compile("S:([0-9a-f]+)").fullmatch


def has_parts(data: bytes) -> bool:
    """Return True if a document may have parts to move."""
    # React's spelling only; checking others would cost 5 % of the parsing time each.
    return b'id="S:' in data and data.count(b"<!--") <= MAX_COMMENTS


def put_in_place(root: HtmlElement) -> None:
    """Move the parts of a tree to their places, and remove the marks and all comments."""
    slots: dict[str, HtmlElement] = {}
    for slot in root.iter("template"):
        if (slot.get("id") or "")[:2] in ("B:", "P:") and not len(slot) and not slot.text:
            slots.setdefault(slot.get("id", ""), slot)
            slot.tag = _PART
    if slots:
        parts = [div for div in root.iter("div") if "hidden" in div.attrib and _number(div.get("id", ""))]
        place_of = _places(root)
        for part in islice(parts, MAX_PARTS):
            name = place_of.get(part.get("id", "")) or _same_number(part.get("id", ""), slots)
            place = slots.pop(name, None)
            if place is None or any(node is part or node.tag in UNSEEN for node in place.iterancestors()):
                continue
            if name.startswith("B"):
                _remove_fallback(place)
            _move(part, place)
    etree.strip_tags(root, _PART, etree.Comment)


def _places(root: HtmlElement) -> dict[str, str]:
    """Return the place of each part, by the part's id, from the calls in scripts."""
    places: dict[str, str] = {}
    for script in root.iter("script"):
        text = script.text or ""
        if "$R" in text:
            for kind, one, other in _calls(text):
                part, place = (one, other) if kind == "S" else (other, one)
                places.setdefault(part, place)
    return places


def _same_number(part: str, slots: dict[str, HtmlElement]) -> str:
    """Return the id of the only slot with the number of a part, or an empty string if there are two or none."""
    found = [name for name in (f"B{part[1:]}", f"P{part[1:]}") if name in slots]
    return found[0] if len(found) == 1 else ""


def _remove_fallback(slot: HtmlElement) -> None:
    """Remove the placeholder after a slot."""
    shown: list[HtmlElement] = []
    depth = 0
    for sibling in islice(slot.itersiblings(), MAX_PARTS):
        mark = sibling.text if sibling.tag is etree.Comment else None
        if mark == _END and depth == 0:
            break
        depth += (mark in _BEGIN) - (mark == _END)
        shown.append(sibling)
    else:
        return
    parent = slot.getparent()
    slot.tail = None
    for element in shown:
        parent.remove(element)  # including its tail


def _move(part: HtmlElement, slot: HtmlElement) -> None:
    tail, part.tail = part.tail, None
    if tail:
        stays = part.makeelement(_PART)
        stays.tail = xml_text(tail)
        part.addprevious(stays)
    part.tag = _PART
    slot.append(part)


MAX_NODES = 200_000
"""Maximum number of elements in any configuration, which take about a second. The largest of 1,310 real pages has
16,000."""


def enforce(root: HtmlElement, data: bytes, config: Config) -> Over | None:
    """Enforce the limit of the configuration on the elements of a tree that was parsed from ``data``.

    If the tree exceeds it, raise :exc:`PageError` with reason ``oversize``. With ``oversize="truncate"``, cut the tree
    off instead and return what it exceeds.
    """
    most = min(config.limits.nodes, MAX_NODES)
    # Skip the count for short documents: almost every element needs a "<". ``data.count`` takes four times as long.
    tags = len(data) if len(data) <= most else int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == ord("<")))
    if 2 * tags + 4 <= most:  # a parser adds some without a tag, such as ``<html>``
        return None
    count = sum(1 for _ in root.iter())
    if count <= most:
        return None
    setting = 'DRIPPER_LIMITS["nodes"]'
    over = Over(f"{count:,} elements, over {setting} = {most:,}", setting)
    if most < config.limits.nodes:  # a higher setting would change nothing
        over = Over(f"more than {MAX_NODES:,} elements")
    accepted(over, config)
    cut_off(root, most)
    return over


def accepted(over: Over, config: Config) -> Over:
    """Return a limit that a page exceeds, if such pages are truncated. Raise :exc:`PageError` if they are not."""
    if config.oversize != "truncate":
        raise PageError(FallbackReason.OVERSIZE, *over)
    return over


def cut_off(root: HtmlElement, most: int) -> bool:
    """Remove all but the first ``most`` elements of a tree. Return False if it has no more than that."""
    node = next(islice(root.iter(), most, None), None)
    if node is None:
        return False
    first = node
    while (parent := node.getparent()) is not None:
        for later in list(node.itersiblings()):
            parent.remove(later)
        node.tail = None
        node = parent
    parent = first.getparent()
    if parent is not None:
        parent.remove(first)
    return True


def has_attribute_run(data: bytes) -> bool:
    """Return True if a tag may have more than :data:`MAX_ATTRIBUTES` attributes. False alarms are possible.

    The function checks only the last ``>`` in each stride of 16 kB. If it ends a tag or is part of text, nothing before
    it matters. If it is inside a quoted value, the last quote before it opens that value, and a run of attributes may
    follow the value.
    """
    here, size = 0, len(data)
    budget = 2 * size  # the ranges to search can overlap
    while here + _STRIDE < size and budget > 0:
        last = data.rfind(b">", here, here + _STRIDE)
        if last < 0:
            end = data.find(b">", here + _STRIDE)
            end = size if end < 0 else end
            tag = _tag(data, here, end)
            if tag is not None and _too_many(data, tag.start(), end):
                return True
            here = end + 1
            continue
        for quote in (b'"', b"'"):
            opening = data.rfind(quote, here, last)
            if opening > 0 and data[here:opening].rstrip().endswith(b"="):
                closing = data.find(quote, last)
                if closing > 0:
                    end = _tag_end(data, closing + 1)
                    budget -= end - closing
                    if _too_many(data, closing + 1, end):
                        return True
        here = last + 1
    return budget <= 0 < size


def _too_many(data: bytes, start: int, end: int) -> bool:
    """Return True if the inside of a tag may have too many attributes. An attribute with a value counts twice."""
    if end - start < 4 * MAX_ATTRIBUTES:
        return False
    return any(i >= 2 * MAX_ATTRIBUTES for i, _ in enumerate(_attribute(data, start, end)))


def _tag_end(data: bytes, start: int) -> int:
    """Return the end of a tag, searching from ``start``, which is inside the tag but outside of a value."""
    here, end = start, -1
    while True:
        if end < here:
            end = data.find(b">", here)
            end = len(data) if end < 0 else end
        opening = _opening_quote(data, here, end)
        closing = data.find(opening[1], opening.end()) if opening else -1
        if closing < 0:
            return end
        here = closing + 1
