"""Fallbacks of the user's: functions, and the dotted paths under which settings and other processes know them."""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from scrapy_dripper.config import FALLBACKS, Config, ConfigError

if TYPE_CHECKING:
    from scrapy_dripper.extraction import Extraction

logger = logging.getLogger(__name__)

Fallback: TypeAlias = "Callable[[str, str], str | Extraction | None]"
"""What ``DRIPPER_FALLBACK`` can name: takes the HTML of a document and its URL.

It returns the main content as HTML, of which Markdown and text are made, or a whole :class:`Extraction`, or None where
it finds nothing.
"""


def check_fallback(config: Config) -> None:
    """Raise :exc:`ConfigError` if the fallback of the configuration is a dotted path that leads to no callable."""
    if isinstance(config.fallback, str) and config.fallback not in FALLBACKS:
        load(config.fallback)


def dotted_path(fallback: str | Callable[..., Any]) -> str:
    """Return the name under which another process finds a fallback.

    Raise :exc:`ConfigError` for a callable that has none.
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
            logger.debug("%(path)s is not the fallback", {"path": path}, exc_info=True)
    raise ConfigError(
        f"DRIPPER_FALLBACK is {fallback!r}, which worker processes cannot import: put the function into a module and "
        "name it as 'package.module.function', or set DRIPPER_PROCESSES = 0"
    )


@lru_cache(maxsize=32)
def load(path: str) -> Fallback:
    """Return the function at a dotted path. Raise :exc:`ConfigError` if there is none."""
    try:
        found = pkgutil.resolve_name(path)
    except Exception as error:  # whatever the import of the user's module raises
        raise ConfigError(
            f"DRIPPER_FALLBACK is {path!r}, which cannot be imported ({type(error).__name__}: {error}); "
            f"name a callable as package.module.function, or one of {', '.join(map(repr, FALLBACKS))}"
        ) from error
    if not callable(found) or isinstance(found, type):
        raise ConfigError(
            f"DRIPPER_FALLBACK must name a function that takes (html, url) (got {path!r}, a {type(found).__name__})"
        )
    return cast("Fallback", found)
