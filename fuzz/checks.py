"""Checks that every extraction must pass, for any document."""

from __future__ import annotations

import json
import logging
import re
import traceback
from collections import Counter
from contextlib import suppress
from functools import cache
from itertools import compress
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any

from lxml import etree, html

from fuzz.cases import Case
from fuzz.engines import Labeller
from scrapy_dripper.data import Document, Extraction, FallbackReason
from scrapy_dripper.engines.qwen3.engine import drafts
from scrapy_dripper.engines.qwen3.profile import PROFILES, simplify
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.output.content_json import ContentError, from_json, to_json
from scrapy_dripper.page import Page, PageError
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.page.parse import has_parts, parse
from scrapy_dripper.structures.hidden import hidden_nodes
from tests.security.checks import active, runs

EXPECTED = {
    FallbackReason.EMPTY_BODY, FallbackReason.NOT_HTML, FallbackReason.OVERSIZE, FallbackReason.TRUNCATED_PARSE,
    FallbackReason.NO_BLOCKS, FallbackReason.NO_MAIN, FallbackReason.JS_SHELL,
}  # fmt: skip
"""Reasons that a document itself can cause. All others are defects, unless the engine was made to fail."""

RENDERED_CHARS = 20_000
"""Maximum length of Markdown that is rendered to search it for tags."""

_not_word = re.compile(r"\W+")
_not_text = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]").search
_no_prompt = re.compile("[\0\ud800-\udfff]").search
_escaped = re.compile(r"(?<!\\)(?:\\\\)*\\(?:u00[01]|[bf])").search


class BrokenError(AssertionError):
    """A promise is broken. The first argument names it, and the second gives the details."""

    @property
    def kind(self) -> str:
        """The name of the promise."""
        return str(self.args[0])


_log = BufferingHandler(10**6)
"""Collects what the package logs, and so the exceptions that it catches."""


def run(case: Case) -> Extraction:
    """Return the extraction of a case. Raise :exc:`BrokenError` if there is none, or not exactly one."""
    _listen()
    _log.flush()
    one = extractor(case.engine)
    one.engine.seed = case.seed  # type: ignore[attr-defined]
    one.engine.page = None  # type: ignore[attr-defined]
    try:
        found = one.extract([Document(case.html, case.url, case.charset, case.config)])
    except Exception as error:
        raise BrokenError("raises", where(error)) from error
    if len(found) != 1 or not isinstance(found[0], Extraction):
        raise BrokenError("one extraction", repr(found)[:200])
    return found[0]


def check(case: Case, found: Extraction) -> None:
    """Check the extraction of a case, and that it is reproducible. Raise :exc:`BrokenError` for a broken promise."""
    _same(found, run(case))
    page: Page | None = extractor(case.engine).engine.page  # type: ignore[attr-defined]
    _errors(case, found)
    _shape(case, found, page)
    _plain(found)
    _content(found)
    _safe(found)
    if found.main_html is not None and page is not None and any(found.labels):
        _subtree(found.main_html, case, found, page)
    _profiles(case)


def where(error: BaseException) -> str:
    """Return a text that identifies an exception: its type, and the innermost function of the package."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f"{Path(one.filename).name}:{one.name}" for one in frames if "/scrapy_dripper/" in one.filename]
    return f"{type(error).__name__} at {ours[-1] if ours else '?'}: {str(error)[:150]}"


@cache
def extractor(engine: str) -> Extractor:
    """Return the extractor with an engine of a case."""
    return Extractor(Case("").config, Labeller(engine))


@cache
def _listen() -> None:
    log = logging.getLogger("scrapy_dripper")
    log.setLevel(logging.DEBUG)
    log.addHandler(_log)
    log.propagate = False
    for name in ("trafilatura", "htmldate", "courlan"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _errors(case: Case, found: Extraction) -> None:
    """Check that no exception was raised, not even one that was caught."""
    for error in (record.exc_info[1] for record in _log.buffer if record.exc_info):
        if error is not None and not isinstance(error, PageError):
            raise BrokenError("swallows", where(error)) from error
    reason = found.fallback_reason
    failing = case.engine == "failing" and reason is FallbackReason.ENGINE_ERROR
    if reason is not None and reason not in EXPECTED and not failing:
        raise BrokenError("reason", f"{reason}: {found.error}"[:200])


def _shape(case: Case, found: Extraction, page: Page | None) -> None:
    reasons = (None, FallbackReason.NO_MAIN, FallbackReason.JS_SHELL)
    decided = found.fallback_reason in reasons and not found.source.startswith("fallback:")
    blocks = found.details.get("blocks", 0)
    formulas = found.fallback_reason is None and not blocks and bool(found.markdown)
    if decided != (len(found.labels) > 0 or formulas) or (decided and len(found.labels) != blocks):
        raise BrokenError("labels", f"{len(found.labels)} of {blocks} blocks, reason {found.fallback_reason}")
    if len(found.probabilities) != len(found.labels):
        raise BrokenError("labels", f"{len(found.probabilities)} probabilities of {len(found.labels)} labels")
    if decided and not formulas and (page is None or len(page.blocks) != blocks):
        raise BrokenError("labels", f"{blocks} blocks of a page with {page and len(page.blocks)}")
    none = [value is None for value in (found.main_html, found.markdown, found.text)]
    if any(none) and not (all(none) and found.source == "fallback:none"):
        raise BrokenError("fields", f"{none} from {found.source}")
    if not decided and case.config.fallback == "none" and not all(none):
        raise BrokenError("fields", "the fallback none left something")


def _plain(found: Extraction) -> None:
    """Check that all values can be written as JSON, and that no string has a control or half a character."""
    values = {name: getattr(found, name) for name in ("main_html", "markdown", "text", "title", "content")}
    values["metadata"] = found.metadata.as_dict() if found.metadata else None
    for name, value in values.items():
        try:
            written = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise BrokenError("content" if name == "content" else "strings", where(error)) from error
        bad = _not_text(written) or _escaped(written)
        if bad:
            raise BrokenError("strings", f"{name} has {bad[0]!r}")


def _content(found: Extraction) -> None:
    values = found.content or []
    urls: list[str] = []

    def note(one: dict[str, Any]) -> dict[str, Any]:
        urls.extend(one[name] for name in ("url", "src", "href", "poster") if isinstance(one.get(name), str))
        return one

    try:
        again = to_json(from_json(json.loads(json.dumps(values), object_hook=note)))
    except ContentError as error:
        raise BrokenError("content", where(error)) from error
    if again != values:
        raise BrokenError("content", "is not the same after JSON")
    bad = next(filter(runs, urls), None)
    if bad is not None:
        raise BrokenError("safety", f"content has the URL {bad[:80]!r}")


def _safe(found: Extraction) -> None:
    """Check that Main-HTML and rendered Markdown have nothing that runs."""
    forms = {"Main-HTML": found.main_html or ""}
    if found.markdown and len(found.markdown) <= RENDERED_CHARS:
        forms["Markdown"] = _renderer().render(found.markdown)
    for name, written in forms.items():
        bad = active(written)
        if bad:
            raise BrokenError("safety", f"{name} of {found.source} has {bad}")


@cache
def _renderer() -> Any:
    from markdown_it import MarkdownIt

    renderer = MarkdownIt("commonmark", {"html": True}).enable("table")
    # The renderer's own check would hide what is tested.
    renderer.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005
    return renderer


def _subtree(main_html: str, case: Case, found: Extraction, page: Page) -> None:
    """Check that Main-HTML consists of the page's text, in order, and is unchanged when it is parsed again.

    Only word characters are compared, because white space is collapsed and symbols between two main blocks stay with
    them. If a page has hidden text, any of it may be missing. The parts of a streamed page are in another order than in
    its source.
    """
    given = case.html[: case.config.limits.bytes]
    document = given if isinstance(given, str) else decode_html(given, case.charset)
    source = _words(source_text(document))
    texts = page.blocks.text
    whole = _words("".join(texts))
    moved = has_parts(document.encode("utf-8", "replace")) and Counter(whole) <= Counter(source)
    if not moved and not is_part(whole, source):
        raise BrokenError("page", _difference(whole, source))
    try:
        again = _words(visible_text(parse(main_html)))
    except PageError as error:
        raise BrokenError("parses again", str(error)) from error
    hides = bool(hidden_nodes(page.tree).any())
    if type(page) is Page:  # of the profile native, in which each block has its own text
        expected = _words("".join(compress(texts, found.labels)))
        if not (is_part(again, expected) if hides else again == expected):
            raise BrokenError("parses again", _difference(again, expected))
        return
    tree = _words("".join(page.tree.nodes[0].itertext()))  # its blocks leave out text that is shown elsewhere
    if not is_part(again, tree):
        raise BrokenError("parses again", _difference(again, tree))
    for text in compress(texts, found.labels):
        if not hides and not is_part(_words(text), again):
            raise BrokenError("block lost", text[:80])


def is_part(part: str, whole: str) -> bool:
    """Return True if the characters of a text occur in another one in the same order."""
    rest = iter(whole)
    return all(character in rest for character in part)


def _words(text: str) -> str:
    return _not_word.sub("", text)


class _Text(list[str]):
    """A parser target that collects the text of a document in the order of its source, including scripts."""

    data = list.append

    def close(self) -> str:
        """Return the text."""
        return "".join(self)


def source_text(text: str) -> str:
    """Return all text of a document in the order of its source, without using the page's tree."""
    data = text.encode("utf-8", "replace").replace(b"\0", b"")
    target = _Text()
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True, target=target)  # type: ignore[arg-type]
    for start in range(0, len(data), 65_536):
        parser.feed(data[start : start + 65_536])
    with suppress(etree.LxmlError):  # a document that only has comments
        parser.close()
    return target.close()


def visible_text(root: Any) -> str:
    """Return the text of a tree without that of scripts."""
    return "".join(root.xpath("descendant-or-self::text()[not(parent::script)]"))


def _difference(part: str, whole: str) -> str:
    rest = iter(whole)
    at = next((i for i, character in enumerate(part) if character not in rest), len(part))
    return f"{part[max(0, at - 20) : at]!r} is followed by {part[at : at + 20]!r}"


def _same(first: Extraction, second: Extraction) -> None:
    if first.with_details(milliseconds=0) != second.with_details(milliseconds=0):
        names = [name for name in first.__slots__ if name != "details"]
        raise BrokenError("same twice", ", ".join(n for n in names if getattr(first, n) != getattr(second, n)))


def _profiles(case: Case) -> None:
    """Check that both profiles cut the document, and that there is a draft for each."""
    text = case.html if isinstance(case.html, str) else decode_html(case.html, case.charset)
    for profile in PROFILES.values():
        try:
            page = profile.cut(profile.parse(text), case.url)
            found = simplify(page)
            (draft,) = drafts(Labeller("random"), [page])
        except PageError:
            continue
        except Exception as error:
            raise BrokenError("profile", f"{profile.name}: {where(error)}") from error
        if not len(found) == len(draft) == len(page.blocks):
            raise BrokenError("profile", f"{len(found)} simplified, {len(draft)} drafted of {len(page.blocks)}")
        for k, one in enumerate(found, start=1):
            if f'_item_id="{k}"' not in one or _no_prompt(one):
                raise BrokenError("profile", f"{profile.name}: block {k} is {one[:80]!r}")
