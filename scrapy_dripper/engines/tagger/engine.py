"""The tagger engine: load a model folder, run its model, and measure which groups of features influenced a block.

A model folder holds the graphs, manifest.json and a model card.

:func:`influences` measures how much each group of features influences the probability of each block. For one group at a
time, all blocks of the page get the page's typical values: the median, or the most frequent tag. Then the model runs
again. The difference of a block's probability is the influence of the group on the block. Influences need not add up to
the probability, because groups overlap, and because features that are equal for all blocks of a page have none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from importlib import resources
from itertools import pairwise
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.choose.decision import DecisionRule
from scrapy_dripper.config import Config
from scrapy_dripper.engines import files
from scrapy_dripper.engines.base import EngineError, Labels, Limits, ModelError
from scrapy_dripper.engines.tagger.columns import Floats
from scrapy_dripper.engines.tagger.features import TAG_FEATURES, Features, features, schema_hash
from scrapy_dripper.engines.tagger.later_stages import PAGE_TYPES, context, of_pages, page_features, quality_features
from scrapy_dripper.page.blocks import CUT
from scrapy_dripper.page.page import Bools, Page

if TYPE_CHECKING:
    import onnxruntime

    from scrapy_dripper.engines.tagger.learnt import Learnt

FORMAT = 5
"""Supported version of the folder layout."""
BLOCKS = "blocks.onnx"
"""The first stage: probabilities from the features of blocks."""
PAGES = "pages.onnx"
"""The page stage: probabilities of the page types from the results of the first stage."""
CONTEXT = "context.onnx"
"""The second stage: probabilities from the page types and the probabilities around a block, averaged with those of the
first stage."""
QUALITY = "quality.onnx"
"""The quality stage: the expected word F1 of a page."""
GRAPHS = (BLOCKS, PAGES, CONTEXT, QUALITY)
MANIFEST = files.MANIFEST
MOST_BYTES = 256 << 20
"""Size limit of a file in bytes. The bundled ones have 2 million."""
_RESTORE = "restore the model folder, or train the model again"


def bundled() -> Path:
    """Return the folder of the bundled model."""
    return Path(str(resources.files("scrapy_dripper.models"))) / "tagger"


def schema_of(batch: Features) -> str:
    """Return the hash of the features of all graphs. It is the same for all batches."""
    blocks, pages = len(batch.size), len(batch.edges) - 1
    p, types = np.zeros(blocks, dtype=np.float32), np.zeros((pages, len(PAGE_TYPES)), dtype=np.float32)
    return schema_hash(
        batch.names,
        list(page_features(batch, p)),
        list(context(batch, p, types)),
        list(quality_features(batch, p, types, p > 0)),
    )


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of ``manifest.json``. Other keys are notes for people and are ignored."""

    format: int
    engine: str
    feature_schema: str
    weights_sha256: dict[str, str]
    """The hash of each graph, and of learnt corrections if there are any, by file name."""
    decoding: DecisionRule
    cut: int = 1
    """Version of the rules by which the blocks that the model was trained on were cut."""

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read a folder's manifest.

        Raise ModelError if it is missing, damaged, or for another engine or format, or for blocks that are cut by other
        rules.
        """
        path = folder / MANIFEST
        if not path.is_file():
            raise ModelError(
                f"No tagger model in {folder}: {MANIFEST} is missing; set DRIPPER_MODEL to a model folder, or leave it "
                "out to use the bundled model"
            )
        try:
            values = files.read_json(folder, MANIFEST, _RESTORE)
            if values["format"] == files.QWEN3_FORMAT:
                raise ModelError(f"{folder} is a model for the engine 'qwen3': set DRIPPER_ENGINE to 'qwen3'")
            kind, version = values["engine"], values["format"]
            if version != FORMAT or kind != "tagger":
                raise ModelError(
                    f"{path} is for engine {short(kind)}, format {short(version)}; this version reads engine "
                    f"'tagger', format {FORMAT}: train the model again with 'make train', or use the bundled one"
                )
            values.setdefault("cut", 1)  # older manifests do not name it
            if values["cut"] != CUT:
                raise ModelError(
                    f"{path} is for blocks cut by version {short(values['cut'])} of the rules; this version cuts by "
                    f"{CUT}: train the model again with 'make train', or use the bundled one"
                )
            known = {f.name: values[f.name] for f in fields(cls)}
            listed = known["weights_sha256"]
            optional = (files.LEARNT,) if files.LEARNT in listed else ()
            known["weights_sha256"] = {name: str(listed[name]) for name in (*GRAPHS, *optional)}
            known["decoding"] = _decision(known["decoding"])
            return cls(**known)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"{path} is damaged ({type(error).__name__}: {error}): {_RESTORE}") from None

    def write(self, folder: Path, **notes: Any) -> None:
        """Write the manifest to a folder, with additional notes for people."""
        text = json.dumps({**asdict(self), **notes}, indent=2, ensure_ascii=False) + "\n"
        (folder / MANIFEST).write_text(text, encoding="utf-8")


def _decision(values: Mapping[str, Any]) -> DecisionRule:
    weights = {name: files.finite(values["recall_weights"][name]) for name in PAGE_TYPES}
    numbers = [one.name for one in fields(DecisionRule) if one.name != "recall_weights"]
    others = {name: files.finite(values[name]) for name in numbers}
    return DecisionRule(weights, **others)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The model's answer for a batch."""

    probabilities: npt.NDArray[np.float32]
    """Probability of each block to be main content: shape (n,)."""
    types: npt.NDArray[np.float32]
    """Probabilities of :data:`~scrapy_dripper.engines.tagger.later_stages.PAGE_TYPES`: shape (pages, types)."""


class TaggerModel:
    """The ONNX sessions of a tagger, one for each graph."""

    def __init__(self, folder: Path) -> None:
        """Load a model folder. Raise ModelError if it cannot be used."""
        self.manifest = Manifest.read(folder)
        files.check(folder, self.manifest.weights_sha256, _RESTORE, MOST_BYTES)
        files.check_runtime("The tagger")
        self._blocks, self._pages, self._context, self._quality = (_session(folder / name) for name in GRAPHS)
        self.learnt: Learnt | None = None
        if files.LEARNT in self.manifest.weights_sha256:
            from scrapy_dripper.engines.tagger.learnt import Learnt  # of few users

            self.learnt = Learnt.read(folder)

    def __call__(self, batch: Features) -> Answer:
        """Run the model on the blocks and pages of a batch. The answer for a page does not depend on its batch.

        Each graph runs once for each page, because the order of the sums in a matrix product depends on its shape. The
        features of all stages are computed for the whole batch: their sums are exact, or those of a single page.
        """
        blocks = list(pairwise(batch.edges.tolist()))
        pages = [(k, k + 1) for k in range(len(blocks))]
        first = _by_page(self._blocks, batch.matrix, blocks)
        types = _by_page(self._pages, page_features(batch, first).matrix(), pages)
        return Answer(_by_page(self._context, context(batch, first, types).matrix(), blocks), types)

    def quality(self, batch: Features, answer: Answer, main: npt.NDArray[np.bool_]) -> npt.NDArray[np.float32]:
        """Return the expected word F1 of each page, 0 to 1, if the blocks in ``main`` are chosen."""
        known = quality_features(batch, answer.probabilities, answer.types, main).matrix()
        return _by_page(self._quality, known, [(k, k + 1) for k in range(len(known))])


def _by_page(
    session: onnxruntime.InferenceSession, features: npt.NDArray[np.float32], pages: Sequence[tuple[int, int]]
) -> npt.NDArray[np.float32]:
    """Return the answer of a graph with a run for the rows of each page, given by the first and one past the last."""
    return np.concatenate([session.run(None, {"features": features[a:b]})[0] for a, b in pages]).astype(np.float32)


def _session(path: Path) -> onnxruntime.InferenceSession:
    """Return the session of a graph."""
    files.check_external_data(path, {}, _RESTORE)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the order of sums, and so the answer, would depend on the number of threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Each batch has a different shape. onnxruntime would cache a memory pattern for each of them, and its arena would
    # keep the memory of the largest one.
    options.enable_mem_pattern = False
    options.enable_cpu_mem_arena = False
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has its own exception types
        raise ModelError(f"onnxruntime cannot load {path} ({error}): {_RESTORE}") from None


SAME_FOR_ALL = "page"
"""The group of features that are equal for all blocks of a page."""

_GROUPS = tuple(
    (group, re.compile(pattern).match)
    for group, pattern in (
        (SAME_FOR_ALL, r"page_|about_"),
        ("blocks around", r"[a-z_]+[+-]\d+$|(?:parent|tag)_as_"),
        ("containers", r"up\d_"),
        ("class names", r"near:|far:"),
        ("wording", r"words:|(?:title|url)_(?:words|hits)$"),
        ("repetition", r"copies$|(?:shape|class|path)_"),
        ("links", r"link_density$|links$|link_words$"),
        ("element", r"(?:leaf_|parent_)?tag|flag:|heading_level$"),
        (
            "place",
            r"index|words_(?:before|after|since)|since_heading$|last_heading_level$|headings_before$|to_h1$|(?:leaf_)?depth$",
        ),
    )
)
TEXT = "length and characters"
"""The group of all other features."""
GROUPS = (TEXT, *(group for group, _ in _GROUPS if group != SAME_FOR_ALL))
"""The groups that can have an influence."""
CORRECTIONS = "your corrections"
"""The group for weights that were learnt from the user's corrections of the site."""


def group_of(feature: str) -> str:
    """Return the group of a feature, one of :data:`GROUPS` or :data:`SAME_FOR_ALL`."""
    return next((group for group, match in _GROUPS if match(feature)), TEXT)


def influences(model: TaggerModel, batch: Features) -> dict[str, Floats]:
    """Return the influence of each group on the probabilities of the n blocks of a page.

    The batch holds one page. The values are float32 of shape (n,), from -1 to 1. A positive influence speaks for main.
    """
    typical = np.quantile(batch.matrix, 0.5, axis=0, method="nearest")
    for i, name in enumerate(batch.names):
        if name in TAG_FEATURES:
            values, counts = np.unique(batch.matrix[:, i], return_counts=True)
            typical[i] = values[counts.argmax()]
    groups = np.array([group_of(name) for name in batch.names])
    whole = model(batch).probabilities
    found: dict[str, Floats] = {}
    for group in GROUPS:
        matrix = np.where(groups == group, typical, batch.matrix).astype(np.float32)
        found[group] = whole - model(replace(batch, matrix=matrix)).probabilities
    return found


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
        """Return the influence of each group of features on each block of a page (:func:`influences`)."""
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
