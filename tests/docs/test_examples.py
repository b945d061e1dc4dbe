"""Examples in the documentation have the output that they show, with the bundled model.

Spiders and stats are tested in :mod:`tests.crawl.test_docs`, the example project's table in
:mod:`tests.example_project.test_example_project`.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trafilatura
from scrapy.settings import Settings

import scrapy_dripper
from scrapy_dripper.cli import LABORATORY, _parser
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper.extractor import Extractor

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "SECURITY.md",
    ROOT / "benchmarks" / "README.md",
    ROOT / "models" / "tagger" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
TOWER = (
    '<h2>Free fall</h2><p>Without air, the speed is <span class="katex"><span class="katex-mathml"><math><semantics>'
    '<mi>v</mi><annotation encoding="application/x-tex">v = \\sqrt{2 g h}</annotation></semantics></math></span>'
    '<span class="katex-html" aria-hidden="true">v=2gh</span></span>; a ticket to the tower costs $5.</p>'
    '<pre><code class="language-python">def speed(h):\n    return (2 * 9.81 * h) ** 0.5\n</code></pre>'
)
"""A page whose Markdown the README shows."""
is_command = re.compile(
    r"(?:scrapy-dripper (?:extract|evaluate|annotate|learn|export|fine-tune|rules|doctor)|python (?:-m |\w+/)|make )"
).match


def fences(document: Path, language: str) -> list[str]:
    """Return the fenced blocks of one language in a document."""
    found = re.findall(rf"^(`{{3,}}){language}\n(.*?)\n\1$", document.read_text(encoding="utf-8"), re.S | re.M)
    return [text for _, text in found]


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    one = Extractor(Config(content_field="content"))
    yield one
    one.close()


def test_html_becomes_the_content_list_and_the_markdown_that_are_shown(extractor: Extractor) -> None:
    document = ROOT / "docs" / "reference" / "content-list.md"
    (html,) = fences(document, "html")
    (markdown,) = fences(document, "markdown")
    (content,) = [
        *map(json.loads, fences(document, "json")),
        *(ast.literal_eval(code) for code in fences(document, "python") if code.startswith("[")),
    ]

    (page,) = extractor.extract([Document(html, url="https://example.org/")])

    assert page.source == "tagger"
    assert page.content == content
    assert page.markdown == markdown


def test_what_comes_out_in_the_readme_comes_out(extractor: Extractor) -> None:
    (page,) = extractor.extract([Document(TOWER)])

    assert page.source == "tagger"
    assert [page.markdown] == fences(ROOT / "README.md", "markdown")


def test_the_snippets_without_a_spider_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The snippets of a document run in order. The comment after the last line is its value."""
    ran = 0
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.html").write_text("<p>Tea is ready.</p>", encoding="utf-8")
    for document in DOCUMENTS:
        # These have their own tests: test_library.py, corpus/test_steps.py, and that of tests below
        if document.stem in ("library", "archives", "pipelines", "testing"):
            continue
        page = PROFILES["native"].cut(PROFILES["native"].parse("<p>One.</p><p>Two.</p>"), "https://example.org/")
        given = {"html": "<p>Tea is ready.</p>", "page": page, "probabilities": np.zeros(2, np.float32)}
        for code in fences(document, "python"):
            tree = ast.parse(code)
            if not any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in tree.body) or "self" in code:
                continue
            exec(code, given)
            ran += 1
            last, _, shown = code.rpartition("  # [")
            if last:
                assert eval(last.splitlines()[-1], given) == ast.literal_eval(f"[{shown}")
    assert ran >= 4


def test_the_tests_of_the_guide_pass() -> None:
    codes = {code.partition("\n")[0]: code for code in fences(ROOT / "docs" / "guides" / "testing.md", "python")}
    names: dict[str, Any] = {}
    exec(codes["# test_labels.py"], names)
    names["test_sentences_are_main"]()
    exec(codes["# engines.py"], names)

    [page] = Extractor(engine=names["Sentences"]()).extract([names["PAGE"]])
    assert page.text == "High water is at noon."


def calls() -> list[Any]:
    """Return the calls that the guide for users of other tools shows, those of Trafilatura among them."""
    text = (ROOT / "docs" / "guides" / "other-tools.md").read_text(encoding="utf-8")
    rows = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    found = dict.fromkeys(re.findall(r"`((?:page\.|extract\(|trafilatura\.)[^`]+)`", rows))
    return [pytest.param(call, id=call) for call in found if not call.startswith("trafilatura.fetch_url")]


@pytest.mark.parametrize("call", calls())
def test_a_call_of_another_tool_has_one_of_ours(call: str) -> None:
    """They take the same page."""
    url = "https://example.org/tides"
    given = {"html": TOWER, "url": url, "page": scrapy_dripper.extract(TOWER, url), "trafilatura": trafilatura}

    eval(call, given | {"extract": scrapy_dripper.extract})


def settings() -> list[Any]:
    """Return the settings that documents show, as test parameters. docs/reference/settings.md has its own tests."""
    return [
        pytest.param(code, id=f"{document.stem}-{number}")
        for document in DOCUMENTS
        for number, code in enumerate(fences(document, "python"))
        if document.stem != "settings" and re.search(r"^DRIPPER_\w+ = ", code, re.M) and "def " not in code
    ]


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules file that the guide shows, in the current folder."""
    (toml,) = fences(ROOT / "docs" / "guides" / "rules.md", "toml")
    (tmp_path / "rules.toml").write_text(toml, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def test_the_guides_import_public_names() -> None:
    """A name is public in ``scrapy_dripper`` itself, and in the modules that the reference of the library names."""
    reference = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    public = set(re.findall(r"scrapy_dripper(?:\.\w+)*", reference))
    guides = [ROOT / "README.md", *(ROOT / "docs" / "start").glob("*.md"), *(ROOT / "docs" / "guides").glob("*.md")]
    imported = re.compile(r"^ *(?:from|import) (scrapy_dripper[\w.]*)(?: import (.*))?$", re.M)

    used = {(module, names) for guide in guides for module, names in imported.findall(guide.read_text("utf-8"))}

    assert len(used) > 10
    assert {module for module, _ in used if not module.startswith("scrapy_dripper.corpus.")} <= public
    front = ", ".join(names for module, names in used if module == "scrapy_dripper" and names).split(", ")
    assert set(front) <= set(scrapy_dripper.__all__)


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize("code", settings())
def test_settings_are_allowed(code: str) -> None:
    if "rules.toml" in code and sys.version_info < (3, 11):
        pytest.skip("Python has no tomllib")
    values: dict[str, Any] = {}
    exec(code, values)

    Config.from_settings(Settings({name: value for name, value in values.items() if name.isupper()}))


def commands() -> list[Any]:
    """Return the command lines that documents show, in fences and in sentences, as test parameters."""
    found = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8").replace("\\\n", " ").replace("$URL", "https://example.org/")
        lines = [line for block in re.findall(r"^```\w*\n(.*?)^```$", text, re.S | re.M) for line in block.splitlines()]
        parts = re.split(r"#|&&|\||\n", "\n".join([*lines, *re.findall(r"`([^`\n]+)`", text)]))
        calls = (re.sub(r"^(?:\$ )?(?:\S+/bin/)?", "", part.strip()) for part in parts)
        found += [(document.stem, call) for call in dict.fromkeys(calls) if is_command(call) and "..." not in call]
    return [pytest.param(call, id=f"{name}: {call}") for name, call in found]


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize("command", commands())
def test_a_command_exists_with_its_options(command: str) -> None:
    """The command line is parsed but not run, since it may take hours."""
    if "--rules rules.toml" in command and sys.version_info < (3, 11):
        pytest.skip("Python has no tomllib")
    program, *words = shlex.split(command)
    options = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--help"}
    if program == "scrapy-dripper":
        if " ".join(words[: 1 + (words[:1] == ["corpus"])]) in LABORATORY:
            pytest.importorskip("scrapy_dripper_lab")
        if words[1:] not in ([], ["--help"]):
            _parser(words).parse_args(words)
    elif program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
        assert {word for word in words if "=" not in word} <= set(targets)
    elif words[:2] != ["-m", "pytest"]:
        path = ROOT / (words[1].replace(".", "/") if words[0] == "-m" else words[0])
        path = path if path.exists() or path.with_suffix(".py").exists() else ROOT / "lab" / path.relative_to(ROOT)
        code = (path / "__main__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")
        known = set(re.findall(r'"(--[a-z-]+)"', code))
        assert options <= known | {f"--{name}" for name in re.findall(r'"([a-z-]+)"', code)}


def test_the_table_of_the_papers_names_tests_that_exist() -> None:
    """A row without a test is of a method that was measured and is not worth an option. Each test that is named after a
    part of a paper is in the table.
    """
    text = (ROOT / "docs/internals/papers.md").read_text(encoding="utf-8")
    _, _, *rows = (line.split("|")[1:-1] for line in text.splitlines() if line.startswith("|"))
    known = {
        f"{path.name}::{name}"
        for folder in (ROOT / "tests", ROOT / "lab" / "tests")
        for path in folder.rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.M)
    }
    named = set()
    for section, _, command, figure, tests in rows:
        found = re.findall(r"`(test_\w+\.py::test_\w+)`", tests)
        assert set(found) <= known, section
        assert found or command.strip() == "not worth it", section
        assert figure.strip(), section
        named |= set(found)
    of_papers = re.compile(r"::test_(?:section|appendix|definition|table)_\d|::test_appendix_[ab]_").search
    assert named >= set(filter(of_papers, known))
