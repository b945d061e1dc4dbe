"""Parse text to a tree, with lxml or, for documents that lxml would silently cut off, with a slower parser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from lxml import etree, html

from scrapy_dripper.binary import looks_binary
from scrapy_dripper.data import FallbackReason
from scrapy_dripper.page.charset import in_utf8
from scrapy_dripper.page.page import PageError
from scrapy_dripper.page.recover import MAX_DEPTH, RecoveryError, append_text, has_attribute_run, recover
from scrapy_dripper.page.repair import repair, with_shadow_trees, without_templates
from scrapy_dripper.page.streamed import has_parts, mark, put_in_place

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_one_class = etree.ElementDefaultClassLookup(html.HtmlElement, html.HtmlComment, html.HtmlProcessingInstruction)
"""Makes all elements of one class. The lookup of lxml.html runs Python code for each element, and takes as long as the
rest of a walk over a tree. Only forms and their fields would have other classes."""

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
    if streamed:
        data = with_shadow_trees(data)
    streamed = streamed and not flat and has_parts(data)  # moving a deep part would make a flat tree deep again
    if streamed:
        data = mark(data)
    root = None if flat or has_attribute_run(data) else _tree(data)
    if root is None:
        try:
            root = recover(without_templates(data), depth)
        except RecoveryError as error:
            raise PageError(FallbackReason.TRUNCATED_PARSE, str(error)) from None
    if streamed:
        put_in_place(root)
    repair(root)
    return root


def _tree(data: bytes, *, may_repeat: bool = True) -> HtmlElement | None:
    """Return the tree of a UTF-8 document, or None if the parser reached one of its limits."""
    # The text was encoded as UTF-8, so the encoding overrides what an XML or meta declaration says.
    parser = html.HTMLParser(
        encoding="utf-8",
        huge_tree=True,
        recover=True,
        no_network=True,
        remove_comments=True,
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
                return _tree(without, may_repeat=False)
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
        body = cast("HtmlElement", root.makeelement("body"))
        head = root.find("head")
        if head is None:
            root.append(body)
        else:  # with crossed tags, content can follow the head
            body.text, head.tail = head.tail, None
            root.insert(root.index(head) + 1, body)
    after = False
    texts: list[str | None] = []  # joined once, since adding them one by one would be quadratic
    for top in [root, *root.itersiblings()]:
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


def _add(body: HtmlElement, texts: list[str | None]) -> None:
    text = "".join(filter(None, texts))
    texts.clear()
    if text and not text.isspace():
        append_text(body, text)
