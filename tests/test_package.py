"""The installed package agrees with pyproject.toml, setup.cfg and constraints.txt, and no import runs up."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.programs import python

ROOT = Path(__file__).parents[1]
NAME = "scrapy-dripper"


def normal(name: str) -> str:
    """Return a distribution's name in the form that package indexes compare."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required(distribution: str = NAME) -> dict[str, set[str]]:
    """Return the required distributions by extra; those of every installation are under ''."""
    found: dict[str, set[str]] = {}
    for requirement in metadata.requires(distribution) or []:
        name, extra = re.match(r"[\w.-]+", requirement), re.search(r"extra == ['\"]([\w-]+)", requirement)
        assert name is not None
        found.setdefault(extra.group(1) if extra else "", set()).add(normal(name.group()))
    return found


def imported(folder: Path, *, lazily: bool) -> dict[str, set[str]]:
    """Return the third-party modules that files import, with the files; also inside functions if ``lazily``."""
    found: dict[str, set[str]] = {}
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree) if lazily else tree.body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names.append(node.module or "")
            for name in names:
                top = name.split(".")[0]
                if top not in sys.stdlib_module_names and top != "scrapy_dripper":
                    found.setdefault(top, set()).add(path.relative_to(ROOT).as_posix())
    return found


def test_a_build_has_every_file_of_the_package(tmp_path: Path) -> None:
    """Packages are discovered: no module, model or schema is missing, nothing else is added, and no build warns."""
    pytest.importorskip("setuptools", minversion="77", reason="the build needs setuptools>=77")
    source, built = tmp_path / "source", tmp_path / "built"
    for folder in ("scrapy_dripper", "models"):
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.cfg", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    files = {path.relative_to(source) for folder in ("scrapy_dripper", "models") for path in _files(source / folder)}
    for leftover in ("models/__pycache__/m.pyc", "scrapy_dripper/page/__pycache__/page.pyc"):
        (source / leftover).parent.mkdir()
        (source / leftover).touch()

    code = "import setuptools; setuptools.setup()"
    command = [sys.executable, "-W", "default", "-c", code, "-q", "build_py", "--build-lib", str(built)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=True)

    there = {path.relative_to(built) for path in _files(built)}
    assert there == {"scrapy_dripper" / path if path.parts[0] == "models" else path for path in files}
    assert not re.search(r"absent from the|__pycache__|Deprecat", done.stdout + done.stderr)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_the_installed_version_is_that_of_the_source() -> None:
    """Otherwise the tests run against another installation."""
    source = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M)

    assert source is not None
    assert metadata.version(NAME) == source.group(1)


def test_the_package_is_typed_and_licensed() -> None:
    """Type checkers need py.typed; the licence is part of the distribution."""
    information = metadata.metadata(NAME)

    assert (ROOT / "scrapy_dripper" / "py.typed").is_file()
    assert information["License-Expression"] == "BSD-3-Clause"
    assert "BSD 3-Clause License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert information["Requires-Python"] == ">=3.10"


def test_the_script_is_the_command_line() -> None:
    """``scrapy-dripper`` and ``python -m scrapy_dripper`` are the same."""
    from scrapy_dripper import cli

    (script,) = metadata.entry_points(group="console_scripts", name=NAME)

    assert script.load() is cli.main


def test_the_extras_that_messages_name_exist() -> None:
    """A part without its extra names the extra to install; that extra must exist."""
    provided = set(metadata.metadata(NAME).get_all("Provides-Extra") or [])

    named = set()
    for path in (ROOT / "scrapy_dripper").rglob("*.py"):
        named |= set(re.findall(r"scrapy-dripper\[([\w,]+)\]", path.read_text(encoding="utf-8")))
    assert {extra for names in named for extra in names.split(",")} <= provided
    assert {"cpu", "gpu", "poet", "playwright", "corpus", "dev"} <= provided


def test_what_is_imported_is_required() -> None:
    """Each import is required by the package, an extra, or a package that it is a part of or wraps."""
    asked = set().union(
        *required().values(), *(required(name)[""] for name in ("scrapy", "scrapy-poet", "trafilatura"))
    )
    distributions = metadata.packages_distributions()

    missing = {
        module: files
        for module, files in imported(ROOT / "scrapy_dripper", lazily=True).items()
        if not asked & {normal(name) for name in distributions.get(module, [module])}
    }
    assert missing == {}


def test_the_core_imports_nothing_of_an_extra() -> None:
    """Every module can be imported without extras, except where the extra is what the module is for."""
    distributions = metadata.packages_distributions()
    core = required()[""] | required("scrapy")[""] | required("trafilatura")[""]

    optional = {
        file
        for module, files in imported(ROOT / "scrapy_dripper", lazily=False).items()
        if not core & {normal(name) for name in distributions.get(module, [module])}
        for file in files
    }
    assert {file for file in optional if not file.startswith("scrapy_dripper/corpus/")} <= {
        "scrapy_dripper/providers.py",
        "scrapy_dripper/fallback/methods.py",
        *(f"scrapy_dripper/engines/qwen3/{name}.py" for name in ("folder", "grammar", "prompt")),
    }


def test_constraints_pin_everything_that_is_required() -> None:
    """The development set is exact and names no source."""
    pin = re.compile(r'([\w.-]+)==[\w.]+(?:; python_version (?:<|>=) "3\.\d+")?')
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()

    matches = [pin.fullmatch(line) for line in lines if line and not line.startswith("#")]

    assert None not in matches
    pinned = {normal(match.group(1)) for match in matches if match}
    wanted = required()
    asked = set().union(wanted[""], *(wanted[extra] for extra in ("cpu", "poet", "html2text", "dev", "docs", "corpus")))
    assert asked - {NAME} <= pinned


def test_a_page_is_extracted_without_extras() -> None:
    """Only the runtime of the tagger is needed, and not Scrapy, which other programs need not import."""
    code = (
        "import sys; sys.modules |= dict.fromkeys(('tokenizers', 'html2text', 'tqdm.auto', 'justext', 'readability'))\n"
        "sys.modules |= dict.fromkeys(('scrapy', 'twisted'))\n"
        "import scrapy_dripper\n"
        "print(scrapy_dripper.extract('<p>A page of a single paragraph, with a few words in it.</p>').source)"
    )
    done = python("-c", code)

    assert done.stdout.strip() == "tagger", done.stderr


@pytest.mark.skipif(find_spec("importlinter") is None, reason="needs import-linter")
def test_no_import_runs_up_or_in_a_circle() -> None:
    """Imports inside functions count as well; a new top-level module must be given a layer."""
    lint(ROOT)


def lint(folder: Path) -> None:
    """Hold the contracts in the pyproject.toml of a folder."""
    program = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = python("-c", program, cwd=folder)

    assert done.returncode == 0, done.stdout + done.stderr
