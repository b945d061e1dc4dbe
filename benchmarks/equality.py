"""Compare labels of the Qwen3 loop with token-by-token decoding, on random prompts, answers and drafts.

    python benchmarks/equality.py EXACT FOLDER... [--pages 300]

compares the ways to run an exact prepared folder, and folders of the same checkpoint as the engine runs them, with the
exact one, one token at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from tqdm import tqdm

from scrapy_dripper.engines.qwen3.decoder import (
    CHUNK,
    Bools,
    CausalModel,
    Decoded,
    DecodeTask,
    Passes,
    decode,
    open_session,
)
from scrapy_dripper.engines.qwen3.folder import load_prepared
from scrapy_dripper.engines.qwen3.grammar import Grammar
from scrapy_dripper.learning.metrics import aligned

MOST_BLOCKS = 300
SHARED = 40
"""Number of the first tokens that four of five pages share."""
THINKING = "mineru_v2"
"""The answer format that needs two special tokens."""
ACCURACIES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
EXACT, CHUNKS, DRAFTS, GRAPHS = (
    "one token at a time",
    "forced runs as chunks",
    "with a draft",
    "in shapes for CUDA graphs",
)


def naive(model: CausalModel, task: DecodeTask) -> Decoded:
    """Decode one token at a time, by greedy decoding under a grammar. The draft is not used, and nothing is padded."""
    answer, n = task.answer, len(task.answer)
    places = set(answer.places.tolist())
    labels, margins = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.float32)
    chunk, position, passes, k = task.prompt, 0, 0, 0
    for place in range(len(answer.ids)):
        with patch.dict(CHUNK, dict.fromkeys(CHUNK, 1)):
            logits = model.forward(position, chunk, np.array([len(chunk) - 1]))
        position += len(chunk)
        passes += 1
        token = answer.ids[place]
        if place in places:
            main, other = logits[0]
            labels[k], margins[k] = main > other, main - other
            token = answer.main if labels[k] else answer.other
            k += 1
        chunk = np.array([token], dtype=np.int64)
    return Decoded(labels, margins, passes, position, int((labels == task.draft).sum()))


class Way(NamedTuple):
    """A way to decode drafted pages, of which all or only the next label of the draft is read."""

    passes: Passes
    lookahead: int | None = None


@dataclass
class Tally:
    """The work of a way to decode, and how much of what it gives is what the exact one gives."""

    labels: int = 0
    pages: int = 0
    passes: int = 0
    positions: int = 0
    cached: int = 0
    """Number of pages whose first tokens had been read for all pages."""
    apart: float = 0.0
    """Largest difference between the margins of main over other, up to the first label that differs."""

    def add(self, found: Decoded, expected: Decoded, start: int) -> None:
        """Count a page of whose prompt ``start`` tokens had been read."""
        same = found.main == expected.main
        self.labels += int(same.sum())
        self.pages += bool(same.all())
        self.passes += found.passes
        self.positions += found.positions
        self.cached += start > 0
        alike = len(same) if same.all() else int(np.argmin(same)) + 1  # the texts after it differ
        self.apart = max(self.apart, float(np.abs(found.margins - expected.margins)[:alike].max()))


@dataclass
class Proof:
    """The tallies of all ways, and what was compared."""

    ways: dict[str, Tally]
    exact: Tally = field(default_factory=Tally)
    main: int = 0
    smallest: float = np.inf
    """Smallest difference between the logits of main and other that decided about a label."""

    @property
    def differ(self) -> dict[str, int]:
        """The number of pages with another label, for each way that has any."""
        return {name: self.exact.pages - one.pages for name, one in self.ways.items() if one.pages < self.exact.pages}

    def rows(self) -> list[list[str]]:
        """Return the rows of a table, without the names of the columns."""
        return [
            [
                name,
                f"{one.labels} of {self.exact.labels}",
                f"{one.pages} of {self.exact.pages}",
                f"{one.apart:.2g}",
                f"{one.passes / self.exact.pages:.1f}",
                f"{one.positions / self.exact.pages:.0f}",
                str(one.cached),
            ]
            for name, one in ({EXACT: self.exact} | self.ways).items()
        ]


HEAD = ("way", "labels the same", "pages the same", "margins apart", "passes/page", "tokens/page", "cached start")


class Prover:
    """Compares ways to run models of one checkpoint, in random cases of one answer format."""

    def __init__(
        self, folder: Path, answer: str, seed: int, others: Sequence[Path] = (), device: str | None = None
    ) -> None:
        """``device`` runs a graph elsewhere than where it was made for, as no crawl would."""
        prepared = load_prepared(folder)
        prepared = replace(prepared, device=device or prepared.device)
        tokenizer = prepared.tokenizer()
        if answer == THINKING and tokenizer.get_vocab_size() + 2 <= prepared.vocab_size:
            # Qwen3's tokenizer has them; the small random models have rows to spare.
            tokenizer.add_special_tokens(["</think>"])
            tokenizer.add_tokens(["\n\n"])
        self.grammar = Grammar(tokenizer, answer)
        self.vocabulary, self.context = prepared.vocab_size, prepared.context
        self.chance = np.random.default_rng(seed)
        self.shared = self.chance.integers(3, self.vocabulary, size=SHARED)
        graphs = replace(prepared, cuda_graphs=True)
        self.passes, repeated = (Passes(open_session(one), one, self.shared) for one in (prepared, graphs))
        self.ways = {CHUNKS: Way(self.passes, 0), DRAFTS: Way(self.passes), GRAPHS: Way(repeated)}
        for other in map(load_prepared, others):
            self.ways[other.folder.name] = Way(Passes(open_session(other), other, self.shared))

    def prove(self, pages: int, most_blocks: int = MOST_BLOCKS) -> Iterator[Proof]:
        """Compare a number of pages. Yield the same object of totals after each."""
        proof = Proof({name: Tally() for name in self.ways})
        while proof.exact.pages < pages:
            task = self._task(most_blocks)
            expected = naive(self.begun(task), task)
            drafted = self._drafted(task, expected.main)
            proof.exact.add(expected, expected, 0)
            for name, (passes, lookahead) in self.ways.items():
                start = passes.begin(len(task), task.prompt)
                proof.ways[name].add(decode(passes, drafted, lookahead, start), expected, start)
            proof.main += int(expected.main.sum())
            proof.smallest = min(proof.smallest, float(np.abs(expected.margins).min()))
            yield proof

    def begun(self, task: DecodeTask) -> Passes:
        """Return the model with room for a page, of which nothing is read."""
        self.passes.begin(len(task) + 1)
        return self.passes

    def _task(self, most_blocks: int) -> DecodeTask:
        n = int(np.exp(self.chance.uniform(0, np.log(most_blocks + 1))))
        answer = self.grammar.answer(n)
        most = min(400, self.context - len(answer.ids))
        prompt = self.chance.integers(3, self.vocabulary, size=self.chance.integers(5, most))
        if self.chance.random() < 0.8:
            prompt[:SHARED] = self.shared[: len(prompt)]
        return DecodeTask(prompt, answer, np.zeros(n, dtype=np.bool_))

    def _drafted(self, task: DecodeTask, labels: Bools) -> DecodeTask:
        wrong = self.chance.random(len(labels)) >= self.chance.choice(ACCURACIES)
        return DecodeTask(task.prompt, task.answer, labels ^ wrong)


def compared(prover: Prover, pages: int) -> tuple[str, str]:
    """Compare a number of pages. Return a line about their labels, and the table of ways."""
    *_, proof = tqdm(prover.prove(pages), unit="page", total=pages)
    about = f"{proof.main} of {proof.exact.labels} labels are main; the smallest margin is {proof.smallest:.2g}"
    return about, aligned(HEAD, proof.rows())


def main() -> None:
    """Run the comparison."""
    from common import options, publish

    parser = options(__doc__)
    parser.add_argument("exact", type=Path)
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--pages", type=int, default=300)
    arguments = parser.parse_args()
    prover = Prover(arguments.exact, "json", 0, arguments.folders)
    publish(arguments, ["scrapy-dripper", "onnxruntime", "numpy"], *compared(prover, arguments.pages))


if __name__ == "__main__":
    main()
