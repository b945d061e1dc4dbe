"""All regular expressions of the package: those that its modules hold and those that its functions use."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator
from functools import cache, partial
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import scrapy_dripper

METHODS = frozenset({"search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"})
CALLS = METHODS | {"compile"}
OTHERS = frozenset({"Pattern", "Match", "escape", "error", *re.RegexFlag.__members__, *"AILMSUX"})
ENGINES = frozenset({"re", "regex", "re2", "sre_compile", "sre_parse", "_sre"})
"""Modules with regular expressions; only the first may be used."""
_named = re.compile(rf"\b(?:{'|'.join(ENGINES)})\b").search


class Use(NamedTuple):
    """A method of a pattern and the place of its call."""

    place: str
    """Module and name, as in ``scrapy_dripper.output.images:_small``."""
    pattern: re.Pattern[Any]
    method: str


class Site(NamedTuple):
    """A call of ``re`` in the source."""

    module: str
    name: str
    """What a module calls the result, or the function that the call is in."""
    method: str
    call: ast.Call
    in_function: bool


def modules() -> Iterator[tuple[str, ModuleType | None, str]]:
    """Yield the modules of the package with their source; None for a module whose optional dependency is missing."""
    for found in pkgutil.walk_packages(scrapy_dripper.__path__, "scrapy_dripper."):
        spec = found.module_finder.find_spec(found.name, None)  # type: ignore[call-arg]
        assert spec is not None
        assert spec.loader is not None
        source = spec.loader.get_source(found.name)  # type: ignore[attr-defined]
        try:
            module = None if found.name.endswith("__main__") else importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if str(error.name).startswith("scrapy_dripper"):
                raise
            module = None
        yield found.name, module, source or ""


def held(value: object, place: str, package: str, seen: set[int]) -> Iterator[Use]:
    """Yield the patterns in a value: in items and attributes, and in the closure and defaults of a function."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, re.Pattern):
        # It is not known which methods are called. If any method is slow, one of these two is.
        yield Use(place, value, "finditer")
        yield Use(place, value, "fullmatch")
        return
    if isinstance(value, BuiltinMethodType) and isinstance(value.__self__, re.Pattern):
        yield Use(place, value.__self__, value.__name__)
        return
    for inner in _inner(value, package):
        yield from held(inner, place, package, seen)


def _inner(value: object, package: str) -> Iterable[object]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return value
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, MethodType):
        return [value.__func__]
    if isinstance(value, (staticmethod, classmethod)):
        return [value.__func__]
    if isinstance(value, property):
        return [value.fget, value.fset]
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
        return [*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    if hasattr(value, "__wrapped__"):
        return [value.__wrapped__]
    if isinstance(value, type):
        return list(vars(value).values()) if value.__module__.startswith(package) else []
    if type(value).__module__.startswith(package):
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        return [*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in slots)]
    return []


def _is_filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def sites_in(name: str, source: str) -> Iterator[Site]:
    """Yield the calls of ``re`` in the source of a module.

    Raise AssertionError for a use of ``re`` that cannot be analysed.
    """
    if not _named(source):
        return
    tree = ast.parse(source)
    seen: set[ast.AST] = set()
    for node in ast.walk(tree):
        hidden = False
        if isinstance(node, ast.ImportFrom):
            hidden = node.module in ENGINES
        elif isinstance(node, ast.Import):
            hidden = any(alias.name in ENGINES and (alias.name != "re" or alias.asname) for alias in node.names)
        elif isinstance(node, ast.Call) and _is_of_re(node.func):
            seen.add(node.func)
        elif isinstance(node, ast.Attribute) and _is_of_re(node):
            seen.add(node.value)
            hidden = node.attr not in OTHERS and (node.attr not in CALLS or node not in seen)
        elif isinstance(node, ast.Name):
            hidden = node.id == "re" and node not in seen
        if hidden:
            raise AssertionError(f"{name}: expected `import re` and calls of it (got {ast.unparse(node)})")
    yield from _sites(tree, name, "", False)


def _is_of_re(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "re"


def _sites(node: ast.AST, module: str, name: str, in_function: bool) -> Iterator[Site]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        inner = [*node.body]
        for other in [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]:
            yield from _sites(other, module, name or node.name, in_function)
        for child in inner:
            yield from _sites(child, module, f"{name}.{node.name}" if name else node.name, True)
        return
    if isinstance(node, ast.ClassDef):
        for child in ast.iter_child_nodes(node):
            yield from _sites(child, module, f"{name}.{node.name}" if name else node.name, in_function)
        return
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and not in_function and not name:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        name = ast.unparse(target)
    method = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    if isinstance(node, ast.Call) and _is_of_re(node.func) and method in CALLS:
        yield Site(module, name, method, node, in_function)
    for child in ast.iter_child_nodes(node):
        yield from _sites(child, module, name, in_function)


def evaluated(site: Site, module: ModuleType | None) -> re.Pattern[Any] | None:
    """Return the pattern of a call if the module's names define it, else None."""
    names = dict(vars(module)) if module is not None else {"re": re}
    arguments = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(site.method, 2)
    flags = site.call.args[arguments] if len(site.call.args) > arguments else None
    for keyword in site.call.keywords:
        if keyword.arg == "flags":
            flags = keyword.value
        elif keyword.arg == "pattern":
            return None
    try:
        pattern = _value(site.call.args[0], names)
        return re.compile(pattern, _value(flags, names) if flags is not None else 0)
    except (NameError, TypeError, AttributeError, IndexError, KeyError):
        return None


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "<pattern>", "eval"), names)


@cache
def uses() -> tuple[list[Use], list[str]]:
    """Return all uses of patterns in the package, and the places of calls of ``re`` whose pattern is unknown."""
    found: list[Use] = []
    unknown: list[str] = []
    for name, module, source in modules():
        names = {} if module is None else vars(module)
        here: dict[str, list[Use]] = {}
        for key, value in names.items():
            if inspect.ismodule(value):
                continue
            if isinstance(value, (type, FunctionType)) and value.__module__ != name:
                continue
            here[key] = list(held(value, f"{name}:{key}", "scrapy_dripper", set()))
            found.extend(here[key])
        for site in sites_in(name, source):
            pattern = evaluated(site, module)
            place = f"{name}:{site.name}"
            at_import = site.method == "compile" and not site.in_function and module is not None
            if at_import:
                uses_here = here.get(site.name)
                if not uses_here or (pattern is not None and all(use.pattern != pattern for use in uses_here)):
                    unknown.append(place)
            elif pattern is None:
                unknown.append(place)
            else:
                methods = [site.method] if site.method in METHODS else ["finditer", "fullmatch"]
                found.extend(Use(place, pattern, method) for method in methods)
    return found, unknown
