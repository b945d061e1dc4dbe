"""What ``DRIPPER_FALLBACK`` names: built-in fallbacks, or functions by their dotted paths. No fallback is imported
here, because the process of a crawl with workers runs none."""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from scrapy_dripper.config import FALLBACKS, Config, ConfigError

if TYPE_CHECKING:
    from scrapy_dripper.data import Extraction

logger = logging.getLogger(__name__)

Fallback: TypeAlias = "Callable[[str, str], str | Extraction | None]"
"""A custom fallback, as named by ``DRIPPER_FALLBACK``. It is called with the HTML of a document and its URL.

It returns the main content as HTML, from which Markdown and text are written; or a complete :class:`Extraction`; or
None if it finds nothing.
"""


NEEDS = {"readability": ("readability", "fallbacks"), "justext": ("justext", "fallbacks")}
"""The module that a built-in fallback imports, and the extra that installs it, where it needs one."""
NOTHING_MEANT = ("empty", "none")
"""The built-in fallbacks that return nothing by design."""
PARSING = tuple(name for name in FALLBACKS if name not in NOTHING_MEANT)
"""The built-in fallbacks that parse the document. What a custom one does is not known."""


def check_fallback(config: Config) -> None:
    """Raise :exc:`ConfigError` if the configured fallback cannot run here.

    It is a dotted path that does not name a function, or needs an extra that is not installed.
    """
    if not isinstance(config.fallback, str):
        return
    if config.fallback not in FALLBACKS:
        load(config.fallback)
        return
    needs = NEEDS.get(config.fallback)
    if needs is not None and find_spec(needs[0]) is None:
        raise ConfigError(
            f"DRIPPER_FALLBACK is {config.fallback!r}, which needs {needs[0]}: run 'pip install "
            f"scrapy-dripper[{needs[1]}]', or choose another fallback"
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
def load(path: str) -> Fallback:
    """Return the function at a dotted path. Raise :exc:`ConfigError` if there is none."""
    try:
        found = pkgutil.resolve_name(path)
    except Exception as error:  # importing a user's module can raise anything
        raise ConfigError(
            f"DRIPPER_FALLBACK is {path!r}, which cannot be imported ({type(error).__name__}: {error}); "
            f"name a callable as package.module.function, or one of {', '.join(map(repr, FALLBACKS))}"
        ) from error
    if not callable(found) or isinstance(found, type):
        raise ConfigError(
            f"DRIPPER_FALLBACK must name a function that takes (html, url) (got {path!r}, a {type(found).__name__})"
        )
    return cast("Fallback", found)
