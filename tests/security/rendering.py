"""Renders Markdown with many renderers at their least safe settings, with raw HTML and any URL allowed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import markdown
import mistune
from markdown_it import MarkdownIt

FOLDER = Path(__file__).parent / "renderers"
NODE = shutil.which("node")
WHY_NOT = (
    "node is not in the path"
    if NODE is None
    else ""
    if (FOLDER / "node_modules").is_dir()
    else "the packages of tests/security/renderers are not installed: cd there and say npm ci"
)
"""The reason why the JavaScript renderers cannot run; empty if they can."""


def _commonmark() -> Callable[[str], str]:
    renderer = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    renderer.validateLink = lambda url: True  # type: ignore[method-assign]
    return lambda text: str(renderer.render(text))


def _mistune() -> Callable[[str], str]:
    plugins = ["strikethrough", "footnotes", "table", "url", "task_lists", "def_list", "abbr", "math", "superscript"]
    renderer = mistune.HTMLRenderer(escape=False, allow_harmful_protocols=True)
    create = mistune.create_markdown(escape=False, renderer=renderer, plugins=[*plugins, "ruby", "spoiler", "insert"])
    return lambda text: str(create(text))


def _python_markdown() -> Callable[[str], str]:
    names = ["extra", "sane_lists", "toc", "admonition", "smarty", "wikilinks", "nl2br"]
    return lambda text: str(markdown.markdown(text, extensions=names))


PYTHON: dict[str, Callable[[str], str]] = {
    "markdown-it-py": _commonmark(),
    "mistune": _mistune(),
    "Python-Markdown": _python_markdown(),
}


def in_python(documents: Sequence[str]) -> dict[str, list[str]]:
    """Return the HTML of documents from each Python renderer."""
    return {name: [render(document) for document in documents] for name, render in PYTHON.items()}


def in_javascript(documents: Sequence[str]) -> dict[str, list[str]]:
    """Return the HTML of documents from each JavaScript renderer."""
    assert NODE is not None
    command = [NODE, str(FOLDER / "render.mjs")]
    done = subprocess.run(command, input=json.dumps(list(documents)), capture_output=True, text=True, check=True)
    rendered: dict[str, list[str]] = json.loads(done.stdout)
    return rendered
