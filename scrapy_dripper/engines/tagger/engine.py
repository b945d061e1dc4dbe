"""The tagger engine: compute features, run the model, choose labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from scrapy_dripper.choose.given import Floats, Given
from scrapy_dripper.choose.steps import TAGGER, Stage, overruled, stages
from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import EngineError, Labels, Limits, ModelError
from scrapy_dripper.engines.tagger.expected_f1 import DecisionRule, decide
from scrapy_dripper.engines.tagger.features import Features, features
from scrapy_dripper.engines.tagger.later_stages import PAGE_TYPES
from scrapy_dripper.engines.tagger.learnt import Learnt
from scrapy_dripper.engines.tagger.model import CORRECTIONS, Answer, TaggerModel, bundled, influences, schema_of
from scrapy_dripper.page.page import Page


def chosen(page: Page, probabilities: Floats, size: Floats, types: Floats, rule: DecisionRule) -> Iterator[Stage]:
    """Yield which of a page's n blocks are main: those of the largest expected F1, and then after each step.

    ``size`` is in words, of shape (n,), and ``types`` are the probabilities of the page types, of shape (types,).
    """
    first = decide(probabilities, size, rule.recall_of(types, page.config.favor), rule.min_words)
    return stages(Given(page, probabilities, size), first, TAGGER)


class Tagger:
    """Labels blocks with a tiny ONNX model over their features. Each call runs the model once for all its pages."""

    name = TAGGER
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
        """Return the labels, page type and quality of each page."""
        batch = features(pages)
        answer = self._answer(pages, batch)
        rule = self._model.manifest.decoding
        places = list(pairwise(batch.edges.tolist()))
        steps = [
            list(chosen(page, answer.probabilities[a:b], batch.size[a:b], types, rule))
            for page, (a, b), types in zip(pages, places, answer.types, strict=True)
        ]
        quality = self._model.quality(batch, answer, np.concatenate([last.main for *_, last in steps]))
        return [
            Labels(
                answer.probabilities[a:b],
                own[-1].main,
                page_type=PAGE_TYPES[types.argmax()],
                page_type_probability=float(types.max()),
                quality=min(1.0, max(0.0, float(f1))) if own[-1].main.any() else None,
                overruled=overruled(own),
            )
            for (a, b), own, types, f1 in zip(places, steps, answer.types, quality, strict=True)
        ]

    def _answer(self, pages: Sequence[Page], batch: Features) -> Answer:
        answer = self._model(batch)
        if not self._learnt:
            return answer
        return replace(answer, probabilities=self._learnt.corrected(pages, answer.probabilities, batch.edges))

    def stages(self, page: Page) -> Iterator[Stage]:
        """Return the labels of a page after each step of the decision."""
        batch = features([page])
        answer = self._answer([page], batch)
        return chosen(page, answer.probabilities, batch.size, answer.types[0], self._model.manifest.decoding)

    def influences(self, page: Page) -> dict[str, npt.NDArray[np.float32]]:
        """Return the influence of each group of features on each block of a page (see :mod:`.influence`)."""
        batch = features([page])
        found = influences(self._model, batch)
        if self._learnt and self._learnt.site_of(page.url):
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
