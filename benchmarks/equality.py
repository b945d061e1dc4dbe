"""Compare labels of the Qwen3 loop with token-by-token decoding, on random prompts, answers and drafts.

    python benchmarks/equality.py EXACT FOLDER...

compares prepared folders of one checkpoint, run as the engine runs them, with one of them, one token at a time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from scrapy_dripper.engines.qwen3.decoder import Passes
from scrapy_dripper.engines.qwen3.folder import load_prepared
from scrapy_dripper.engines.qwen3.grammar import Grammar
from scrapy_dripper.engines.qwen3.loop import CausalModel, Decoded, DecodeTask, decode
from scrapy_dripper.engines.qwen3.session import open_session

MOST_BLOCKS = 300
SHARED = 40
"""Number of the first tokens that four of five pages share."""
THINKING = "mineru_v2"
"""The answer format that needs two special tokens."""
ACCURACIES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)


def naive(model: CausalModel, task: DecodeTask) -> Decoded:
    """Decode one token at a time, by greedy decoding under a grammar. The draft is not used."""
    answer, n = task.answer, len(task.answer)
    places = set(answer.places.tolist())
    labels, margins = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.float32)
    chunk, position, passes, k = task.prompt, 0, 0, 0
    for place in range(len(answer.ids)):
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


@dataclass
class Proof:
    """The numbers of comparisons and of differences."""

    pages: int = 0
    choices: int = 0
    chunked: int = 0
    """Number of pages with a different label when each forced run is one pass."""
    drafted: int = 0
    """Number of pages with a different label when a draft is verified."""
    passes: int = 0
    """Number of passes of the drafted pages."""
    main: int = 0
    smallest: float = np.inf
    """Smallest difference between the logits of main and other that decided about a label."""
    apart: float = 0.0
    """Largest difference between such a difference and that of one token at a time."""
    cached: int = 0
    """Number of drafted pages whose first tokens had been read for all pages."""


class Prover:
    """Compares a prepared model in random cases of one answer format."""

    def __init__(self, folder: Path, answer: str, seed: int, device: str | None = None) -> None:
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
        self.passes = Passes(open_session(prepared), prepared, shared=self.shared)

    def prove(self, pages: int, most_blocks: int = MOST_BLOCKS) -> Iterator[Proof]:
        """Compare a number of pages. Yield the same object of totals after each."""
        proof = Proof()
        while proof.pages < pages:
            task = self._task(most_blocks)
            expected = naive(self.begun(task), task)
            drafted = self._drafted(task, expected.main)
            start = self.passes.begin(len(task), task.prompt)
            by_draft = decode(self.passes, drafted, start=start)
            by_chunks = decode(self.passes, drafted, 0, start)
            proof.pages += 1
            proof.choices += len(expected.main)
            proof.chunked += not np.array_equal(expected.main, by_chunks.main)
            proof.drafted += not np.array_equal(expected.main, by_draft.main)
            proof.passes += by_draft.passes
            proof.cached += start > 0
            if np.array_equal(expected.main, by_draft.main):
                apart = float(np.abs(expected.margins - by_draft.margins).max())
                proof.apart = max(proof.apart, apart)
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

    def _drafted(self, task: DecodeTask, labels: npt.NDArray[np.bool_]) -> DecodeTask:
        wrong = self.chance.random(len(labels)) >= self.chance.choice(ACCURACIES)
        return DecodeTask(task.prompt, task.answer, labels ^ wrong)


def compared(exact: Path, folders: list[Path], pages: int, seed: int) -> str:
    """Return a table of folders: how many labels are those of the exact one, and the work of a page."""
    from common import table

    first = Prover(exact, "json", seed)
    others = [Prover(folder, "json", seed) for folder in folders]
    rows = {folder.name: np.zeros(5) for folder in folders}
    apart = dict.fromkeys(rows, 0.0)
    reference = np.zeros(3)
    for _ in tqdm(range(pages), unit="page"):
        task = first._task(40)
        expected = naive(first.begun(task), task)
        drafted = first._drafted(task, expected.main)
        reference += (len(expected.main), expected.passes, expected.positions)
        for folder, other in zip(folders, others, strict=True):
            start = other.passes.begin(len(task), task.prompt)
            found = decode(other.passes, drafted, start=start)
            same = found.main == expected.main
            rows[folder.name] += (same.sum(), same.all(), found.passes, found.positions, start > 0)
            # After the first label that differs, the texts differ.
            alike = len(same) if same.all() else int(np.argmin(same)) + 1
            moved = float(np.abs(found.margins - expected.margins)[:alike].max())
            apart[folder.name] = max(apart[folder.name], moved)
    labels, passes, positions = reference
    lines = [["exact, one token at a time", "", "", "", f"{passes / pages:.1f}", f"{positions / pages:.0f}", "0"]]
    for name, (same, whole, passes, positions, cached) in rows.items():
        counts = [f"{same:.0f} of {labels:.0f}", f"{whole:.0f} of {pages}", f"{apart[name]:.2g}"]
        lines.append([name, *counts, f"{passes / pages:.1f}", f"{positions / pages:.0f}", f"{cached:.0f}"])
    head = [
        "folder",
        "labels the same",
        "pages the same",
        "margins apart",
        "passes/page",
        "tokens/page",
        "cached start",
    ]
    return str(table(head, lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exact", type=Path)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(compared(arguments.exact, arguments.folders, arguments.pages, arguments.seed))
