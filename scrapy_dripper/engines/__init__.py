"""Predict which blocks of a page are main content: the engines, their features, and the files of their models."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from scrapy_dripper.checks import METHODS
from scrapy_dripper.config import Config, ConfigError, load
from scrapy_dripper.engines.base import Engine, EngineError, Labels, Limits, ModelError
from scrapy_dripper.page import NATIVE, Page, Profile

__all__ = ["load_engine", "profile_of"]


def load_engine(config: Config) -> Engine:
    """Load and check the configured engine. Raise ModelError if that fails."""
    # onnxruntime is an extra. If it is missing, the engine raises ModelError with advice.
    match config.engine:
        case "tagger":
            from scrapy_dripper.engines.tagger import Tagger

            return Tagger.load(config)
        case "qwen3":
            if find_spec("tokenizers") is None:
                raise ModelError("DRIPPER_ENGINE = 'qwen3' needs tokenizers: pip install 'scrapy-dripper[tokenizers]'")
            from scrapy_dripper.engines.qwen3.engine import Qwen3Engine

            return Qwen3Engine.load(config)
        case name if name in METHODS:
            return _Method(name)
        case _:
            return _custom_engine(config)


class _Method:
    """Stands for a method, which extracts documents as a whole and is not asked for labels."""

    profile, limits = NATIVE.name, Limits()

    def __init__(self, name: str) -> None:
        self.name = name

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        return [EngineError(f"{self.name} labels no blocks") for _ in pages]

    def close(self) -> None:
        pass


def profile_of(engine: Engine) -> Profile:
    """Return the profile by which pages are cut for an engine."""
    if engine.profile == NATIVE.name:
        return NATIVE
    from scrapy_dripper.engines.qwen3.profile import PROFILES  # only large models need it

    return PROFILES[engine.profile]


def _custom_engine(config: Config) -> Engine:
    """Load a custom engine: call the callable at its dotted path with the configuration."""
    try:
        engine: Engine = load(config.engine, "DRIPPER_ENGINE", "config")(config)
    except ModelError:
        raise
    except ConfigError as error:
        raise ModelError(str(error)) from error
    except Exception as error:
        raise ModelError(f"The engine {config.engine} cannot be loaded ({type(error).__name__}: {error})") from error
    missing = [name for name in ("name", "profile", "limits", "label", "close") if not hasattr(engine, name)]
    if missing:
        raise ModelError(f"The engine {config.engine} has no {', '.join(missing)}: see scrapy_dripper.Engine")
    return engine
