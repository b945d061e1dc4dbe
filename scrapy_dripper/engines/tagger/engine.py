"""The tagger engine: compute features, run the model, choose labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import EngineError, Labels, Limits, ModelError
from scrapy_dripper.engines.stages import Stage, Step, apply, overruled
from scrapy_dripper.engines.tagger.continued import with_continued
from scrapy_dripper.engines.tagger.decision import DecisionRule, decide, without_holes
from scrapy_dripper.engines.tagger.features import Features, features
from scrapy_dripper.engines.tagger.influence import CORRECTIONS, influences
from scrapy_dripper.engines.tagger.learnt import Learnt
from scrapy_dripper.engines.tagger.little import SURE, WORDS, with_little
from scrapy_dripper.engines.tagger.model import Answer, Model, bundled, schema_of
from scrapy_dripper.engines.tagger.notes import with_notes
from scrapy_dripper.engines.tagger.one_article import with_one_article
from scrapy_dripper.engines.tagger.page_stage import PAGE_TYPES
from scrapy_dripper.engines.tagger.panels import with_parts, with_titles
from scrapy_dripper.engines.tagger.twins import without_twins
from scrapy_dripper.engines.tagger.whole import structures_whole, with_alike, with_headings
from scrapy_dripper.page.page import Page


def stages(
    page: Page,
    probabilities: npt.NDArray[np.float32],
    size: npt.NDArray[np.float32],
    rule: DecisionRule,
    types: npt.NDArray[np.float32],
) -> Iterator[Stage]:
    """Yield which of a page's n blocks are main: by expected F1, and then after each of the rules of this package.

    ``types`` are the probabilities of the page types, of shape (types,). All other arrays have shape (n,); ``size`` is
    in words. Twins are removed last, so that no other rule adds them again.
    """
    p = probabilities
    one_article = Step(
        "one_article",
        "a block outside the article with the headline has to be very likely main",
        partial(with_one_article, page, p),
    )
    steps = (
        Step(
            "holes", "a small hole in the main content is filled if it is likely to be main", partial(without_holes, p)
        ),
        Step(
            "little",
            "a fragment is main as a whole, and an error page or a bot wall is not",
            partial(with_little, page, p),
            free=WORDS,
        ),
        structures_whole(page, p),
        Step("alike", "most blocks of the same shape are main", partial(with_alike, page, p)),
        Step(
            "continued",
            "a run of paragraphs of the same shape continues to its end",
            partial(with_continued, page, p, size),
        ),
        Step("parts", "parts of a list that are alike are main together", partial(with_parts, page, p)),
        Step("titles", "a title that opens a panel is main with its panel", partial(with_titles, page, p)),
        Step("headings", "a heading stays with the text below it", partial(with_headings, page, p)),
        *([one_article] if PAGE_TYPES[types.argmax()] == "article" else []),
        Step("notes", "a footnote has the label of its marks", partial(with_notes, page, p)),
        Step(
            "twins",
            "content that is in the source twice, but shown once, is kept once",
            partial(without_twins, page, p),
        ),
    )
    first = decide(p, size, rule.recall_of(types, page.wishes.favor), rule.min_words)
    return apply(steps, page, p, first)


class Tagger:
    """Labels blocks with a tiny ONNX model over their features. Each call runs the model once for all its pages."""

    name = "tagger"
    profile = "native"
    limits = Limits()

    def __init__(self, model: Model, learnt: Learnt | None = None) -> None:
        """``learnt`` replaces the learnt corrections in the model's folder."""
        self._model = model
        self._learnt = model.learnt if learnt is None else learnt

    @classmethod
    def load(cls, config: Config) -> Tagger:
        """Load a tagger and check it on a small page. Raise ModelError if it does not work."""
        folder = Path(config.model) if config.model else bundled()
        tagger = cls(Model(folder, device=config.device))
        tagger._smoke(folder)
        return tagger

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels, page type and quality of each page."""
        batch = features(pages)
        answer = self._answer(pages, batch)
        rule = self._model.manifest.decoding
        edges = zip(batch.edges[:-1].tolist(), batch.edges[1:].tolist(), strict=True)
        parts = [(answer.probabilities[a:b], batch.size[a:b]) for a, b in edges]
        decided = [
            list(stages(page, p, size, rule, types))
            for page, (p, size), types in zip(pages, parts, answer.types, strict=True)
        ]
        quality = self._model.quality(batch, answer, np.concatenate([last.main for *_, last in decided]))
        kinds = answer.types.argmax(axis=1)
        return [
            Labels(
                p,
                steps[-1].main,
                page_type=PAGE_TYPES[kind],
                page_type_probability=float(types[kind]),
                quality=min(1.0, max(0.0, float(f1))) if steps[-1].main.any() else None,
                overruled=overruled(steps),
            )
            for (p, _), steps, kind, types, f1 in zip(
                parts, decided, kinds.tolist(), answer.types, quality.tolist(), strict=True
            )
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
        return stages(page, answer.probabilities, batch.size, self._model.manifest.decoding, answer.types[0])

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
            quality = self._model.quality(batch, answer, answer.probabilities > SURE)
        except Exception as error:
            raise ModelError(f"The model in {folder} does not run ({error}): restore the model folder") from None
        for values, shape, what in (
            (answer.probabilities, (2,), "one probability per block"),
            (answer.types, (1, len(PAGE_TYPES)), "one probability per page type"),
            (quality, (1,), "one quality per page"),
        ):
            if values.shape != shape or not np.isfinite(values).all():
                raise ModelError(f"The model in {folder} does not give {what}: restore the model folder")
