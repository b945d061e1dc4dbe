"""The tagger engine: compute features, run the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import EngineError, Labels, Limits, ModelError
from scrapy_dripper.engines.tagger.features import Features, features
from scrapy_dripper.engines.tagger.later_stages import PAGE_TYPES, of_pages
from scrapy_dripper.engines.tagger.model import CORRECTIONS, Answer, TaggerModel, bundled, influences, schema_of
from scrapy_dripper.page.page import Bools, Page

if TYPE_CHECKING:
    from scrapy_dripper.engines.tagger.learnt import Learnt


class Tagger:
    """Labels blocks with a tiny ONNX model over their features. Each call runs the model once for all its pages."""

    name = "tagger"
    profile = "native"
    limits = Limits()

    def __init__(self, model: TaggerModel, learnt: Learnt | None = None) -> None:
        """``learnt`` replaces the learnt corrections in the model's folder."""
        self._model = model
        self._learnt = model.learnt if learnt is None else learnt

    @classmethod
    def load(cls, config: Config) -> Tagger:
        """Load a tagger and check it on a small page. Raise ModelError if it does not work."""
        folder = Path(config.model) if config.model else bundled()
        tagger = cls(TaggerModel(folder))
        tagger._smoke(folder)
        return tagger

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the probabilities, page types and quality of each page."""
        batch = features(pages)
        answer, told = self._answer(pages, batch), of_pages(batch)
        return [
            Labels(
                probabilities := answer.probabilities[a:b],
                page_types=dict(zip(PAGE_TYPES, types[0].tolist(), strict=True)),
                quality=partial(self._quality, one, Answer(probabilities, types)),
                sizes=one.size,
                decision=self._model.manifest.decoding,
                is_corrected=self._is_corrected(page),
            )
            for page, (a, b), types, one in zip(
                pages, pairwise(batch.edges.tolist()), answer.types[:, None], told, strict=True
            )
        ]

    def _is_corrected(self, page: Page) -> bool:
        return self._learnt is not None and self._learnt.site_of(page.url) is not None

    def _quality(self, page: Features, answer: Answer, main: Bools) -> float:
        """Return the expected word F1 of a page if these blocks are main."""
        return min(1.0, max(0.0, float(self._model.quality(page, answer, main)[0])))

    def _answer(self, pages: Sequence[Page], batch: Features) -> Answer:
        answer = self._model(batch)
        if self._learnt is None:
            return answer
        return replace(answer, probabilities=self._learnt.corrected(pages, answer.probabilities, batch.edges))

    def influences(self, page: Page) -> dict[str, npt.NDArray[np.float32]]:
        """Return the influence of each group of features on each block of a page (see :mod:`.influence`)."""
        batch = features([page])
        found = influences(self._model, batch)
        if self._learnt is not None and self._is_corrected(page):
            said = self._model(batch).probabilities
            found[CORRECTIONS] = self._learnt.corrected([page], said, batch.edges) - said
        return found

    def close(self) -> None:
        """Release the model. Further calls have no effect."""
        vars(self).pop("_model", None)

    def _smoke(self, folder: Path) -> None:
        """Run the model on a small page. This also builds lookup tables, so that the first page does not wait for
        them."""
        from lxml.html import document_fromstring

        from scrapy_dripper.page.blocks import cut

        page = cut(document_fromstring("<html><body><h1>Title</h1><p>A line of text.</p></body></html>"))
        batch = features([page])
        schema = schema_of(batch)
        if schema != self._model.manifest.feature_schema:
            raise ModelError(
                f"The model in {folder} was trained for other features (schema {self._model.manifest.feature_schema}, "
                f"this version has {schema}): train it again with 'make train', or use the bundled model"
            )
        try:
            answer = self._model(batch)
            quality = self._model.quality(batch, answer, answer.probabilities > 0.5)
        except Exception as error:
            raise ModelError(f"The model in {folder} does not run ({error}): restore the model folder") from None
        for values, shape, what in (
            (answer.probabilities, (2,), "one probability per block"),
            (answer.types, (1, len(PAGE_TYPES)), "one probability per page type"),
            (quality, (1,), "one quality per page"),
        ):
            if values.shape != shape or not np.isfinite(values).all():
                raise ModelError(f"The model in {folder} does not give {what}: restore the model folder")
