"""Measure SORE (Akbiyik et al. 2025, *Semantic Outlier Removal with Embedding Models and LLMs*) on annotated pages.

The segments of a page are its blocks. Those that are most similar to the page's title and description are its core. A
block that is nearer to a phrase of an outlier group than to the core, or far from the core, is removed, with the
reason. The method is applied to the blocks that the tagger labels main (as a filter), and to all blocks (as in the
paper). Blocks of which the tagger is sure can be protected.

Embeddings are those of WordLlama, whose package contains its weights (256 dimensions, for the tokens of Llama 2). An
embedding is the mean of the tokens' vectors. A graph for onnxruntime, which is built here, computes it. The index is
Voyager's, as in the paper. Parameters are chosen on half of the pages, and measured on the other half.
"""

from __future__ import annotations

import argparse
import pickle
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import files
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from hosts import models
from report import heading, publish, table
from tqdm import tqdm

from scrapy_dripper import Document, Extractor
from scrapy_dripper.config import Config
from scrapy_dripper.engines.tagger.model import bundled
from scrapy_dripper.page import PageError, read
from scrapy_dripper.workshop.dataset.alignment import align
from scrapy_dripper.workshop.dataset.bootstrap import mean_interval
from scrapy_dripper.workshop.dataset.neutral import neutral_prf, page_title
from scrapy_dripper.workshop.dataset.pages import Sample
from scrapy_dripper.workshop.dataset.prf import PRF
from scrapy_dripper.workshop.dataset.sets import SetChoice, load_sets

DATA = Path(__file__).parents[1] / ".cache"
Vectors = npt.NDArray[np.float32]

GROUPS: Mapping[str, Sequence[str]] = {
    "dates": (
        "Date; 21.02.2023; 21.02.2024; 21.02.2025; Published at; Last updated; Time; Published; Updated; dd/mm/yyyy; "
        "mm/dd/yyyy; yyyy-mm-dd; dd.mm.yy"
    ).split("; "),
    "authorship": "Author; Writer; Contributor; Editor; Posts; Written by".split("; "),
    "comments": "Comment; Reply; Feedback; Discussion; Leave a comment".split("; "),
    "sources": "Source; Website; Publisher; URL; Link".split("; "),
    "related": (
        "Related; Read more; Look:; Similar; See also; Also read; Read next; Get more; Frequently asked questions"
    ).split("; "),
    "calls to action": (
        "CTA; Buy; Shop; Order; Click here; Check out; View more; Visit; Let me know; Download; Subscribe; Sign up; "
        "Contact us; Receive notifications"
    ).split("; "),
    "navigation": "Breadcrumbs; Home >; Home > About; Navigation; Home; About".split("; "),
    "contact": "Contact; Email; Phone; Address; Contact us".split("; "),
    "social media": ("Social; Facebook; Twitter; Instagram; LinkedIn; TikTok; Share; Like; Follow; 3425 views").split(
        "; "
    ),
    "legal": "Legal; Terms; Privacy; Policy; Disclaimer; Cookie; Accept; Settings".split("; "),
    "infrastructure": (
        "Footer; Copyright; All rights reserved; Search; Find; Look for; Explore; Error; 404; Not found; "
        "Page not found; Try again later"
    ).split("; "),
    "commercial": (
        "Advertisement; Sponsored; Promotion; Sponsor; Subscription; Subscribe; Newsletter; Membership; Join; "
        "Affiliate; Affiliate links; Disclosure; Affiliate Disclosure"
    ).split("; "),
    "other": (
        "Refresh this page; Login required; License; Enter your email; Thank you for reading; Subscribe for free"
    ).split("; "),
}
"""The outlier groups of the paper (A.2)."""
FAR = "too irrelevant"


class Setting(NamedTuple):
    """The parameters of the method."""

    core: float
    """Share of the segments that are the core."""
    cutoff: float
    """Distance from the core over which a segment is removed."""
    outlier: float
    """Distance to an outlier phrase under which a segment is removed, if the core is not nearer."""
    protected: float
    """Probability from which a block is never removed."""


def sore(segments: Vectors, metadata: npt.NDArray[np.float32], outliers: Index, setting: Setting) -> list[str | None]:
    """Return for each of n segments why it is removed, or None. Vectors are unit vectors: their distance is 1 - a b."""
    n = len(segments)
    if not n:
        return []
    likeness = segments @ metadata
    size = max(1, round(setting.core * n))
    core = np.argsort(-likeness, kind="stable")[:size]
    far = 1.0 - (segments @ segments[core].T).max(axis=1)
    names, near = outliers.nearest(segments)
    reasons: list[str | None] = []
    for k in range(n):
        matches = near[k] <= setting.outlier and near[k] < far[k]
        reasons.append(names[k] if matches else FAR if far[k] > setting.cutoff else None)
    for k in core.tolist():
        reasons[k] = None
    return reasons


class Index:
    """The outlier phrases in an approximate index (HNSW), which is built once."""

    def __init__(self, vectors: Vectors, names: Sequence[str]) -> None:
        from voyager import Index as Hnsw
        from voyager import Space

        self._names = list(names)
        self._index = Hnsw(Space.InnerProduct, num_dimensions=vectors.shape[1])
        self._index.add_items(vectors)

    def nearest(self, vectors: Vectors) -> tuple[list[str], npt.NDArray[np.float32]]:
        """Return the nearest phrase of each vector, and its distance."""
        found, distances = self._index.query(vectors, k=1)
        return [self._names[int(one)] for one in found.ravel()], distances.ravel()


class Embedder:
    """WordLlama's vectors of texts, by onnxruntime."""

    def __init__(self) -> None:
        import onnxruntime
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        paths = {str(one): one.locate() for one in files("wordllama") or ()}
        weights = load_file(
            str(next(path for name, path in paths.items() if name.endswith("l2_supercat_256.safetensors")))
        )
        self._tokenizer = Tokenizer.from_file(
            str(next(p for n, p in paths.items() if n.endswith("l2_supercat_tokenizer_config.json")))
        )
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(512)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        graph = static_graph(next(iter(weights.values())).astype(np.float32))
        self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, of shape (texts, dimensions); zeros for a text without tokens."""
        ids = [one.ids for one in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]
        segments = np.repeat(np.arange(len(ids)), [len(one) for one in ids])
        tokens = np.concatenate([np.array(one, dtype=np.int64) for one in ids]) if ids else np.empty(0, np.int64)
        (found,) = self._session.run(None, {"tokens": tokens, "texts": segments, "count": np.array([len(ids)])})
        return np.asarray(found, dtype=np.float32)


def outliers(embed: Embedder) -> Index:
    """Return the index of the paper's outlier groups."""
    phrases = [(name, phrase) for name, some in GROUPS.items() for phrase in some]
    return Index(embed([phrase for _, phrase in phrases]), [name for name, _ in phrases])


def static_graph(weights: Vectors) -> bytes:
    """Return a graph that turns tokens, and the number of the text of each, into the unit vector of each text's
    mean.
    """
    from onnx import TensorProto, helper, numpy_helper

    size = weights.shape[1]
    nodes = [
        helper.make_node("Gather", ["weights", "tokens"], ["vectors"], axis=0),
        helper.make_node("Concat", ["count", "size"], ["shape"], axis=0),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        helper.make_node("Unsqueeze", ["texts", "one"], ["rows"]),
        helper.make_node("ScatterND", ["zeros", "rows", "vectors"], ["sums"], reduction="add"),
        helper.make_node("LpNormalization", ["sums"], ["unit"], axis=1, p=2),  # of a sum as of a mean
    ]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, [name[0]]) for name in ("tokens", "texts")]
    inputs.append(helper.make_tensor_value_info("count", TensorProto.INT64, [1]))
    output = helper.make_tensor_value_info("unit", TensorProto.FLOAT, [None, size])
    constants = [
        numpy_helper.from_array(weights, "weights"),
        numpy_helper.from_array(np.array([size], dtype=np.int64), "size"),
        numpy_helper.from_array(np.array([1], dtype=np.int64), "one"),
    ]
    graph = helper.make_graph(nodes, "mean", inputs, [output], constants)
    model: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    ).SerializeToString()
    return model


@dataclass
class Case:
    """A page with the tagger's labels and the vectors of its blocks."""

    sample: Sample
    texts: list[str]
    main: npt.NDArray[np.bool_]
    p: npt.NDArray[np.float64]
    title: str
    vectors: Vectors
    metadata: npt.NDArray[np.float32]
    milliseconds: dict[str, float]
    scores: dict[bytes, PRF] = field(default_factory=dict)
    """The scores of the blocks that were kept before."""

    @property
    def before(self) -> PRF:
        """The score without the method."""
        return self.score(self.main)

    def score(self, keep: npt.NDArray[np.bool_]) -> PRF:
        """Return the score of the kept blocks."""
        key = keep.tobytes()
        if key not in self.scores:
            self.scores[key] = self._score(keep)
        return self.scores[key]

    def _score(self, keep: npt.NDArray[np.bool_]) -> PRF:
        text = "\n".join(text for text, kept in zip(self.texts, keep, strict=True) if kept)
        return neutral_prf(text, self.sample.truth, [self.sample.title, self.title])

    def surer(self, p: float) -> PRF:
        """Return the score of the main blocks with at least this probability."""
        return self.score(self.main & (self.p >= p))

    def kept(self, index: Index, setting: Setting, *, alone: bool) -> tuple[npt.NDArray[np.bool_], list[str]]:
        """Return which blocks are kept, and why the others are removed."""
        places = np.arange(len(self.texts)) if alone else np.flatnonzero(self.main)
        keep = np.zeros(len(self.texts), dtype=bool)
        keep[places] = True
        if not self.metadata.any():
            return keep, []
        reasons = sore(self.vectors[places], self.metadata, index, setting)
        removed = [
            (place, reason)
            for place, reason in zip(places.tolist(), reasons, strict=True)
            if reason is not None and (alone or self.p[place] < setting.protected)
        ]
        keep[[place for place, _ in removed]] = False
        return keep, [reason for _, reason in removed]


def cases(samples: Sequence[Sample], model_of: Mapping[str, Path], embed: Embedder) -> Iterator[Case]:
    """Yield the pages that have blocks, labelled by the model of each."""
    by_model: dict[Path, list[Sample]] = {}
    for sample in samples:
        by_model.setdefault(model_of[sample.id], []).append(sample)
    for model, some in sorted(by_model.items()):
        config = Config(model=str(model), metadata_field="metadata", fallback="none", processes=0)
        extractor = Extractor(config)
        for sample in tqdm(some, desc=f"model {model.name}", unit="page", disable=None):
            document = Document(sample.path.read_bytes(), sample.url)
            begin = time.process_time()
            (extraction,) = extractor.extract([document])
            spent = time.process_time() - begin
            try:
                page = read(document, config)
            except PageError:
                continue
            if len(extraction.labels) != len(page.blocks):
                continue
            about = extraction.metadata
            words = " ".join(filter(None, (extraction.title, about.description if about else None)))
            begin = time.process_time()
            main = np.array(extraction.labels)
            vectors = np.zeros((len(main), 256), dtype=np.float32)
            texts = list(page.blocks.text)
            rows = embed([words, *(texts[k] for k in np.flatnonzero(main))])
            embedding = time.process_time() - begin
            vectors[main] = rows[1:]
            vectors[~main] = embed([texts[k] for k in np.flatnonzero(~main)])
            ms = {"extraction": 1000 * spent, "embedding": 1000 * embedding}
            p, title = np.array(extraction.probabilities), page_title(document.html)  # type: ignore[arg-type]
            yield Case(sample, texts, main, p, title, vectors, rows[0], ms)
        extractor.close()


def measured(some: Sequence[Case], index: Index, setting: Setting, *, alone: bool = False) -> list[PRF]:
    """Return the score of each page."""
    return [case.score(case.kept(index, setting, alone=alone)[0]) for case in some]


def best(some: Sequence[Case], index: Index, settings: Sequence[Setting], *, alone: bool = False) -> Setting:
    """Return the setting with the highest mean F1."""
    return max(
        tqdm(settings, desc="settings"),
        key=lambda one: sum(score.f1 for score in measured(some, index, one, alone=alone)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", type=SetChoice.parse, help="annotated sets; default: those in .cache")
    parser.add_argument("--pages", type=int, default=600, help="pages, half to choose on (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folds", type=Path, help="models of folds: make train ARGS='--fold-models DIR'")
    parser.add_argument("--cache", type=Path, help="file of the labelled pages and their vectors")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "sore.txt")
    arguments = parser.parse_args()
    default = [SetChoice(DATA / name) for name in ("wcxb-dev", "elsewhere", "sites") if (DATA / name).is_dir()]
    samples = [s for one in load_sets(arguments.data or default) for s in one.samples if s.measure]
    drawn = random.Random(arguments.seed).sample(samples, min(arguments.pages, len(samples)))
    model_of = models(arguments.folds, bundled(), samples)
    embed = Embedder()
    if arguments.cache and arguments.cache.exists():
        pages: list[Case] = pickle.loads(arguments.cache.read_bytes())
    else:
        pages = list(cases(drawn, model_of, embed))
        if arguments.cache:
            arguments.cache.write_bytes(pickle.dumps(pages))
    order = {sample.id: k for k, sample in enumerate(drawn)}
    pages.sort(key=lambda case: order[case.sample.id])
    learn, test = pages[len(pages) // 2 :], pages[: len(pages) // 2]
    index = outliers(embed)
    facts = heading("sore.py", ("scrapy-dripper", "wordllama", "voyager", "onnxruntime"))
    publish(f"{facts}\n\n{_report(learn, test, index)}", arguments.output)


def _removals(some: Sequence[Case], index: Index, setting: Setting, alone: bool) -> str:
    """Return how many blocks and words are removed, how many of them are in the truth, and the commonest reasons."""
    reasons: Counter[str] = Counter()
    blocks, words = Counter[bool](), Counter[bool]()
    for case in some:
        keep, why = case.kept(index, setting, alone=alone)
        reasons.update(why)
        truth = align(case.texts, case.sample.truth).main
        for k in np.flatnonzero(~keep & (case.main | alone)):
            blocks[bool(truth[k])] += 1
            words[bool(truth[k])] += len(case.texts[k].split())
    most = ", ".join(f"{name} {number:,}" for name, number in reasons.most_common(6))
    return (
        f"{blocks.total():,} blocks with {words.total():,} words, {blocks[True]:,} with {words[True]:,} of them in the "
        f"truth: {most}"
    )


def _report(learn: Sequence[Case], test: Sequence[Case], index: Index) -> str:
    rows, removed = [], {}

    def row(name: str, scores: Sequence[PRF], setting: Setting | None, base: Sequence[PRF] | None) -> None:
        mean = [f"{np.mean([score[k] for score in scores]):.4f}" for k in (2, 0, 1)]
        chosen = ["" if setting is None else f"{value:g}" for value in (setting or ("",) * 4)]
        difference = ""
        if base is not None:
            d = mean_interval([a.f1 - b.f1 for a, b in zip(scores, base, strict=True)])
            difference = f"{d.mean:+.4f} ({d.low:+.4f} to {d.high:+.4f})"
        rows.append([name, *chosen, *mean, difference])

    base = [case.before for case in test]
    row("tagger", base, None, None)
    # For comparison, a filter without embeddings: it removes blocks that the tagger keeps with a low probability.
    unsure = max((0.0, 0.2, 0.3, 0.4, 0.5), key=lambda p: sum(case.surer(p).f1 for case in learn))
    row(f"tagger, without blocks under {unsure:g}", [case.surer(unsure) for case in test], None, base)
    grid = product((0.1, 0.2), (0.7, 0.8, 0.9, 2.0), (-1.0, 0.2))
    settings = [Setting(*values, 2.0) for values in grid]
    ways: list[tuple[str, Sequence[Setting], bool]] = [
        ("tagger, then SORE", [one for one in settings if one[1:3] != (2.0, -1.0)], False),
        *(
            (
                f"tagger, then SORE under {p:g}",
                [one._replace(protected=p) for one in settings if one[1:3] != (2.0, -1.0)],
                False,
            )
            for p in (0.9, 0.7, 0.5)
        ),
        ("tagger, then SORE as in the paper", [Setting(0.2, 0.8, 0.2, 2.0)], False),
        ("SORE alone", settings, True),
        ("SORE alone, as in the paper", [Setting(0.2, 0.8, 0.2, 2.0)], True),
    ]
    for name, choices, alone in ways:
        setting = best(learn, index, choices, alone=alone) if len(choices) > 1 else choices[0]
        row(name, measured(test, index, setting, alone=alone), setting, base)
        removed[name] = f"{name}: {_removals(test, index, setting, alone)}"
    head = ["", "core", "cut-off", "outlier", "under p", "F1", "P", "R", "F1 less tagger, 95 %"]
    begin = time.process_time()
    for case in test:
        case.kept(index, Setting(0.2, 0.8, 0.2, 2.0), alone=False)
    search = 1000 * (time.process_time() - begin) / len(test)
    ms = {name: np.mean([case.milliseconds[name] for case in test]) for name in ("extraction", "embedding")}
    times = f"CPU ms a page: extraction {ms['extraction']:.1f}, embedding {ms['embedding']:.1f}, search {search:.1f}"
    return f"{len(test)} pages, and {len(learn)} others to choose on:\n\n{table(head, rows)}\n\n" + "\n".join(
        [*removed.values(), "", times]
    )


if __name__ == "__main__":
    main()
