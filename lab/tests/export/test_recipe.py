"""Find the prompt, the profile and the answer format of a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.engines.qwen3.profile import PROFILES, simplify
from scrapy_dripper_lab.export.checkpoint import Recipe, find_recipe

OWN = Recipe("native", 64, "own {html}", "json")


def install(folder: Path, package: str, module: str, code: str) -> None:
    """Write a package with a module of prompts, whose own import fails."""
    inner = folder / package / module.split(".")[0]
    inner.mkdir(parents=True)
    for one in (folder / package, inner):
        (one / "__init__.py").write_text("raise ImportError('this package needs a GPU')\n")
    (inner / (module.split(".")[1] + ".py")).write_text(code)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, OWN),
        ({"profile": None, "answer": None, "prompt_file": None, "truncate_chars": None}, OWN),
        ({"answer": "compact"}, Recipe("native", 64, "own {html}", "compact")),
        ({"truncate_chars": 100}, Recipe("native", 100, "own {html}", "json")),
        ({"truncate_chars": 0}, Recipe("native", None, "own {html}", "json")),
        ({"prompt": "other {html}"}, Recipe("native", 64, "other {html}", "json")),
        ({"profile": "v1.0", "prompt": "{html}", "answer": "json_space"}, Recipe("v1.0", 64, "{html}", "json_space")),
        ({"profile": "native", "prompt": "{html}", "answer": "compact"}, Recipe("native", 64, "{html}", "compact")),
    ],
)
def test_given_values_override_stored_ones(tmp_path: Path, given: dict[str, Any], expected: Recipe) -> None:
    """A checkpoint that was trained here stores its recipe. Flags override single values."""
    OWN.write(tmp_path)
    assert find_recipe(tmp_path, given) == expected


def test_a_prompt_file(tmp_path: Path) -> None:
    """For a checkpoint without a recipe, all other values are those of the published weights."""
    (tmp_path / "prompt.txt").write_bytes("Blöcke: {html}\n".encode())
    found = find_recipe(tmp_path, {"prompt_file": tmp_path / "prompt.txt"})
    assert found == Recipe("v1.0", 200, "Blöcke: {html}\n", None)
    native = {"profile": "native", "truncate_chars": None, "prompt_file": tmp_path / "prompt.txt"}
    assert find_recipe(tmp_path, native).truncate_chars is None


def test_the_installed_prompt_of_a_page_is_the_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read without importing the package, which may not work here. The reference puts the whole simplified
    document into its prompt. Here, its first and last tags are part of the template.
    """
    code = "def get_full_prompt(html, version='v0'):\n    return f'{version}:\\n{html}\\n/no_think\\n'\n"
    install(tmp_path, "mineru_html", "process.build_prompt", code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    # From the reference implementation, of <p>one<br>two <b>x</b><br>three</p>.
    simplified = (
        '<html><head><meta charset="utf-8"></head><body><p _item_id="1">one<br>two <b>x</b><br>three</p></body></html>'
    )
    rules = PROFILES["v1.0"]
    page = rules.cut(rules.parse("<p>one<br>two <b>x</b><br>three</p>"), "")

    before, after = find_recipe(tmp_path, {}).prompt.split("{html}")
    assert before + "".join(simplify(page, 200)) + after == f"v0:\n{simplified}\n/no_think\n"


@pytest.mark.parametrize(
    ("given", "stored", "message"),
    [
        ({}, None, "no prompt: name its file with --prompt"),
        ({"prompt": "no place"}, None, "must hold {html} once .it does 0 times."),
        ({"prompt": "{html} {html}"}, None, "it does 2 times"),
        ({"prompt_file": "missing.txt"}, None, "cannot read the prompt missing.txt"),
        ({"prompt": "{html}", "answer": "xml"}, None, "'answer' must be one of 'json', 'json_space', "),
        ({"prompt": "{html}", "profile": "v9"}, None, "'profile' must be one of 'native', 'v1.0'"),
        ({}, "{", "is not a recipe"),
        ({}, '{"profile": "native"}', "is not a recipe"),
    ],
)
def test_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], stored: str | None, message: str
) -> None:
    """Each error says what is wrong."""
    # An installed package may be broken.
    install(tmp_path, "mineru_html", "process.build_prompt", "import no_such_module\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    if stored is not None:
        (tmp_path / "scrapy_dripper.json").write_text(stored)
    with pytest.raises(UsageError, match=message):
        find_recipe(tmp_path, given)
