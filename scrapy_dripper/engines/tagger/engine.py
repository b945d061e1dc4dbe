"""The tagger as an engine: features, model, decoding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import EngineError, Labels, Limits, ModelError
from scrapy_dripper.engines.tagger.context import context
from scrapy_dripper.engines.tagger.decode import Decoding, decode
from scrapy_dripper.engines.tagger.features import features, schema_hash
from scrapy_dripper.engines.tagger.little import with_little
from scrapy_dripper.engines.tagger.model import Model, bundled
from scrapy_dripper.engines.tagger.notes import with_notes
from scrapy_dripper.engines.tagger.twins import without_twins
from scrapy_dripper.engines.tagger.whole import with_alike, with_whole
from scrapy_dripper.page.page import Page


def choose(
    page: Page, probabilities: npt.NDArray[np.float32], size: npt.NDArray[np.float32], decoding: Decoding
) -> npt.NDArray[np.bool_]:
    """Return which of a page's n blocks are main: by expected F1, then by the rules of this package.

    What the page's wishes favor counts more. All arrays have shape (n,); ``size`` is in words. Twins come last, so that
    nothing makes a twin main again.
    """
    main = with_little(page, probabilities, decode(probabilities, size, decoding.favoring(page.wishes.favor)))
    main = with_alike(page, probabilities, with_whole(page, probabilities, main))
    main = with_notes(page, probabilities, main)
    return without_twins(page, probabilities, main)


class Tagger:
    """Label blocks by a tiny ONNX model over their features. All the pages of a call share one run of the model."""

    name = "tagger"
    profile = "native"
    limits = Limits()

    def __init__(self, model: Model) -> None:
        self._model = model

    @classmethod
    def load(cls, config: Config) -> Tagger:
        """Return a tagger that was tried on a small page. Raise ModelError, saying what to do, if it cannot work."""
        folder = Path(config.model) if config.model else bundled()
        tagger = cls(Model(folder, device=config.device, threads=config.threads))
        tagger._smoke(folder)
        return tagger

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels of each page."""
        batch = features(pages)
        probabilities = self._model(batch)
        answers: list[Labels | EngineError] = []
        for page, a, b in zip(pages, batch.edges[:-1].tolist(), batch.edges[1:].tolist(), strict=True):
            p = probabilities[a:b]
            answers.append(Labels(p, choose(page, p, batch.size[a:b], self._model.manifest.decoding)))
        return answers

    def close(self) -> None:
        """Let go of the session; closing twice is no error."""
        vars(self).pop("_model", None)

    def _smoke(self, folder: Path) -> None:
        """Try the model before the crawl needs it, which also builds the tables that the first page would wait for."""
        from lxml.html import document_fromstring

        from scrapy_dripper.page.blocks import cut

        page = cut(document_fromstring("<html><body><h1>Title</h1><p>A line of text.</p></body></html>"))
        batch = features([page])
        schema = schema_hash(batch.names, list(context(batch, np.zeros(len(batch.size), dtype=np.float32))))
        if schema != self._model.manifest.feature_schema:
            raise ModelError(
                f"The model in {folder} was trained for other features (schema {self._model.manifest.feature_schema}, "
                f"this version has {schema}): train it again with 'make train', or use the bundled model"
            )
        try:
            p = self._model(batch)
        except Exception as error:
            raise ModelError(f"The model in {folder} does not run ({error}): restore the model folder") from None
        if p.shape != (2,) or not np.isfinite(p).all():
            raise ModelError(f"The model in {folder} does not give one probability per block: restore the model folder")
