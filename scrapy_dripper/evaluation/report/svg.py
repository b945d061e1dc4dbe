"""Elements of HTML and SVG as text. What is not markup made here is escaped, so that no page can get into a report."""

from __future__ import annotations

import html
import re

_forbidden = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]")


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def escape(value: object) -> Markup:
    """Return text as markup; markup stays as it is, and characters that no document may hold become U+FFFD."""
    return value if isinstance(value, Markup) else Markup(html.escape(_forbidden.sub("\ufffd", str(value))))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return an element.

    Attributes that are None are left out. A trailing underscore of their names is dropped (``class_``), others become
    hyphens; numbers are rounded.
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
    """Return children one after the other."""
    return Markup("".join(map(escape, children)))


def drawing(width: float, height: float, label: str, *children: object) -> Markup:
    """Return an SVG drawing that is as wide as there is room for, with what it shows for those who do not see it."""
    return tag(
        "svg",
        *children,
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img",
        aria_label=label,
        style=f"max-width:{width:.0f}px",
    )


def label(x: float, y: float, content: object, anchor: str = "start", class_: str | None = None) -> Markup:
    """Return a text in a drawing."""
    return tag("text", content, x=x, y=y, text_anchor=anchor, class_=class_)


def hint(content: object) -> Markup:
    """Return what is shown when the mouse rests on the element that this is a child of."""
    return tag("title", content)
