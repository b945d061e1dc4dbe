"""``scrapy-dripper doctor``: what is installed, whether it works, and what is wrong with a project."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.programs import python

SPIDER = """
import scrapy

class News(scrapy.Spider):
    name = "news"
    custom_settings = {"DRIPPER_FAVOR": "recal", "DRIPER_REPORT": "a.html"}
"""


@pytest.fixture(autouse=True)
def _no_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)


def doctor(folder: Path, settings: str, spider: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command in a project."""
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = project\n", encoding="utf-8")
    (folder / "project.py").write_text(f"BOT_NAME = 'tidy'\nSPIDER_MODULES = ['spiders']\n{settings}", encoding="utf-8")
    (folder / "spiders.py").write_text(spider, encoding="utf-8")
    return python("-m", "scrapy_dripper", "doctor", cwd=folder)


def test_a_project_that_is_ready(tmp_path: Path) -> None:
    """Its settings are shown; the engine and a worker have been tried."""
    done = doctor(tmp_path, "ADDONS = {'scrapy_dripper.Addon': 500}\nDRIPPER_TITLE = 'drop'\n")

    assert done.stdout.splitlines()[-1] == "ready"
    assert done.returncode == 0
    for words in (
        "tidy, settings in project",
        "ok     the add-on is installed",
        "DRIPPER_TITLE = 'drop'",
        "tagger, its default model",
        "lxml ",
        "ok     a sample page was extracted",
    ):
        assert words in done.stdout
    assert "wrong" not in done.stdout
    assert "Traceback" not in done.stderr


def test_all_that_is_wrong_is_named(tmp_path: Path) -> None:
    """All mistakes are named, also those of spiders; each line says what is expected."""
    done = doctor(
        tmp_path,
        "DRIPPER_FALBACK = 'html'\nDRIPER_TITLE = 'drop'\nDRIPPER_TIMEOUT = 0\n"
        "TWISTED_REACTOR = 'twisted.internet.selectreactor.SelectReactor'\n"
        "ADDONS = {'scrapy_dripper.Addon': None}\n",
        SPIDER,
    )

    wrong = [line.split(maxsplit=1)[1] for line in done.stdout.splitlines() if line.startswith("  wrong")]
    assert len(wrong) == 6
    for words in (
        "DRIPPER_FALBACK is not a setting of scrapy-dripper; did you mean DRIPPER_FALLBACK?",
        "DRIPER_TITLE is not a setting of scrapy-dripper; did you mean DRIPPER_TITLE?",
        "DRIPPER_TIMEOUT must be a number of seconds above 0 (got 0)",
        "TWISTED_REACTOR must be",
        "spider news: DRIPPER_FAVOR must be one of",
        "spider news: DRIPER_REPORT is not a setting of scrapy-dripper; did you mean DRIPPER_REPORT?",
    ):
        assert sum(words in line for line in wrong) == 1, done.stdout
    assert "note   the add-on is not installed" in done.stdout
    assert done.stdout.splitlines()[-1] == "not ready: 6 things are wrong"
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("1 / 0\n", "its settings cannot be imported: ZeroDivisionError"),
        ("SPIDER_LOADER_WARN_ONLY = False\nSPIDER_MODULES = ['nowhere']\n", "the spiders cannot be imported"),
        ("DRIPPER_REPORT = '.'\n", "DRIPPER_REPORT must be the path of a file (got the folder '.')"),
        ("DRIPPER_MODEL = '/nowhere'\n", "No tagger model in /nowhere"),
    ],
)
def test_what_does_not_work_is_named(tmp_path: Path, settings: str, words: str) -> None:
    done = doctor(tmp_path, settings)

    assert words in done.stdout
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_without_a_project_the_defaults_are_tried(here: Path, run: Run) -> None:
    done = run("doctor")

    assert (done.code, "none in this folder" in done.out) == (0, True)
