"""What the evidence and the steps of the tagger are worth, in folds grouped by host.

``evidence`` trains without declared facts, without roots and so on. Each row takes ten minutes instead of half an hour,
because the recipe is that of ``make train`` with half of the teacher's trees, no network and three folds. It decides
block by block, without steps. A row with another seed shows how much of a difference is chance.

``steps`` labels each page without one of the steps of ``choose``, with the complete model of its fold, which ``make
train ARGS='--fold-models DIR'`` writes. ``graphs`` labels each page with parts of these models: the network alone,
trees alone, the first stage alone. Each part is calibrated anew, on the pages of its own fold, which favours it a
little.

Differences are those of the mean of sets, with intervals over pages. The examples and the rows of ``evidence`` are kept
in a folder, so that a run that was stopped can be resumed.
"""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import compress
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from common import DATA, options, publish, table
from tqdm import tqdm

from scrapy_dripper import Document
from scrapy_dripper import choose as steps
from scrapy_dripper.choose import ScoredPage
from scrapy_dripper.choose.decision import DecisionRule, decide
from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import Labels
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.engines.tagger.engine import BLOCKS, TaggerModel
from scrapy_dripper.engines.tagger.features import ABSENT, features
from scrapy_dripper.engines.tagger.later_stages import PAGE_TYPES
from scrapy_dripper.learning.metrics import mean_interval, neutral_prf
from scrapy_dripper.page import Page, PageError, read
from scrapy_dripper_lab.alignment import Bools, align
from scrapy_dripper_lab.folds import load_sets
from scrapy_dripper_lab.scores import kept, visible
from scrapy_dripper_lab.sets import AnnotatedPage, SetChoice
from scrapy_dripper_lab.training import fit
from scrapy_dripper_lab.training.augment import make_copies
from scrapy_dripper_lab.training.fit import Split, calibrate
from scrapy_dripper_lab.training.measure import splits
from scrapy_dripper_lab.training.prepare import Example, prepare

WHOLE = "complete"
Scores = dict[tuple[str, str], float]
"""Word F1 by set and page, and the share of facts that are kept, by kind and page."""
Examples = dict[str, Example]


# ---------------------------------------------------------------------- evidence
def _set(change: Mapping[str, float] | str, examples: Examples) -> Examples:
    """Give features one value on all pages: those named, or those whose names begin so."""
    for one in examples.values():
        for i, name in enumerate(one.features.names):
            if isinstance(change, str) and name.startswith(change):
                one.features.matrix[:, i] = 0
            elif not isinstance(change, str) and name in change:
                one.features.matrix[:, i] = change[name]
    return examples


def _learn(wanted: Callable[[Example], bool], examples: Examples) -> Examples:
    """Leave out examples. Those with facts are still measured."""
    return {name: one if wanted(one) else replace(one, weight=one.weight * 0) for name, one in examples.items()}


EVIDENCE: Mapping[str, tuple[int, Callable[[Examples], Examples]]] = {
    WHOLE: (0, dict),
    "another seed": (1, dict),
    "without declared facts": (0, partial(_set, ABSENT)),
    "without pages of facts": (0, partial(_learn, lambda one: not one.partial)),
    "without roots": (0, partial(_set, "root_")),
    "without the page's head": (0, partial(_set, "about_")),
    "without copies": (0, partial(_learn, lambda one: not one.copy)),
}
"""The seed and the change of each row."""


def examples_of(choices: Sequence[SetChoice], extra: Sequence[SetChoice], jobs: int) -> bytes:
    """Return the samples by id, and the examples of ``make train``, as a pickle."""
    sets = load_sets(choices, extra)
    samples = {sample.id: sample for one in sets for sample in one.samples}
    learnt = [sample for one in sets for sample in one.learnt]
    folds, _ = splits(list(samples.values()), (), 5)
    groups = [
        [samples[name] for name in fold.measured if samples[name].learn and not samples[name].facts] for fold in folds
    ]
    bare = [replace(s, id=f"{s.id}+bare", copy_of=s.id, weight=s.weight / 2, measure=False) for s in learnt if s.facts]
    others = [s for s in samples.values() if s.measure and not s.learn]
    with TemporaryDirectory() as folder:
        copies = [*make_copies(groups, Path(folder), jobs), *bare]
        examples = prepare([*learnt, *copies, *others], jobs)
    return pickle.dumps((samples | {s.id: s for s in copies}, examples), protocol=5)


def evidence(row: str, store: Path) -> Scores:
    """Return the scores of a row, which are stored beside the examples."""
    done = store.with_name(f"{row}.pkl")
    if not done.exists():
        done.write_bytes(pickle.dumps(_evidence(row, store)))
    return dict(pickle.loads(done.read_bytes()))


def _evidence(row: str, store: Path) -> Scores:
    seed, change = EVIDENCE[row]
    samples, examples = pickle.loads(store.read_bytes())
    examples = change(examples)
    known = {name: one for name, one in examples.items() if samples[name].learn and one.weight.any()}
    folds, _ = splits(list(samples.values()), known, 3)
    teacher = {"num_iterations": 50, "learning_rate": 0.15}
    with patch.dict(fit.TEACHER, teacher):
        stack = fit.fit_stack(known, folds, Split(folds[0].seen, ()), seed=seed, jobs=1, network=False)
    rule, found = DecisionRule(), Scores()
    for fold, fitted in zip(folds, stack.folds, strict=True):
        for name in fold.measured:
            if (one := examples.get(name)) is None:
                continue
            types = fit.predict_types(fitted.types, one, fitted.stage(one))[0]
            p, chances = fitted(one).astype(np.float32), dict(zip(PAGE_TYPES, types.tolist(), strict=True))
            main = decide(one.features.table, p, one.features.size, rule, chances)
            text = "\n".join(block for block, chosen in zip(one.texts, main, strict=True) if chosen)
            found |= _scores(samples[name], text)
    return found


def _scores(sample: AnnotatedPage, text: str) -> Scores:
    if sample.facts:
        shares = kept(sample.facts, visible(sample.read_html()), text)
        return {(kind, sample.id): share for kind, share in shares.items()}
    return {(sample.part, sample.id): neutral_prf(text, sample.truth, [sample.title]).f1}


# ---------------------------------------------------------------------- steps
def without_steps(samples: Sequence[AnnotatedPage], folder: Path) -> dict[str, Scores]:
    """Return the scores of pages of one fold with all steps, and without each of them."""
    tagger, rows = Tagger(TaggerModel(folder)), defaultdict[str, Scores](dict)
    for sample, page in _pages(samples):
        answer = _answer(tagger, page)
        known: dict[bytes, Scores] = {}  # by labels, which most steps leave as they are
        for what in (WHOLE, *dict.fromkeys(step.name for step in steps.STEPS)):
            with patch.object(steps, "STEPS", [step for step in steps.STEPS if step.name != what]):
                main = steps.choose(ScoredPage(page, answer)).main
            labels = main.tobytes()
            if labels not in known:
                known[labels] = _of_labels(sample, page, main)
            rows["all steps" if what == WHOLE else f"without: {what}"] |= known[labels]
    return rows


# ---------------------------------------------------------------------- graphs
WEIGHTS: Mapping[str, tuple[float, float]] = {"network": (0, 1), "trees": (1, 0), "first stage": (0.5, 0.5)}
"""The weights of the trees and of the network in each row without the second stage."""


def parts_of_graphs(samples: Sequence[AnnotatedPage], folder: Path) -> dict[str, Scores]:
    """Return the scores of pages of one fold with all graphs, and with parts of the first one."""
    tagger, rows = Tagger(TaggerModel(folder)), defaultdict[str, Scores](dict)
    graph = _with_parts(folder / BLOCKS)
    known: dict[str, npt.NDArray[np.float64]] = {}
    true: dict[str, Bools] = {}
    for sample, page in _pages(samples):
        known[sample.id] = np.stack(graph.run(None, {"features": features([page]).matrix})).astype(float)
        if sample.truth:
            true[sample.id] = align(page.blocks.text, sample.truth).main
    labels = np.concatenate([*true.values()])
    lines = {
        row: calibrate(np.concatenate([weights @ known[name] for name in true]), labels)
        for row, weights in WEIGHTS.items()
    }
    for sample, page in _pages(samples):
        answer = _answer(tagger, page)
        answers = {"all graphs": answer}
        for row, line in lines.items():
            p = line(WEIGHTS[row] @ known[sample.id]).astype(np.float32)
            answers[row] = replace(answer, probabilities=p)
        for row, one in answers.items():
            rows[row] |= _of_labels(sample, page, steps.choose(ScoredPage(page, one)).main)
    return rows


def _answer(tagger: Tagger, page: Page) -> Labels:
    (answer,) = tagger.label([page])
    assert isinstance(answer, Labels)
    return answer


def _of_labels(sample: AnnotatedPage, page: Page, main: Bools) -> Scores:
    return _scores(sample, "\n".join(compress(page.blocks.text, main.tolist())))


def _pages(samples: Sequence[AnnotatedPage]) -> Iterator[tuple[AnnotatedPage, Page]]:
    for sample in samples:
        with suppress(PageError):
            page = read(Document(sample.path.read_bytes(), sample.url), Config())
            if page.blocks.text:
                yield sample, page


def _with_parts(path: Path) -> onnxruntime.InferenceSession:
    """Return the session of a first stage whose outputs are those of its trees and its network."""
    model = onnx.load(str(path))
    made = {name: node for node in model.graph.node for name in node.output}
    weighted = made[made[model.graph.output[0].name].input[0]].input  # of the sum, which is clipped
    names = [made[name].input[0] for name in weighted]
    del model.graph.output[:]
    model.graph.output.extend(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n"]) for name in names)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


# ---------------------------------------------------------------------- the report
def rows(named: Mapping[str, Scores]) -> str:
    """Return a table: the mean of each set and kind of facts, and the difference of the mean of sets from the first
    row."""
    first = next(iter(named.values()))
    parts = list(dict.fromkeys(part for part, _ in first))
    of = {part: [key for key in first if key[0] == part] for part in parts}
    found = []
    for what, scores in named.items():
        means = [float(np.mean([scores[key] for key in of[part]])) for part in parts]
        # Each set has the same weight, whatever its size.
        between = mean_interval(
            [(scores[key] - first[key]) * len(first) / (len(parts) * len(of[key[0]])) for key in first]
        )
        difference = f"{between.mean:+.4f} ({between.low:+.4f} to {between.high:+.4f})" if scores is not first else ""
        found.append([what, *(f"{one:.4f}" for one in means), f"{np.mean(means):.4f}", difference])
    return table(["", *parts, "mean", "difference, 95 %"], found)


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("what", choices=("evidence", "steps", "graphs"))
    sets = [
        *(str(DATA / name) for name in ("wcxb-dev", "elsewhere", "sites")),
        f"{DATA / 'facts'}:0.3",
        f"{DATA / 'kinds'}:0.5",
    ]
    parser.add_argument("--data", nargs="*", default=sets, help="sets, as for training; default: all in .cache")
    parser.add_argument("--extra", nargs="*", default=[str(DATA / "read-labels")], help="sets to learn from only")
    parser.add_argument("--rows", nargs="*", default=list(EVIDENCE), help="rows of evidence; default: all")
    parser.add_argument("--models", type=Path, help="the models of the folds, for steps and graphs")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, default=DATA / "ablation", help="folder for examples and rows")
    arguments = parser.parse_args()
    choices, extra = ([SetChoice.parse(text) for text in some] for some in (arguments.data, arguments.extra))
    found = defaultdict[str, Scores](dict)
    with ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as pool:
        if arguments.what == "evidence":
            arguments.keep.mkdir(parents=True, exist_ok=True)
            store = arguments.keep / "examples.pkl"
            if not store.exists():
                store.write_bytes(examples_of(choices, extra, arguments.jobs))
            answers = pool.map(partial(evidence, store=store), arguments.rows)
            found |= zip(arguments.rows, tqdm(answers, total=len(arguments.rows), unit="row"), strict=True)
        else:
            fold_of = json.loads((arguments.models / "folds.json").read_text(encoding="utf-8"))
            samples = [s for one in load_sets(choices, extra) for s in one.samples if s.measure and s.id in fold_of]
            folds = sorted(set(fold_of.values()))
            groups = [[s for s in samples if fold_of[s.id] == k] for k in folds]
            of_folds = without_steps if arguments.what == "steps" else parts_of_graphs
            of_all = pool.map(of_folds, groups, [arguments.models / str(k) for k in folds])
            for of_fold in tqdm(of_all, total=len(folds), unit="fold"):
                for row, scores in of_fold.items():
                    found[row] |= scores
    publish(arguments, ["scrapy-dripper", "lightgbm"], rows(found), kind=f"-{arguments.what}")


if __name__ == "__main__":
    main()
