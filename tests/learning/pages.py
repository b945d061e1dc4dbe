"""Made-up pages in the two layouts of sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

WORDS = "river stone winter harbour letter engine garden bridge copper market window candle forest signal".split()


def write_annotated(folder: Path, name: str, html: str, annotation: dict[str, Any]) -> None:
    """Write a page and its annotation in the layout of WCXB."""
    for part, ending, text in (("html", "html", html), ("ground-truth", "json", json.dumps(annotation))):
        (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / part / f"{name}.{ending}").write_text(text, encoding="utf-8")


def write_listed(folder: Path, html: str, record: dict[str, Any]) -> None:
    """Add a page to the layout with one file for all pages."""
    (folder / "html").mkdir(parents=True, exist_ok=True)
    (folder / "html" / f"{record['id']}.html").write_text(html, encoding="utf-8")
    with (folder / "pages.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
