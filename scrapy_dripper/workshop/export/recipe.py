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
from scrapy_dripper.engines.qwen3.prompt import HTML
from scrapy_dripper.page.profiles import PROFILES
from scrapy_dripper.page.simplify import FOOT, HEAD
from scrapy_dripper.workshop.export import ExportError

RECIPE = "scrapy_dripper.json"

PUBLISHED_TRUNCATE_CHARS = {"v1.0": 200}
"""Where the simplification that published weights were trained on cuts a text, by profile."""

# Importing these packages runs other code, needs more dependencies and configures logging. So only the module of the
# prompts is imported, in a separate process, with empty stand-ins for the packages around it.
_READ_PROMPT = """
import importlib, importlib.util, sys, types
for name in {packages!r}:
    spec = importlib.util.find_spec(name) if "." not in name else None
    module = types.ModuleType(name)
    top = sys.modules.get(name.split(".")[0])
    module.__path__ = list(spec.submodule_search_locations) if spec else [top.__path__[0] + "/" + name.split(".", 1)[1]]
    sys.modules[name] = module
build = importlib.import_module({module!r}).get_full_prompt
sys.stdout.buffer.write(build({document!r}, *{arguments!r}).encode())
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
    published = PUBLISHED_TRUNCATE_CHARS.get(str(values["profile"]))
    values["truncate_chars"] = values.get("truncate_chars", published) or None
    if path := values.pop("prompt_file", None):
        values["prompt"] = _read(Path(path))
    elif "prompt" not in values:
        values["prompt"] = installed_prompt("compact" if values["answer"] == "compact" else "v0")
    recipe = Recipe(**values)
    if recipe.prompt.count(HTML) != 1:
        raise ExportError(f"the prompt must hold {HTML} once (it does {recipe.prompt.count(HTML)} times)")
    for name, value, known in (("profile", recipe.profile, PROFILES), ("answer", recipe.answer, (*FORMATS, None))):
        if value not in known:
            raise ExportError(f"{name!r} must be one of {', '.join(map(repr, known))} (got {value!r})")
    return recipe


def installed_prompt(version: str) -> str:
    """Return the prompt template of the installed reference package. Raise :exc:`ExportError` if it is not installed.

    ``version`` is ``v0`` (the published Qwen3 weights, JSON answers) or ``compact``. The package's prompts contain the
    blocks of a page as one document, so the template has its first and last tags around ``{html}``.
    """
    candidates = [("mineru_html", "mineru_html.process", "mineru_html.process.build_prompt", [version])]
    if version == "v0":
        candidates.append(("dripper", "dripper.inference", "dripper.inference.prompt", []))
    for package, inner, module, arguments in candidates:
        code = _READ_PROMPT.format(
            packages=[package, inner], module=module, document=HEAD + HTML + FOOT, arguments=arguments
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
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
    except (ValueError, TypeError, KeyError) as error:
        raise ExportError(f"{path} is not a recipe ({error}): restore it, or remove it and use --prompt") from None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ExportError(f"cannot read the prompt {path}: {error}") from None
