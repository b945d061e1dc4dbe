"""The tagger: a tiny bundled ONNX model over features of the blocks, on any CPU."""

from scrapy_dripper.engines.tagger.engine import Tagger

__all__ = ["Tagger"]
