"""Collect what the inspector shows of a document, and write it as one self-contained HTML file.

The file has a static copy of the page: HTML that runs and loads nothing, isolated from the rest, with a mark on each
block. Many pages are written into a folder, each with its view beside it, where ``learn`` finds corrections.
"""

from __future__ import annotations

import hashlib
import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from lxml import etree

from scrapy_dripper.characters import without_controls
from scrapy_dripper.choose import ScoredPage, choose
from scrapy_dripper.choose.user_rules import marks
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction, FallbackReason
from scrapy_dripper.engines import profile_of
from scrapy_dripper.engines.base import EngineError, Labels
from scrapy_dripper.engines.qwen3.profile import simplify
from scrapy_dripper.engines.tagger.engine import Tagger
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.inspection import VIEW, html_file, part
from scrapy_dripper.inspection.answers import ANSWERS, in_utf8, task_for
from scrapy_dripper.output.main_html import ATTRIBUTES, MATHML
from scrapy_dripper.page import Page, PageError, document_tree, read
from scrapy_dripper.page.page import FLAGS as BITS
from scrapy_dripper.page.tags import TAGS
from scrapy_dripper.paths import portable, replace_file

MAX_BYTES = 80_000
"""Maximum size of a form of the output that is shown, in bytes of UTF-8."""
REASONS = 2
"""Maximum number of groups of features that are named for a block, and against it."""
LEAST_CHANGE = 0.02
"""Minimum change of the probability for a group of features to be named."""

_FLAGS = (
    "NAV HEADER FOOTER ASIDE MAIN ARTICLE FORM DIALOG BUTTON HEADING HIDDEN NOSCRIPT TABLE LIST LINK FIGURE QUOTE CODE "
    "DETAILS"
).split()
FLAGS = tuple("main-element" if name == "MAIN" else name.lower() for name in _FLAGS)
"""The names of the flags that are shown. No flag has the name of a label."""


def look(document: Document, extractor: Extractor, name: str, stem: str) -> dict[str, Any]:
    """Return all that the inspector shows of a document, as its script reads it. No document makes this function raise.

    ``name`` and ``stem`` are those of the input, as for :func:`~scrapy_dripper.inspection.answers.sheet`.

    ``groups`` and ``rules`` are the names of what the blocks have as indexes: groups of features that can be named, and
    the rules that decided a label. The first rule stands for the probabilities, and is empty.
    """
    config = document.config or extractor.config
    document = replace(document, config=replace(config, content_field="content"))
    extraction = extractor.extract([document])[0]
    page = _read(document, config, extractor, extraction.fallback_reason)
    view: dict[str, Any] = {"snapshot": "", "styles": [], "blocks": [], "groups": [], "rules": [""]}
    if page is not None:
        influences = extractor.engine.influences(page) if isinstance(extractor.engine, Tagger) else {}
        rules = _rules(page, config, extractor, extraction)
        names = list(dict.fromkeys(["", *rules]))
        view = {
            "snapshot": snapshot(page),
            "styles": style_sheets(document, config),
            "blocks": _blocks(page, extraction, influences, [names.index(rule) for rule in rules]),
            "groups": list(influences),
            "rules": names,
        }
    task = task_for(document, name, stem, page) if page is not None else extraction.error or "the page has no blocks"
    return view | {
        "name": name,
        "title": extraction.title or (page.title if page else None) or "",
        "url": document.url,
        "facts": _facts(extraction),
        "flags": FLAGS,
        "forms": _forms(page, extraction),
        "markdown_html": rendered(extraction.markdown or ""),
        "task": task if isinstance(task, dict) else None,
        "no_task": task if isinstance(task, str) else "",
    }


def _read(document: Document, config: Config, extractor: Extractor, reason: FallbackReason | None) -> Page | None:
    """Return the page of a document, or None if it has no blocks or should not be read in this process."""
    if reason in (FallbackReason.TIMEOUT, FallbackReason.WORKER_ERROR):
        return None
    try:
        page = read(document, config, profile_of(extractor.engine))
    except Exception:  # The extraction has the error.
        return None
    return page if len(page.blocks) else None


def rendered(markdown: str) -> str | None:
    """Return Markdown as HTML, or None if the renderer is not installed."""
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        return None
    return str(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(_beginning(markdown)))


def _facts(extraction: Extraction) -> list[tuple[str, str]]:
    kind = extraction.page_type
    likely = extraction.details.get("page_type_probability")
    facts = [("source", extraction.source)]
    if extraction.fallback_reason is not None:
        facts.append(("reason", str(extraction.fallback_reason)))
    if extraction.error:
        facts.append(("error", extraction.error[:1_000]))
    if kind is not None:
        facts.append(("page type", kind if likely is None else f"{kind} ({likely:.0%})"))
    if extraction.quality is not None:
        facts.append(("quality", f"{extraction.quality:.2f}"))
    facts.append(("words", f"{len((extraction.text or '').split()):,}"))
    if extraction.truncated:
        facts.append(("truncated", "only the first part of the page was looked at"))
    return facts


def _rules(page: Page, config: Config, extractor: Extractor, extraction: Extraction) -> list[str]:
    """Return for each block the rule that decided its label; empty if the probabilities did, or if none is known."""
    if len(extraction.labels) != len(page.blocks):
        return [""] * len(page.blocks)
    answer: Labels | EngineError | None = None
    with suppress(Exception):  # The extraction has the error.
        (answer,) = extractor.engine.label([page])
    if isinstance(answer, Labels):
        return choose(ScoredPage(page, answer, marks(page, config.rules))).reasons()
    removed = extraction.details.get("removed", {})  # a method may say why
    why = {block: f"{extraction.source}: {reason}" for reason, blocks in removed.items() for block in blocks}
    return [why.get(block, "") for block in range(len(page.blocks))]


def _blocks(
    page: Page, extraction: Extraction, influences: dict[str, Any], rules: Sequence[int]
) -> list[tuple[float | None, int, list[int], list[tuple[int, float]], int]]:
    """Return the probability, the label, the flags, the strongest groups of features and the rule of each block.

    They have no names, because there can be thousands. The probability is None if no engine answered.
    """
    n = len(page.blocks)
    labelled = len(extraction.labels) == n
    flags = page.tree.flags[page.blocks.context] | page.tree.flags[page.blocks.leaf]
    changes = np.array(list(influences.values())).T if influences else np.zeros((n, 0))
    return [
        (
            round(extraction.probabilities[k], 4) if labelled else None,
            int(labelled and extraction.labels[k]),
            [i for i, name in enumerate(_FLAGS) if flags[k] & BITS[name]],
            strongest(changes[k].tolist()),
            rules[k],
        )
        for k in range(n)
    ]


def strongest(influences: Sequence[float]) -> list[tuple[int, float]]:
    """Return the indexes and values of the influences to name: the strongest for main, then the strongest against."""
    order = sorted(range(len(influences)), key=lambda i: -influences[i])
    chosen = [i for i in order[:REASONS] if influences[i] >= LEAST_CHANGE]
    chosen += [i for i in reversed(order[-REASONS:]) if influences[i] <= -LEAST_CHANGE]
    return [(i, round(influences[i], 2)) for i in chosen]


def _forms(page: Page | None, extraction: Extraction) -> dict[str, dict[str, Any]]:
    """Return the forms of the output, or the first part of each, and the number of characters of the whole form."""
    content = json.dumps(extraction.content or [], ensure_ascii=False, indent=1)
    texts = {
        "main_html": extraction.main_html or "",
        "markdown": extraction.markdown or "",
        "text": extraction.text or "",
        "content": content,
        "simplified": "\n".join(simplify(page)) if page is not None else "",
    }
    return {name: {"text": _beginning(text), "chars": len(text)} for name, text in texts.items()}


def _beginning(text: str) -> str:
    return text.encode("utf-8", "replace")[:MAX_BYTES].decode("utf-8", "ignore")


def page_file(view: dict[str, Any]) -> str:
    """Return the inspector of what :func:`look` returns."""
    title = view["title"] or view["url"] or view["name"] or "a page"
    data, reader = _data(view | {"reader": part("reader.css")}), part("reader.css")
    return html_file("page", f"{title[:200]} · inspector", styles=reader, images="data:", data=data)


def _data(values: dict[str, Any]) -> str:
    """Return JSON that cannot end the element that holds it, nor begin a comment there."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    # In JSON, these characters only occur in strings. Escaping every "<" would add hundreds of kB for a page's tags.
    return text.replace("</", "<\\/").replace("<!", "\\u003c!").replace("<s", "\\u003cs").replace("<S", "\\u003cS")


_LONGEST = 60
_unsafe = re.compile(r"[^A-Za-z0-9.]+").sub
_is_address = re.compile(r"https?://[^\s<>\"\x7f-\uffff]{1,1000}").fullmatch
_is_ours = re.compile(rf"(.+-[0-9a-f]{{8}})(?:{re.escape(VIEW)}|\.html)").fullmatch


class Named(NamedTuple):
    """A document, and the name of its files, which no document of other bytes has."""

    name: str
    document: Document
    """The document in UTF-8."""


def named(document: Document) -> Named:
    """Return a document with the name of its files."""
    data = in_utf8(document)
    if _is_address(document.url):  # as browsers save a page, so that all commands know its URL
        saved = f"<!-- saved from url=({len(document.url):04}){document.url} -->\n"
        data = BOM_UTF8 + saved.encode() + data.removeprefix(BOM_UTF8)
    address = _unsafe("-", document.url.partition("://")[2])[:_LONGEST].strip("-.") or "page"
    name = f"{portable(address)}-{hashlib.sha256(data).hexdigest()[:8]}"
    return Named(name, replace(document, html=data, charset=None))


def write_views(folder: Path, pages: Iterable[Named], config: Config) -> list[Path]:
    """Write pages, and a view of each, and return the files of the views. Raise OSError or ModelError if that fails."""
    folder.mkdir(parents=True, exist_ok=True)
    views = []
    with Extractor(replace(config, sites="off")) as extractor:
        for name, document in pages:
            replace_file(folder / f"{name}.html", document.html)
            view = look(document, extractor, name, name)
            views.append(folder / f"{name}{VIEW}")
            replace_file(views[-1], page_file(view))
    return views


def remove_views(folder: Path) -> None:
    """Remove pages and views from a folder, but leave those that have a correction beside them."""
    corrected = {path.name.partition(".answer")[0] for path in folder.glob(ANSWERS)}
    for path in folder.glob("*.html"):
        if (ours := _is_ours(path.name)) and ours[1] not in corrected:
            path.unlink(missing_ok=True)


MARK = "data-dripper-block"
"""Attribute with the number of a block, from 1, on the element of the block or on each piece of its text."""
STYLE = "data-dripper-style"
"""Attribute with the ``style`` of an element. The outer document applies it, because its policy allows no styles."""
PIECE = "dripper-piece"
"""Element around a piece of text that has no element of its own."""
MAX_PICTURE = 30_000
"""Maximum length of an embedded image, in characters. Larger images are left out."""
MAX_VALUE = 1_000
"""Maximum length of a ``data-*`` attribute, in characters. Longer values are data, which style sheets do not use."""
MAX_STYLES = 1_000_000
"""Maximum length of all style sheets of a page, in characters."""

# Attributes that load, link, run, or shadow a property of the document or of a form.
_ATTRIBUTES = (ATTRIBUTES | {"bgcolor", "hidden", "aria-label"}) - frozenset(
    "href src srcset poster data cite name form usemap content headers media sizes".split()
)
_PLAIN = frozenset(
    "form frameset noscript xmp listing plaintext noframes template textarea title iframe script video audio picture "
    "source track image dialog".split()
)
"""Tags that become a plain element, because of what they do or because browsers parse their content differently."""
_BARE_ID = frozenset("button fieldset input object output select".split())
_picture = re.compile(r"data:image/(?:png|jpe?g|gif|webp|avif|bmp|x-icon)[;,]", re.I).match
# The policy would block these, too, but browsers would report each of them. The bound keeps the pattern linear.
_address = re.compile(r"url\((?!\s{0,9}[\"']?data:image/)[^()]*\)", re.I)
_custom = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+").fullmatch
_name = re.compile(r"[a-z][a-z0-9-]*").fullmatch


def snapshot(page: Page) -> str:
    """Return the page as HTML with its blocks marked, in time linear in the page.

    Scripts, frames, links and forms are removed, and so are all URLs except small embedded images. The result must
    still be shown in a frame without scripts, under a policy that loads nothing.
    """
    tree = page.tree
    alone = _alone(page)
    inside = -1  # the end of the subtree of the element that is marked as a whole
    made: list[etree._Element] = []
    end, parent = tree.end.tolist(), tree.parent.tolist()
    text_owner, tail_owner = tree.text_owner.tolist(), tree.tail_owner.tolist()
    for i, source in enumerate(tree.nodes):  # in document order, so what is appended to a parent is at its place
        above = made[parent[i]] if parent[i] >= 0 else None
        element = _element(source, above)
        made.append(element)
        if i in alone:
            element.set(MARK, str(alone[i] + 1))
            inside = end[i]
        whole = i < inside
        text = "" if element.tag == "img" or source.tag in ("script", "iframe") else source.text
        if text and not _piece(element, text, -1 if whole else text_owner[i]):
            element.text = without_controls(text)
        # A tail belongs to the parent, so it is not part of an element that is marked as a whole.
        owner = -1 if whole and i not in alone else tail_owner[i]
        if above is not None and source.tail and not _piece(above, source.tail, owner):
            element.tail = without_controls(source.tail)
    root = made[0]
    root.tag = "html"
    return etree.tostring(root, method="html", encoding="unicode")


def style_sheets(document: Document, config: Config) -> list[tuple[str, str]]:
    """Return the style sheets in a page, each with its media query, or an empty string if it has none."""
    try:
        root, _ = document_tree(document, config)
    except PageError:
        return []
    sheets: list[tuple[str, str]] = []
    left = MAX_STYLES
    for style in root.iter("style"):
        text = without_controls(style.text or "").strip()
        if not text or len(text) > left or style.getparent().tag == "noscript":
            continue
        left -= len(text)
        sheets.append((" ".join((style.get("media") or "").split())[:200], _address.sub("none", text)))
    return sheets


def _alone(page: Page) -> dict[int, int]:
    """Return the blocks that are the only content of their element, by the number of the element."""
    tree = page.tree
    single = tree.block_end - tree.block_start == 1
    return {
        i: k
        for k, i in enumerate(page.blocks.context.tolist())
        if single[i] and tree.nodes[i].tag not in ("html", "body", "tr", "tbody", "frameset")
    }


def _piece(parent: etree._Element, text: str, owner: int) -> bool:
    """Append a text to its parent as a piece of a block. Return False if it is of none, or only white space."""
    text = without_controls(text)
    if owner < 0 or text.isspace():
        return False
    etree.SubElement(parent, PIECE, {MARK: str(owner + 1)}).text = text
    return True


def _element(source: etree._Element, parent: etree._Element | None) -> etree._Element:
    original = str(source.tag)
    tag = original
    if tag in _PLAIN or not (tag in TAGS or tag in MATHML or _custom(tag)):
        tag = "div" if tag in ("form", "frameset", "noscript", "noframes", "dialog") else "span"
    if tag.startswith("dripper-"):
        tag = "span"
    attributes: dict[str, str] = {}
    for name, value in cast("list[tuple[str, str]]", source.items()):
        if name == "style":
            attributes[STYLE] = _address.sub("none", without_controls(value))
        elif name == "href" and tag == "a":
            attributes["href"] = "#"  # looks like a link, and leads nowhere
        elif name == "src" and tag == "img" and _picture(value) and len(value) <= MAX_PICTURE:
            attributes["src"] = without_controls(value)
        elif (name in _ATTRIBUTES and not (name == "id" and tag in _BARE_ID)) or _shown_data(name, value):
            attributes[name] = without_controls(value)
    if original == "dialog" and "open" not in attributes:
        attributes["hidden"] = ""
    return etree.Element(tag, attributes) if parent is None else etree.SubElement(parent, tag, attributes)


def _shown_data(name: str, value: str) -> bool:
    """Return True for ``data-*`` attributes that style sheets may use, except our own."""
    ours = name.startswith("data-dripper")
    return name[:5] == "data-" and len(value) <= MAX_VALUE and not ours and _name(name) is not None
