"""What ``DRIPPER_FALLBACK`` and ``DRIPPER_ENGINE`` name beside models: methods, or functions by their dotted paths. No
method is imported here, because the process of a crawl with workers runs none."""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, cast

from scrapy_dripper.checks import METHODS
from scrapy_dripper.config import FALLBACKS, Config, ConfigError

logger = logging.getLogger(__name__)


def is_method(name: object) -> bool:
    """Return True for the name of a method. Anything else, such as a dotted path, need not be hashable."""
    return isinstance(name, str) and name in METHODS


def check_methods(config: Config) -> None:
    """Raise :exc:`ConfigError` if the configured fallback, or the method that is the engine, cannot run here.

    It is a dotted path that does not name a function, or needs an extra that is not installed.
    """
    if isinstance(config.fallback, str) and config.fallback not in FALLBACKS:
        load(config.fallback)
    for option, name in (("engine", config.engine), ("fallback", config.fallback)):
        if not is_method(name):
            continue
        _, module, extra = METHODS[str(name)]
        if name == "sore" and config.methods.embedder is not None:
            load(config.methods.embedder, 'DRIPPER_METHODS["embedder"]', "texts")
        elif module and find_spec(module) is None:
            raise ConfigError(
                f"DRIPPER_{option.upper()} is {name!r}, which needs {module}: run 'pip install "
                f"scrapy-dripper[{extra}]', or choose another {option}"
            )


def dotted_path(fallback: str | Callable[..., Any]) -> str:
    """Return the dotted path by which another process can import a fallback.

    Raise :exc:`ConfigError` for a callable that cannot be imported.
    """
    if isinstance(fallback, str):
        return fallback
    module, name = getattr(fallback, "__module__", None), getattr(fallback, "__qualname__", None)
    path = f"{module}.{name}"
    if module != "__main__":
        try:
            if pkgutil.resolve_name(path) is fallback:
                return path
        except Exception:
            logger.debug("%(path)s does not lead to the fallback", {"path": path}, exc_info=True)
    raise ConfigError(
        f"DRIPPER_FALLBACK is {fallback!r}, which worker processes cannot import: put the function into a module and "
        "name it as 'package.module.function', or set DRIPPER_PROCESSES = 0"
    )


@lru_cache(maxsize=32)
def load(path: str, setting: str = "DRIPPER_FALLBACK", takes: str = "html, url") -> Callable[..., Any]:
    """Return the function at a dotted path, or the class if it is an engine. Raise :exc:`ConfigError`, which names the
    setting, if there is none.
    """
    try:
        found = pkgutil.resolve_name(path)
    except Exception as error:  # importing a user's module can raise anything
        raise ConfigError(
            f"{setting} is {path!r}, which cannot be imported ({type(error).__name__}: {error}); name a callable as "
            "package.module.function"
        ) from error
    if not callable(found) or (isinstance(found, type) and setting != "DRIPPER_ENGINE"):
        raise ConfigError(
            f"{setting} must name a function that takes ({takes}) (got {path!r}, a {type(found).__name__})"
        )
    return cast("Callable[..., Any]", found)
