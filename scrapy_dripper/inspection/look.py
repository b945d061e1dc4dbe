"""Collect what the inspector shows of a document, and write it as one self-contained HTML file, in which the content of
the page is isolated."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from html import escape
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from scrapy_dripper.choose import Given
from scrapy_dripper.choose.steps import reasons, stages
from scrapy_dripper.choose.user_rules import marks
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction, FallbackReason
from scrapy_dripper.engines import profile_of
from scrapy_dripper.engines.base import Engine, EngineError, Labels
from scrapy_dripper.engines.qwen3.simplify import simplify
from scrapy_dripper.engines.tagger.engine import Tagger
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.inspection.snapshot import snapshot, style_sheets
from scrapy_dripper.page import Page, read
from scrapy_dripper.page.page import Flag

MAX_BYTES = 80_000
"""Maximum size of a form of the output that is shown, in bytes of UTF-8."""
REASONS = 2
"""Maximum number of groups of features that are named for a block, and against it."""
LEAST_CHANGE = 0.02
"""Minimum change of the probability for a group of features to be named."""

_FLAGS = (
    *(Flag.NAV, Flag.HEADER, Flag.FOOTER, Flag.ASIDE, Flag.MAIN, Flag.ARTICLE, Flag.FORM, Flag.DIALOG, Flag.BUTTON),
    *(Flag.HEADING, Flag.HIDDEN, Flag.NOSCRIPT, Flag.TABLE, Flag.LIST, Flag.LINK, Flag.FIGURE, Flag.QUOTE, Flag.CODE),
    *(Flag.DETAILS,),
)
FLAGS = tuple("main-element" if flag is Flag.MAIN else (flag.name or "").lower() for flag in _FLAGS)
"""The names of the flags that are shown. No flag has the name of a label."""


@dataclass(frozen=True, slots=True)
class BlockView:
    """What is shown of one block besides its text, which is part of the page."""

    probability: float | None
    """None if no engine answered."""
    main: bool
    flags: tuple[int, ...]
    """Indexes into :data:`FLAGS`."""
    reasons: tuple[tuple[int, float], ...]
    """Groups of features, as indexes into the page's ``groups``, with their influence, which is positive for main."""
    rule: int
    """The rule that decided its label, as an index into the page's ``rules``; 0 if the probabilities decided."""


@dataclass(frozen=True, slots=True)
class Form:
    """One form of the output, or the first part of it."""

    text: str
    chars: int
    """Number of characters of the whole form."""


@dataclass(frozen=True, slots=True)
class PageView:
    """Everything that the inspector shows of a page."""

    name: str
    title: str
    url: str
    facts: tuple[tuple[str, str], ...]
    snapshot: str
    styles: tuple[tuple[str, str], ...]
    blocks: tuple[BlockView, ...]
    flags: tuple[str, ...]
    groups: tuple[str, ...]
    """Groups of features that can be named; empty if the engine does not explain its labels."""
    rules: tuple[str, ...]
    """The rules that decided the label of a block; the first one stands for the probabilities, and is empty."""
    forms: dict[str, Form]
    markdown_html: str | None
    """The rendered Markdown; None if no renderer is installed."""
    task: dict[str, Any] | None
    """The annotation task of the page; None if its labels cannot be exported."""
    no_task: str
    """The reason why the labels cannot be exported."""


TaskOf = Callable[[Page], "dict[str, Any] | str"]
"""Returns the annotation task of a page, or the reason why there is none."""


def look(document: Document, extractor: Extractor, task_of: TaskOf, name: str = "") -> PageView:
    """Return the view of a document. No document makes this function raise."""
    config = extractor.config
    extraction = extractor.extract([replace(document, config=replace(config, content_field="content"))])[0]
    page = _read(document, extractor, extraction.fallback_reason)
    influences: dict[str, Any] = {}
    rules: list[str] = []
    if page is not None:
        answer: Labels | EngineError | None = None
        with suppress(Exception):  # The extraction has the error.
            (answer,) = extractor.engine.label([page])
        if isinstance(extractor.engine, Tagger):
            influences = extractor.engine.influences(page)
        if isinstance(answer, Labels) and len(extraction.labels) == len(page.blocks):
            rules = _rules(page, extractor.engine, answer, config)
        elif len(extraction.labels) == len(page.blocks):
            removed = extraction.details.get("removed", {})  # a method may say why
            why = {block: f"{extraction.source}: {reason}" for reason, blocks in removed.items() for block in blocks}
            rules = [why.get(block, "") for block in range(len(page.blocks))]
    task = task_of(page) if page is not None else extraction.error or "the page has no blocks"
    return PageView(
        name=name,
        title=extraction.title or (page.title if page else None) or "",
        url=document.url,
        facts=tuple(_facts(extraction)),
        snapshot=snapshot(page) if page is not None else "",
        styles=tuple(style_sheets(document, config)) if page is not None else (),
        blocks=tuple(_blocks(page, extraction, influences, rules)) if page is not None else (),
        flags=FLAGS,
        groups=tuple(influences),
        rules=tuple(_named(rules)),
        forms=_forms(page, extraction),
        markdown_html=rendered(extraction.markdown or ""),
        task=task if isinstance(task, dict) else None,
        no_task=task if isinstance(task, str) else "",
    )


def _read(document: Document, extractor: Extractor, reason: FallbackReason | None) -> Page | None:
    """Return the page of a document, or None if it has no blocks or should not be read in this process."""
    if reason in (FallbackReason.TIMEOUT, FallbackReason.WORKER_ERROR):
        return None
    try:
        page = read(document, extractor.config, profile_of(extractor.engine))
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
    """Return the facts about the page as a whole."""
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


def _rules(page: Page, engine: Engine, answer: Labels, config: Config) -> list[str]:
    """Return for each block the rule that decided its label; empty if the probabilities did."""
    first = engine.stages(page) if isinstance(engine, Tagger) else ()
    given = Given(page, answer.probabilities, page_type=answer.page_type, marks=marks(page, config.rules))
    return reasons([*first, *stages(given, answer.main)])


def _named(rules: Sequence[str]) -> list[str]:
    """Return the rules without repetitions, behind an empty one."""
    return list(dict.fromkeys(["", *rules]))


def _blocks(page: Page, extraction: Extraction, influences: dict[str, Any], rules: Sequence[str]) -> list[BlockView]:
    n = len(page.blocks)
    labelled = len(extraction.labels) == n
    flags = page.tree.flags[page.blocks.context] | page.tree.flags[page.blocks.leaf]
    numbers = {rule: number for number, rule in enumerate(_named(rules))}
    changes = np.array(list(influences.values())).T if influences else np.zeros((n, 0))
    return [
        BlockView(
            probability=round(extraction.probabilities[k], 4) if labelled else None,
            main=labelled and extraction.labels[k],
            flags=tuple(i for i, flag in enumerate(_FLAGS) if flags[k] & flag),
            reasons=strongest(changes[k].tolist()),
            rule=numbers[rules[k]] if rules else 0,
        )
        for k in range(n)
    ]


def strongest(influences: Sequence[float]) -> tuple[tuple[int, float], ...]:
    """Return the indexes and values of the influences to name: the strongest for main, then the strongest against."""
    order = sorted(range(len(influences)), key=lambda i: -influences[i])
    chosen = [i for i in order[:REASONS] if influences[i] >= LEAST_CHANGE]
    chosen += [i for i in reversed(order[-REASONS:]) if influences[i] <= -LEAST_CHANGE]
    return tuple((i, round(influences[i], 2)) for i in chosen)


def _forms(page: Page | None, extraction: Extraction) -> dict[str, Form]:
    content = json.dumps(extraction.content or [], ensure_ascii=False, indent=1)
    texts = {
        "main_html": extraction.main_html or "",
        "markdown": extraction.markdown or "",
        "text": extraction.text or "",
        "content": content,
        "simplified": "\n".join(simplify(page)) if page is not None else "",
    }
    return {name: Form(_beginning(text), len(text)) for name, text in texts.items()}


def _beginning(text: str) -> str:
    return text.encode("utf-8", "replace")[:MAX_BYTES].decode("utf-8", "ignore")


def page_file(view: PageView) -> str:
    """Return the inspector of a page."""
    values = asdict(view) | {"reader": _part("reader.css")}
    values["blocks"] = [  # by position, because there can be thousands
        [b.probability, int(b.main), b.flags, b.reasons, b.rule] for b in view.blocks
    ]
    title = view.title or view.url or view.name or "a page"
    style, script = _part("page.css"), _part("page.js")
    # The policy of the file applies to its frames as well, whose style is that of a reader.
    styles = f"'{_hash(style)}' '{_hash(_part('reader.css'))}'"
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src {styles}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return Template(_part("page.html")).substitute(
        policy=escape(policy),
        title=escape(f"{title[:200]} · inspector"),
        style=style,
        data=_data(values),
        script=script,
    )


def _data(values: dict[str, Any]) -> str:
    """Return JSON that cannot end the element that holds it, nor begin a comment there."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    # In JSON, these characters only occur in strings. Escaping every "<" would add hundreds of kB for a page's tags.
    return text.replace("</", "<\\/").replace("<!", "\\u003c!").replace("<s", "\\u003cs").replace("<S", "\\u003cS")


@cache
def _part(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
