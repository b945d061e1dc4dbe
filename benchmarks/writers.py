"""Other HTML-to-Markdown converters, configured to preserve as much as possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import trafilatura
from trafilatura.settings import use_config

Writer = Callable[[str, str], str]
"""Returns the Markdown of HTML from a URL."""

_config = use_config()
for _option in ("MIN_EXTRACTED_SIZE", "MIN_OUTPUT_SIZE"):  # Trafilatura is made for whole pages and drops short ones
    _config.set("DEFAULT", _option, "0")


def main_content(html: str, url: str, **options: Any) -> str:
    """Return the Markdown of Trafilatura for a whole page, in which it finds the main content by itself."""
    options |= dict.fromkeys(("include_formatting", "include_links", "include_images"), True)
    return trafilatura.extract(html, url=url or None, output_format="markdown", config=_config, **options) or ""


PEERS: Mapping[str, Callable[[Any, str, str], str]] = {
    "html2text": lambda module, html, url: module.HTML2Text(baseurl=url, bodywidth=0).handle(html),
    "trafilatura": lambda _, html, url: main_content(html, url, favor_recall=True),
    "markdownify": lambda module, html, _: module.markdownify(html, heading_style="ATX"),
    "html-to-markdown": lambda module, html, _: module.convert(html).content,
}
"""The converters by the names of their distributions. Each gets its module."""


def writers(names: Sequence[str] = tuple(PEERS)) -> dict[str, Writer]:
    """Return converters by name. Raise SystemExit for a name that is unknown or not installed."""
    unknown = sorted(set(names) - set(PEERS))
    if unknown:
        raise SystemExit(f"expected peers from {', '.join(PEERS)} (got {', '.join(unknown)})")
    try:
        return {name: partial(PEERS[name], import_module(name.replace("-", "_"))) for name in names}
    except ImportError as error:
        raise SystemExit(f"{error}. The peers come with: pip install -e '.[cpu]' -e 'lab[benchmark]'") from error
