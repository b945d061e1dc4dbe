"""The engine ``encoder``, which classifies each block by the token after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import EngineError, Labels, Limits
from scrapy_dripper.engines.encoder.chunks import Chunk, chunks
from scrapy_dripper.engines.encoder.model import EncoderModel, Floats
from scrapy_dripper.engines.encoder.prepared import Encoder, load_encoder
from scrapy_dripper.engines.prepared import model_folder
from scrapy_dripper.page.page import Page
from scrapy_dripper.page.simplify import simplify

Run = Callable[[Sequence[Chunk]], list["Floats | EngineError"]]
"""Returns the logits [blocks, 2] of other and main, or the error, of each pass, in order."""


class EncoderEngine:
    """Label blocks with an encoder, in passes over as many blocks as fit into its context."""

    name = "encoder"
    limits = Limits()

    def __init__(self, prepared: Encoder, run: Run, config: Config, close: Callable[[], None] = lambda: None) -> None:
        """``run`` runs passes of the model, which may be in another process. ``close`` is called at the end."""
        self.profile = prepared.profile
        self._prepared, self._run, self._close = prepared, run, close
        self._tokenizer = prepared.tokenizer()
        self._most = most_tokens(prepared, config)
        chars = config.truncate_chars
        self._truncate_chars = prepared.truncate_chars if chars is None else chars

    @classmethod
    def load(cls, config: Config) -> EncoderEngine:
        """Return the configured engine. Raise ModelError if it cannot work."""
        model = load_model(config)
        return cls(model.prepared, model.run, config, model.close)

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels of each page, or the error, in order."""
        divided = [self._chunks(page) for page in pages]
        passes = [one for own in divided for one in own]
        answers = iter(self._run(passes) if passes else ())
        return [_labels(own, [next(answers) for _ in own]) for own in divided]

    def close(self) -> None:
        """Release the model. Further calls have no effect."""
        self._close()

    def _chunks(self, page: Page) -> list[Chunk]:
        blocks = simplify(page, self._truncate_chars)
        if blocks:
            blocks[-1] += self._prepared.foot
        found = self._tokenizer.encode_batch_fast(blocks, add_special_tokens=False)
        return chunks([one.ids for one in found], self._prepared, self._most)


def load_model(config: Config) -> EncoderModel:
    """Return the configured model. Raise ModelError if it does not run as configured."""
    prepared = load_encoder(model_folder(config))
    return EncoderModel(prepared, device=config.device, threads=config.threads, most=most_tokens(prepared, config))


def most_tokens(prepared: Encoder, config: Config) -> int:
    """Return the maximum number of tokens of a pass."""
    return min(prepared.context, config.max_tokens or prepared.context)


def _labels(passes: Sequence[Chunk], answers: Sequence[Floats | EngineError]) -> Labels | EngineError:
    found: list[Floats] = [np.zeros((0, 2), dtype=np.float32)]
    for one in answers:
        if isinstance(one, EngineError):
            return one
        found.append(one)
    logits = np.concatenate(found).astype(np.float64)
    margin = logits[:, 1] - logits[:, 0]
    p = np.exp(-np.logaddexp(0, -margin)).astype(np.float32)
    work = {"passes": len(passes), "positions": sum(len(one.ids) for one in passes)}
    return Labels(p, margin > 0, work=work)
