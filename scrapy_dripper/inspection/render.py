"""Write the view of a page as one self-contained HTML file, in which the content of the page is isolated."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import asdict
from functools import cache
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy_dripper.inspection.look import PageView


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
