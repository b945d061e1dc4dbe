"""Prompts of others: those in files of users, and that of the installed package of the published weights.

The prompts of the papers are not in this project, because they state no licence.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.engines.qwen3.profile import FOOT, HEAD, HTML

INSTALLED = "mineru-html"
"""The name of the prompt of the installed package."""

# Importing the package runs other code, needs more dependencies and configures logging. So only the module of the
# prompts is imported, in a separate process, with empty stand-ins for the packages around it.
_READ_PROMPT = f"""
import importlib, importlib.util, sys, types
(folder,) = importlib.util.find_spec("mineru_html").submodule_search_locations
for name, path in (("mineru_html", folder), ("mineru_html.process", folder + "/process")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
prompts = importlib.import_module("mineru_html.process.build_prompt")
sys.stdout.buffer.write(prompts.get_full_prompt({HEAD + HTML + FOOT!r}, "v0").encode())
"""


def prompt_of(name: str | Path, places: Sequence[str] = (HTML,)) -> str:
    """Return the prompt in a file, or that of the installed package for its name (:data:`INSTALLED`).

    Raise :exc:`UsageError` if there is none, or if it does not hold each of ``places`` once.
    """
    if str(name) == INSTALLED:
        text = installed_prompt()
    else:
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read the prompt {name}: {error}") from None
    check_places(text, places)
    return text


def check_places(prompt: str, places: Sequence[str] = (HTML,)) -> None:
    """Raise :exc:`UsageError` if a prompt does not hold each of ``places`` once."""
    for place in places:
        if prompt.count(place) != 1:
            raise UsageError(f"the prompt must hold {place} once (it does {prompt.count(place)} times)")


def filled(prompt: str, values: Mapping[str, str]) -> str:
    """Return a prompt with values in its places. What looks like a place in a value stays."""
    return re.sub("|".join(map(re.escape, values)), lambda found: values[found[0]], prompt)


def installed_prompt() -> str:
    """Return the prompt template of the installed reference package. Raise :exc:`UsageError` if it is not installed.

    The package's prompt contains the blocks of a page as one document, so the template has its first and last tags
    around ``{html}``.
    """
    done = subprocess.run([sys.executable, "-c", _READ_PROMPT], capture_output=True, timeout=60, check=False)
    if done.returncode == 0 and done.stdout:
        return done.stdout.decode()
    raise UsageError(
        "there is no prompt: name its file with --prompt FILE ({html} where the blocks go), or install the package of "
        "the published weights, which holds it: pip install mineru-html==1.1.2 --no-deps, and pydantic"
    )
