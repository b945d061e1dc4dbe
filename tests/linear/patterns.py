"""All regular expressions of the package: those that its modules make at import, and those in its functions."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest.mock import MagicMock, patch

import scrapy_dripper

METHODS = frozenset({"search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"})
CALLS = METHODS | {"compile"}
OTHERS = frozenset({"Pattern", "Match", "escape", "error", *re.RegexFlag.__members__, *"AILMSUX"})
ENGINES = frozenset({"re", "regex", "re2", "sre_compile", "sre_parse", "_sre"})
"""Modules with regular expressions; only the first may be used."""
ANY_METHOD = ("finditer", "fullmatch")
"""If any method of a pattern is slow, one of these two is."""


class Use(NamedTuple):
    """A method of a pattern and the place of its call."""

    place: str
    """Module and, for a call in a function, its name."""
    pattern: re.Pattern[Any]
    method: str


class _Noted:
    """A pattern that a module makes, and the methods that the module takes of it at once."""

    def __init__(self, module: str, pattern: re.Pattern[Any]) -> None:
        self.module, self.made = module, pattern
        self.taken: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.taken |= {name} & METHODS
        return getattr(self.made, name)


def uses() -> tuple[list[Use], list[str]]:
    """Return all uses of patterns in the package, and the functions that make a pattern that is unknown.

    The package must not have been imported, because patterns are noted while its modules make them.
    """
    made: list[_Noted] = []
    compiled = re.compile

    def noted(pattern: Any, flags: Any = 0) -> Any:
        module = sys._getframe(1).f_globals["__name__"]
        if not module.startswith("scrapy_dripper."):
            return compiled(pattern, flags)
        made.append(_Noted(module, compiled(pattern, flags)))
        return made[-1]

    with patch("re.compile", noted):
        sources = dict(_sources())
    found = [Use(one.module, one.made, method) for one in made for method in sorted(one.taken) or ANY_METHOD]
    unknown: list[str] = []
    for module, source in sources.items():
        for function, method, arguments in calls_in(module, source):
            pattern, *others = arguments
            has_flags = any(isinstance(node, ast.Name) and node.id == "re" for one in others for node in ast.walk(one))
            if method in METHODS and isinstance(pattern, ast.Constant) and not has_flags:
                found.append(Use(f"{module}:{function}", re.compile(pattern.value), method))
            else:
                unknown.append(f"{module}:{function}")
    return found, unknown


def _sources() -> Iterator[tuple[str, str]]:
    """Import the modules of the package, and yield their names and sources."""
    for found in pkgutil.walk_packages(scrapy_dripper.__path__, "scrapy_dripper."):
        if not found.name.endswith("__main__"):
            _import(found.name)
        spec: Any = found.module_finder.find_spec(found.name, None)  # type: ignore[call-arg]
        yield found.name, spec.loader.get_source(found.name)


def _import(name: str) -> None:
    """Import a module. Optional dependencies that are missing are replaced."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("scrapy_dripper"):
            raise
        sys.modules[error.name] = MagicMock()
        _import(name)


def calls_in(name: str, source: str) -> Iterator[tuple[str, str, list[ast.expr]]]:
    """Yield the calls of ``re`` in the functions of a module: the function, what it calls, and the arguments.

    Raise AssertionError for a use of ``re`` that cannot be analysed.
    """
    nodes = list(ast.walk(ast.parse(source)))
    calls = {node.func: node for node in nodes if isinstance(node, ast.Call)}
    attributes = {node.value: node for node in nodes if isinstance(node, ast.Attribute)}
    found: dict[ast.AST, str] = {}
    for node in nodes:
        hidden = False
        if isinstance(node, ast.ImportFrom):
            hidden = node.module in ENGINES
        elif isinstance(node, ast.Import):
            hidden = any(alias.name in ENGINES and (alias.name != "re" or alias.asname) for alias in node.names)
        elif isinstance(node, ast.Name) and node.id == "re":
            used = attributes.get(node)
            if used is not None and used in calls and used.attr in CALLS:
                found[calls[used]] = used.attr
            else:
                hidden = used is None or used.attr not in OTHERS
        assert not hidden, f"{name}: expected `import re` and calls of it (got {ast.unparse(node)})"
    for function in nodes:
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            body = function.body if isinstance(function.body, list) else [function.body]
            for call in (node for part in body for node in ast.walk(part) if node in found):
                assert isinstance(call, ast.Call)
                values = [*call.args, *(keyword.value for keyword in call.keywords)]
                yield getattr(function, "name", "lambda"), found[call], values
