"""Build HTML and SVG as text. Everything except markup built here is escaped, so that pages cannot inject markup."""

from __future__ import annotations

import html
import re

_forbidden = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]")


class Markup(str):
    """Text that is already markup."""

    __slots__ = ()


def escape(value: object) -> Markup:
    """Escape text. Markup is not changed, and characters that are not allowed in documents become U+FFFD."""
    return value if isinstance(value, Markup) else Markup(html.escape(_forbidden.sub("\ufffd", str(value))))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return an element.

    Attributes that are None are left out. In their names, a trailing underscore is dropped (``class_``), and others
    become hyphens. Numbers are rounded.
    """
    parts = [name]
    for key, value in attributes.items():
        if value is not None:
            shown = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
            parts.append(f'{key.rstrip("_").replace("_", "-")}="{escape(shown)}"')
    opening = " ".join(parts)
    if name in ("meta", "br", "line", "rect", "circle", "path", "polyline"):
        return Markup(f"<{opening}/>") if not children else Markup(f"<{opening}>{join(*children)}</{name}>")
    return Markup(f"<{opening}>{join(*children)}</{name}>")


def join(*children: object) -> Markup:
    """Concatenate children."""
    return Markup("".join(map(escape, children)))


def drawing(width: float, height: float, label: str, *children: object) -> Markup:
    """Return an SVG drawing that fills the available width, with a label for screen readers."""
    return tag(
        "svg",
        *children,
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img",
        aria_label=label,
        style=f"max-width:{width:.0f}px",
    )


def label(x: float, y: float, content: object, anchor: str = "start", class_: str | None = None) -> Markup:
    """Return a text element of a drawing."""
    return tag("text", content, x=x, y=y, text_anchor=anchor, class_=class_)


def hint(content: object) -> Markup:
    """Return a tooltip for the parent element."""
    return tag("title", content)
