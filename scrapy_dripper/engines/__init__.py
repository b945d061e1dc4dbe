"""Who labels the blocks of a page."""

from __future__ import annotations

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import Engine

__all__ = ["load_engine"]


def load_engine(config: Config) -> Engine:
    """Return the configured engine, loaded and tried. Raise ModelError if it cannot be."""
    from scrapy_dripper.engines.tagger import Tagger  # onnxruntime is an extra: missed here, with advice

    return Tagger.load(config)
