"""Other HTML-to-Markdown converters, configured to preserve as much as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

Writer = Callable[[str, str], str]
"""Returns the Markdown of HTML from a URL."""


def _html2text() -> Writer:
    module = import_module("html2text")
    return lambda html, url: str(module.HTML2Text(baseurl=url, bodywidth=0).handle(html))


def _trafilatura(**options: Any) -> Writer:
    module = import_module("trafilatura")
    config = import_module("trafilatura.settings").use_config()
    for option in ("MIN_EXTRACTED_SIZE", "MIN_OUTPUT_SIZE"):  # Trafilatura is made for whole pages and drops short ones
        config.set("DEFAULT", option, "0")
    options |= dict.fromkeys(("include_formatting", "include_links", "include_images"), True)
    return lambda html, url: (
        module.extract(html, url=url or None, output_format="markdown", config=config, **options) or ""
    )


def _markdownify() -> Writer:
    module = import_module("markdownify")
    return lambda html, _url: str(module.markdownify(html, heading_style="ATX"))


def _html_to_markdown() -> Writer:
    module = import_module("html_to_markdown")
    return lambda html, _url: str(module.convert(html).content)


_MAKERS: dict[str, Callable[[], Writer]] = {
    "html2text": _html2text,
    "trafilatura": lambda: _trafilatura(favor_recall=True),
    "markdownify": _markdownify,
    "html-to-markdown": _html_to_markdown,
}
PEERS = tuple(_MAKERS)
"""The names of the converters, which are those of their distributions."""


def writers(names: Sequence[str] = PEERS) -> dict[str, Writer]:
    """Return converters by name. Raise SystemExit for a name that is unknown or not installed."""
    unknown = sorted(set(names) - set(PEERS))
    if unknown:
        raise SystemExit(f"expected peers from {', '.join(PEERS)} (got {', '.join(unknown)})")
    try:
        return {name: _MAKERS[name]() for name in names}
    except ImportError as error:
        raise SystemExit(f"{error}. The peers come with: pip install -e '.[cpu]' -e 'lab[benchmark]'") from error


def main_content() -> Writer:
    """Return Trafilatura for whole pages, in which it finds the main content by itself."""
    return _trafilatura()
