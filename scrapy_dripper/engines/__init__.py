"""Who labels the blocks of a page."""

from __future__ import annotations

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import Engine

__all__ = ["load_engine"]


def load_engine(config: Config) -> Engine:
    """Return the configured engine, loaded and tried. Raise ModelError if it cannot be."""
    # onnxruntime is an extra: missed here, with advice.
    if config.engine == "qwen3":
        from scrapy_dripper.engines.qwen3.engine import Qwen3Engine

        return Qwen3Engine.load(config)
    from scrapy_dripper.engines.tagger import Tagger

    return Tagger.load(config)
