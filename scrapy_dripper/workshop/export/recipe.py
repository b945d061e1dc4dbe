"""The recipe of a checkpoint: the prompt and the answers that it was trained with.

A checkpoint that was trained with this package has a recipe file. For other checkpoints, the prompt comes from a file
of the user, or from the installed package of the weights' publisher. This package does not contain it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from scrapy_dripper.engines.qwen3.grammar import FORMATS
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper.engines.qwen3.prompt import HTML
from scrapy_dripper.engines.qwen3.simplify import FOOT, HEAD
from scrapy_dripper.workshop.export import ExportError

RECIPE = "scrapy_dripper.json"

PUBLISHED_TRUNCATE_CHARS = 200
"""Where the simplification that the published weights were trained on cuts a text."""

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


@dataclass(frozen=True, slots=True)
class Recipe:
    """The fields of a manifest that do not follow from the graph."""

    profile: str
    truncate_chars: int | None
    prompt: str
    """The template, with ``{html}`` exactly once."""
    answer: str | None
    """The answer format; None if the export tests the model for it."""

    def write(self, folder: Path) -> None:
        """Write the recipe beside a checkpoint."""
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"
        (folder / RECIPE).write_text(text, encoding="utf-8")


def find_recipe(folder: Path, given: Mapping[str, Any]) -> Recipe:
    """Return the recipe of a checkpoint, from ``given``, its recipe file or the published weights, in this order.

    ``given`` may hold the fields of :class:`Recipe`, and ``prompt_file`` in place of ``prompt``. None counts as absent,
    and a ``truncate_chars`` of 0 as no truncation. Raise :exc:`ExportError` if there is no prompt, or if a value is
    invalid.
    """
    values: dict[str, Any] = {"profile": "v1.0", "answer": None}
    values |= _stored(folder)
    values |= {name: value for name, value in given.items() if value is not None}
    published = PUBLISHED_TRUNCATE_CHARS if values["profile"] == "v1.0" else None
    values["truncate_chars"] = values.get("truncate_chars", published) or None
    if path := values.pop("prompt_file", None):
        values["prompt"] = _read(Path(path))
    elif "prompt" not in values:
        values["prompt"] = installed_prompt()
    recipe = Recipe(**values)
    if recipe.prompt.count(HTML) != 1:
        raise ExportError(f"the prompt must hold {HTML} once (it does {recipe.prompt.count(HTML)} times)")
    for name, value, known in (("profile", recipe.profile, PROFILES), ("answer", recipe.answer, (*FORMATS, None))):
        if value not in known:
            raise ExportError(f"{name!r} must be one of {', '.join(map(repr, known))} (got {value!r})")
    return recipe


def installed_prompt() -> str:
    """Return the prompt template of the installed reference package. Raise :exc:`ExportError` if it is not installed.

    The package's prompt contains the blocks of a page as one document, so the template has its first and last tags
    around ``{html}``.
    """
    done = subprocess.run([sys.executable, "-c", _READ_PROMPT], capture_output=True, timeout=60, check=False)
    if done.returncode == 0 and done.stdout:
        return done.stdout.decode()
    raise ExportError(
        "there is no prompt: name its file with --prompt FILE ({html} where the blocks go), or install the package of "
        "the published weights, which holds it: pip install mineru-html --no-deps, and pydantic"
    )


def _stored(folder: Path) -> dict[str, Any]:
    path = folder / RECIPE
    if not path.is_file():
        return {}
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return {one.name: stored[one.name] for one in fields(Recipe)}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ExportError(f"{path} is not a recipe ({error}): restore it, or remove it and use --prompt") from None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ExportError(f"cannot read the prompt {path}: {error}") from None
