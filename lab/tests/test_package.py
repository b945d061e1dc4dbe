"""The laboratory is a distribution of its own, which fits exactly one version of the package."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

from scrapy_dripper.cli import ENTRY_POINTS, LABORATORY
from scrapy_dripper_lab.export.head import _RUNTIMES
from tests.cli import test_help
from tests.cli.conftest import Run
from tests.test_package import NAME, imported, lint, normal, required

ROOT = Path(__file__).parents[1]
LAB = "scrapy-dripper-lab"


def test_it_requires_its_own_version_of_the_package() -> None:
    source = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (version,) = re.findall(r'^version = "(.+)"$', source, re.M)

    assert metadata.version(LAB) == metadata.version(NAME) == version
    assert f"{NAME}=={version}" in (metadata.requires(LAB) or [])


def test_the_package_knows_its_commands() -> None:
    """Without the laboratory, each of them says where it is."""
    points = [point for point in metadata.entry_points(group=ENTRY_POINTS) if point.value.startswith("scrapy_dripper_")]

    assert sorted(point.name.replace(".", " ") for point in points) == sorted(LABORATORY)


@pytest.mark.parametrize("command", LABORATORY)
def test_a_command_teaches_by_examples_and_says_how_it_ends(command: str, run: Run) -> None:
    test_help.check(command.split(), run)


def test_nothing_of_the_package_names_it_as_a_requirement() -> None:
    """Anybody could register its name."""
    assert LAB not in set().union(*required().values())
    folders = ROOT / "scrapy_dripper_lab", ROOT.parent / "scrapy_dripper", ROOT.parent / "docs"
    files = [file for folder in folders for file in folder.rglob("*") if file.suffix in (".py", ".md")]
    texts = [file.read_text(encoding="utf-8") for file in files]
    assert not [text for text in texts if re.search(rf"install [^\n]*{LAB}", text)]


def test_the_extras_that_messages_name_exist() -> None:
    provided = set(metadata.metadata(LAB).get_all("Provides-Extra") or [])

    files = (ROOT / "scrapy_dripper_lab").rglob("*.py")
    named = {
        name
        for file in files
        for name in re.findall(r"(?:extra|to_install)\(['\"](\w+)", file.read_text(encoding="utf-8"))
    }
    assert named
    assert named <= provided


def test_what_is_imported_is_required() -> None:
    """Each import is required by the laboratory, one of its extras, or the package."""
    asked = set().union(*required(LAB).values(), *required().values(), required("scrapy")[""])
    distributions = metadata.packages_distributions()

    missing = {
        module: files
        for module, files in imported(ROOT / "scrapy_dripper_lab", lazily=True).items()
        if module != "scrapy_dripper_lab" and not asked & {normal(name) for name in distributions.get(module, [module])}
    }
    assert missing == {}


def test_constraints_pin_what_its_tests_require() -> None:
    pinned = (ROOT.parent / "constraints.txt").read_text(encoding="utf-8").splitlines()
    names = {normal(line.partition("==")[0]) for line in pinned if "==" in line}

    assert required(LAB)["dev"] | required(LAB)["evaluate"] - {NAME, LAB} <= names | {NAME, LAB}


pytest.importorskip("importlinter")


def test_the_laboratory_imports_only_what_is_listed() -> None:
    """Imports inside functions count as well, and nothing is listed that is not imported."""
    lint(Path(__file__).parents[1])


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib")
def test_the_extras_install_what_graphs_need() -> None:
    """[gpu] installs at least the newest version that a graph requires. [gpu-cuda12] has the newest that supports CUDA
    12."""
    import tomllib

    extras = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    newest = max(_RUNTIMES.values(), key=lambda one: [int(part) for part in one.split(".")])

    assert [f">={newest}," in one for one in extras["gpu"] if "runtime" in one] == [True]
    assert [",<1.26" in one for one in extras["gpu-cuda12"] if "runtime" in one] == [True]
