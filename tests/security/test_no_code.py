"""No code from pages or model folders is executed. Only listed places of the package call functions that could do
so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = {"": ROOT / "scrapy_dripper", "lab/": ROOT / "lab" / "scrapy_dripper_lab"}
SOURCES = {
    prefix + path.relative_to(folder).as_posix(): path
    for prefix, folder in FOLDERS.items()
    for path in sorted(folder.rglob("*.py"))
}

MODULES = {
    **dict.fromkeys(("pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"), "unpickles"),
    **dict.fromkeys(("yaml", "jsonpickle", "runpy", "code", "codeop", "imp"), "makes objects or code of text"),
    **dict.fromkeys(("xml", "xmlrpc", "defusedxml", "html5lib"), "parses with rules of its own"),
    **dict.fromkeys(("socket", "requests", "httpx", "aiohttp", "urllib3", "ftplib", "smtplib"), "uses the network"),
    **dict.fromkeys(("urllib.request", "huggingface_hub"), "uses the network"),
    **dict.fromkeys(("subprocess", "importlib", "pkgutil"), "runs code by name"),
}
"""Modules that may only be imported in places for which :data:`ALLOWED` has a reason."""

ALLOWED = {
    (
        "lab/training/fit.py",
        "pickle",
    ): "examples to its own processes, through a folder that nobody else can write to",
    ("corpus/steps.py", "dill"): "the steps of a run to its own processes, as datatrove does",
    ("crawl/sites.py", "pickle"): "files in JOBDIR, where Scrapy keeps pickles of its own",
    ("egress.py", "urllib.request"): "URLs that the user names on the command line, within a deadline",
    ("egress.py", "socket"): "addresses of URLs that servers name, checked first, and connections with a deadline",
    ("lab/endpoint.py", "urllib.request"): "the endpoint that the user names on the command line",
    ("lab/export/checkpoint.py", "huggingface_hub"): "a model that the user names on the command line",
    ("__init__.py", "importlib"): "the module of a public name, out of a constant table",
    ("workers/wire.py", "pkgutil"): "the function that DRIPPER_FALLBACK is, to see that another process finds it",
    ("workers/process.py", "subprocess"): "the worker processes, with arguments and no shell",
    ("child/__init__.py", "importlib"): "the module of an engine, out of a constant tuple",
    ("cli/__init__.py", "importlib"): "the module of a command, out of a constant table",
    ("lab/evaluation/peers.py", "importlib"): "the packages of other extractors, out of a constant table",
    ("config.py", "pkgutil"): "DRIPPER_ENGINE, DRIPPER_FALLBACK and an embedder, which are settings",
    ("fallback/__init__.py", "pkgutil"): "the function of a method, out of a constant table",
    ("derived.py", "pkgutil"): "the function of a field of the output, out of the declarations of fields",
    ("lab/export/build.py", "subprocess"): "the exporter, with arguments and no shell",
    ("lab/prompts.py", "subprocess"): "reads the prompt of a package that the user installed",
    ("commands/guard.py", "socket"): "the proxy of the browser on the loopback interface, which checks addresses",
}

HARMLESS = {"importlib.metadata", "importlib.resources", "importlib.util"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
ATTRIBUTES = {"system", "popen", "register_custom_ops_library", "format_map", "execfile", "unsafe_load"}


@cache
def tree_of(source: str) -> ast.Module:
    return ast.parse(SOURCES[source].read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the dotted names that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str, str]]:
    """Yield each call, the source of the object it is called on, and its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                yield node, ast.unparse(node.func.value), node.func.attr
            elif isinstance(node.func, ast.Name):
                yield node, "", node.func.id


def all_calls() -> Iterator[tuple[str, ast.Call, str, str]]:
    for source in SOURCES:
        for call, on, name in calls(tree_of(source)):
            yield source, call, on, name


@cache
def constants(source: str) -> set[str]:
    """Return the names of a module that hold strings."""
    return {
        target.id
        for node in tree_of(source).body
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Constant, ast.JoinedStr))
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def keyword(call: ast.Call, name: str) -> str | None:
    return next((ast.unparse(one.value) for one in call.keywords if one.arg == name), None)


def test_modules_that_run_code_or_open_connections_are_imported_where_it_is_said() -> None:
    wrong = [
        f"{source} imports {name}, which {why}"
        for source in SOURCES
        for name in imported(tree_of(source))
        for module, why in MODULES.items()
        if (name == module or name.startswith(module + "."))
        and not any(name == one or name.startswith(one + ".") for one in HARMLESS)
        and (source, module) not in ALLOWED
    ]

    assert wrong == []


def test_no_call_runs_code_that_it_is_given() -> None:
    wrong = []
    for source, call, on, name in all_calls():
        bad = (
            (not on and name in BUILTINS)
            or (on and name in ATTRIBUTES)
            or keyword(call, "trust_remote_code") not in (None, "False")
            or keyword(call, "allow_pickle") not in (None, "False")
            or keyword(call, "shell") not in (None, "False")
            or (on == "torch" and name == "load" and keyword(call, "weights_only") != "True")
            or (on.endswith("LM") and name == "from_pretrained" and keyword(call, "use_safetensors") != "True")
        )
        if bad:
            wrong.append(f"{source}, line {call.lineno}: {ast.unparse(call)[:80]}")

    assert wrong == []


def test_only_our_own_strings_are_formats() -> None:
    """A format from outside could read any attribute, as ``{0.__class__}`` does. Prompts are split, not formatted."""
    wrong = [
        f"{source}, line {call.lineno}: {ast.unparse(call)[:80]}"
        for source, call, on, name in all_calls()
        if on and name in ("format", "safe_substitute", "substitute")
        and not on.startswith(("'", '"')) and on not in constants(source)
        and ast.unparse(call) != "self.format(record)"  # of a handler of logs
        and (source, on) != ("inspection/__init__.py", "Template(part(f'{name}.html'))")  # a file of the package
    ]  # fmt: skip

    assert wrong == []


def test_markup_is_parsed_by_an_html_parser_without_network() -> None:
    """XML parsers process entities and DTDs, and a default parser has options that we did not choose."""
    wrong = []
    for source, call, on, name in all_calls():
        constant = bool(call.args) and isinstance(call.args[0], ast.Constant)
        if on in ("etree", "html", "lxml.etree", "lxml.html") and (
            name
            in ("XMLParser", "ETCompatXMLParser", "XMLPullParser", "iterparse", "XSLT", "XInclude", "parse", "HTML")
            or (name in ("fromstring", "XML") and len(call.args) < 2 and not constant)
            or (name == "HTMLParser" and keyword(call, "no_network") != "True" and (call.args or call.keywords))
        ):
            wrong.append(f"{source}, line {call.lineno}: {ast.unparse(call)[:80]}")

    assert wrong == []
