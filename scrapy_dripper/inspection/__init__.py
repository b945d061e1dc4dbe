"""``scrapy-dripper inspect``: show what was extracted of a page and why, and take answers (docs/guides/inspect.md).

Here are the HTML files of the inspector and of reports. They need nothing else, and only our own script and styles are
allowed in them.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from importlib import resources
from string import Template

VIEW = ".inspect.html"
"""The end of the names of the inspector's files."""


def html_file(name: str, title: str, /, *, styles: str = "", images: str = "'none'", **parts: str) -> str:
    """Return the file of ``NAME.html``, with its style and script.

    ``parts`` are HTML. ``styles`` are those of its frames, to which the policy of the file applies as well.
    """
    style, script = part("common.css") + part(f"{name}.css"), part(f"{name}.js")
    hashes = " ".join(f"'{_hash(one)}'" for one in (style, styles) if one)
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src {hashes}; img-src {images}; base-uri 'none'; "
        "form-action 'none'"
    )
    return Template(part(f"{name}.html")).substitute(
        parts, policy=escape(policy), title=escape(title), style=style, script=script
    )


@cache
def part(name: str) -> str:
    """Return a file of this folder."""
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
