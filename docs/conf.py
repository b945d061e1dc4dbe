"""The configuration of Sphinx, which builds the site from the Markdown pages of this folder and the docstrings.

`make docs` builds and serves the site. `docs/internals/design.md` gives the reasons for this setup.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/scrapy-dripper/scrapy-dripper"

project = "scrapy-dripper"
author = "The scrapy-dripper developers"
version = release = metadata.version("scrapy-dripper")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"

html_theme = "furo"
html_title = f"scrapy-dripper {version}"
html_show_copyright = False
html_show_sourcelink = False
html_theme_options = {"source_repository": REPOSITORY, "source_branch": "main", "source_directory": "docs/"}

_outward = re.compile(r"(?<!!)(\[[^\]]*\]\()((?:\.\./)+)([^)#\s]+)")


def link_to_repository(app: Sphinx, name: str, source: list[str]) -> None:
    """Redirect links to files outside of this folder to the repository. In a checkout, they are relative."""
    page = Path(app.srcdir, name).parent

    def absolute(match: re.Match[str]) -> str:
        target = (page / match[2] / match[3]).resolve()
        if target.is_relative_to(app.srcdir) or not target.exists():  # Sphinx warns about missing files.
            return match[0]
        return f"{match[1]}{REPOSITORY}/blob/main/{target.relative_to(ROOT).as_posix()}"

    source[0] = _outward.sub(absolute, source[0])


class CommandHelp(Directive):
    """A directive for the ``--help`` of commands: ``{command-help} extract, rules check``."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the text of each help as a literal block."""
        environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
        found: list[nodes.Node] = []
        for name in self.arguments[0].split(","):
            command = [sys.executable, "-m", "scrapy_dripper", *name.split(), "--help"]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=ROOT)
            found.append(nodes.literal_block(done.stdout, done.stdout, language="text"))
        return found


def setup(app: Sphinx) -> None:
    """Register the directive and the handler."""
    app.connect("source-read", link_to_repository)
    app.add_directive("command-help", CommandHelp)
