"""All regular expressions of the package: those that its modules make at import, and those in its functions."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple
from unittest.mock import patch

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
    """Module and function or line."""
    pattern: re.Pattern[Any]
    method: str


class Site(NamedTuple):
    """A call of ``re`` in the source, and what is done with the pattern that it makes."""

    call: ast.Call
    methods: tuple[str, ...]
    function: str
    """The function that the call is in, if any."""


def sites_in(name: str, source: str) -> Iterator[Site]:
    """Yield the calls of ``re`` in the source of a module.

    Raise AssertionError for a use of ``re`` that cannot be analysed.
    """
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        hidden = False
        if isinstance(node, ast.ImportFrom):
            hidden = node.module in ENGINES
        elif isinstance(node, ast.Import):
            hidden = any(alias.name in ENGINES and (alias.name != "re" or alias.asname) for alias in node.names)
        elif isinstance(node, ast.Name) and node.id == "re":
            used = parents[node]
            call = parents[used]
            is_call = isinstance(call, ast.Call) and call.func is used
            if isinstance(used, ast.Attribute) and used.attr in CALLS and is_call:
                assert isinstance(call, ast.Call)
                yield Site(call, _methods(used.attr, parents[call]), _function(call, parents))
            else:
                hidden = not (isinstance(used, ast.Attribute) and used.attr in OTHERS)
        if hidden:
            raise AssertionError(f"{name}: expected `import re` and calls of it (got {ast.unparse(node)})")


def _methods(called: str, parent: ast.AST) -> tuple[str, ...]:
    if called in METHODS:
        return (called,)
    if isinstance(parent, ast.Attribute):
        return (parent.attr,) if parent.attr in METHODS else ()
    return ANY_METHOD


def _function(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    """Return the name of the function in whose body a node is."""
    while (parent := parents.get(node)) is not None:
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and node not in _at_import(parent):
            return getattr(parent, "name", "lambda")
        node = parent
    return ""


def _at_import(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.AST]:
    return [*getattr(function, "decorator_list", []), function.args]


def evaluated(call: ast.Call, names: dict[str, Any]) -> re.Pattern[Any] | None:
    """Return the pattern of a call if the module's names define it, else None."""
    assert isinstance(call.func, ast.Attribute)
    at = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(call.func.attr, 2)
    flags = [*call.args[at : at + 1], *(one.value for one in call.keywords if one.arg == "flags")]
    try:
        values = [eval(compile(ast.Expression(one), "<pattern>", "eval"), names) for one in (call.args[0], *flags)]
        return re.compile(*values)
    except (NameError, TypeError, AttributeError, LookupError):
        return None


def uses() -> tuple[list[Use], list[str]]:
    """Return all uses of patterns in the package, and the functions that make a pattern that is unknown.

    The package must not have been imported: patterns that its source does not name, such as those of a comprehension,
    are noted while its modules make them.
    """
    made: list[tuple[str, re.Pattern[Any]]] = []
    compiled = re.compile

    def noted(pattern: Any, flags: Any = 0) -> re.Pattern[Any]:
        found = compiled(pattern, flags)
        made.append((sys._getframe(1).f_globals["__name__"], found))
        return found

    with patch("re.compile", noted):
        loaded = list(_modules())
    found: list[Use] = []
    unknown: list[str] = []
    unnamed: dict[str, set[str]] = {}
    for name, module, source in loaded:
        for site in sites_in(name, source):
            pattern = evaluated(site.call, {"re": re} if module is None else dict(vars(module)))
            if pattern is not None:
                place = f"{name}:{site.function or site.call.lineno}"
                found += [Use(place, pattern, method) for method in site.methods]
            elif site.function or module is None:
                unknown.append(f"{name}:{site.function}")
            else:
                unnamed.setdefault(name, set()).update(site.methods)
    known = {use.pattern for use in found}
    for name, pattern in made:
        if name.startswith("scrapy_dripper.") and pattern not in known:
            found += [Use(name, pattern, method) for method in sorted(unnamed.get(name, ANY_METHOD))]
    return found, unknown


def _modules() -> Iterator[tuple[str, ModuleType | None, str]]:
    """Yield the modules of the package with their source; None for a module whose optional dependency is missing."""
    for found in pkgutil.walk_packages(scrapy_dripper.__path__, "scrapy_dripper."):
        spec: Any = found.module_finder.find_spec(found.name, None)  # type: ignore[call-arg]
        try:
            module = None if found.name.endswith("__main__") else importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if str(error.name).startswith("scrapy_dripper"):
                raise
            module = None
        yield found.name, module, spec.loader.get_source(found.name)
