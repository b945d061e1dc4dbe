"""Cost of the Qwen3 loop: forward passes, positions and CPU time; and a check that it does not change labels.

    python benchmarks/decode.py                     passes and positions against the quality of the draft
    python benchmarks/decode.py --prove             labels compared with decoding one token at a time
    python benchmarks/decode.py --time FOLDER       CPU time of each way to decode, beside a bare prefill

The first two use the small random model of the tests, the last one a prepared model that you name.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from common import heading, publish, table
from equality import MOST_BLOCKS, Prover, naive
from tqdm import tqdm

from scrapy_dripper.engines.qwen3.folder import load_prepared
from scrapy_dripper.engines.qwen3.grammar import FORMATS, Grammar, fitting
from scrapy_dripper.engines.qwen3.loop import Chunk, Decoded, Task, decode
from scrapy_dripper.engines.qwen3.passes import Passes
from scrapy_dripper.engines.qwen3.prompt import Prompt
from scrapy_dripper.engines.qwen3.session import open_session

HERE = Path(__file__).parent
PREPARED = HERE.parent / "tests" / "engines" / "qwen3" / "prepared"
RESULTS = HERE / "results"
PACKAGES = ("onnxruntime", "numpy", "tokenizers")

BLOCKS = (20, 60, 200)
ACCURACIES = (0.5, 0.8, 0.9, 0.95, 0.98, 1.0)


class Bench:
    """A prepared model with random prompts."""

    def __init__(self, folder: Path, answer: str | None = None) -> None:
        prepared = load_prepared(folder)
        tokenizer = prepared.tokenizer()
        self.grammar, self.prompt = Grammar(tokenizer, answer or prepared.answer), Prompt(tokenizer, prepared.prompt)
        self.passes = Passes(open_session(prepared, "auto"), prepared, self.prompt.shared)
        self.vocabulary = prepared.vocab_size
        self.chance = np.random.default_rng(0)

    def task(self, n: int, tokens: int) -> Task:
        """Return a random prompt with a number of tokens and n blocks to label."""
        page = self.chance.integers(3, self.vocabulary, size=tokens - len(self.prompt.shared))
        prompt = np.concatenate([self.prompt.shared, page])
        return Task(prompt, self.grammar.answer(n), np.zeros(n, dtype=np.bool_), self.grammar.main, self.grammar.other)

    def begin(self, task: Task, *, shared: bool = True) -> int:
        """Allocate a cache for a prompt and its whole answer."""
        return self.passes.begin(len(task) + 1, shared=shared)

    def drafted(self, task: Task, labels: np.ndarray, accuracy: float) -> Task:
        """Return the task with a draft in which a share ``accuracy`` of the labels (rounded) is right."""
        wrong = np.zeros(len(labels), dtype=np.bool_)
        wrong[self.chance.permutation(len(labels))[: round(len(labels) * (1 - accuracy))]] = True
        return Task(task.prompt, task.answer, labels ^ wrong, task.main, task.other)


# ---------------------------------------------------------------------- passes
@dataclass(frozen=True)
class Cost:
    """Mean numbers of passes, and of positions beyond the prompt, per page."""

    passes: float
    positions: float


def measure(bench: Bench, n: int, repeats: int) -> tuple[Cost, Cost, dict[float, Cost]]:
    """Return the costs of decoding one token at a time, in chunks, and with drafts of each accuracy."""
    found: dict[object, list[Decoded]] = {}
    size = 0
    for _ in range(repeats):
        task = bench.task(n, 300)
        size = len(task.prompt)
        one = naive(bench.passes, task, bench.begin(task, shared=False))
        found.setdefault("naive", []).append(one)
        found.setdefault("chunked", []).append(decode(bench.passes, task, bench.begin(task, shared=False), 0))
        for accuracy in ACCURACIES:
            drafted = bench.drafted(task, one.main, accuracy)
            two = decode(bench.passes, drafted, bench.begin(task, shared=False))
            if not np.array_equal(one.main, two.main):
                raise SystemExit("the labels differ: see --prove")
            found.setdefault(accuracy, []).append(two)
    cost = {
        key: Cost(sum(one.passes for one in ones) / repeats, sum(one.positions - size for one in ones) / repeats)
        for key, ones in found.items()
    }
    return cost["naive"], cost["chunked"], {accuracy: cost[accuracy] for accuracy in ACCURACIES}


def drafts(arguments: argparse.Namespace) -> str:
    """Return the table of passes and positions."""
    rows: list[list[str]] = []
    for answer in ("json", "compact"):
        bench = Bench(arguments.model, answer)
        for n in tqdm(BLOCKS, desc=answer, unit="size"):
            one, chunked, drafted = measure(bench, n, arguments.repeats)
            rows += [
                [answer, str(n), "(a) one token at a time", "-", f"{one.passes:.1f}", f"{one.positions:.0f}"],
                [answer, str(n), "(b) forced runs as chunks", "-", f"{chunked.passes:.1f}", f"{chunked.positions:.0f}"],
            ]
            rows += [
                [answer, str(n), "(c) draft", f"{accuracy:.2f}", f"{cost.passes:.1f}", f"{cost.positions:.0f}"]
                for accuracy, cost in drafted.items()
            ]
    head = ["answer", "blocks", "way", "draft right", "passes", "positions beyond the prompt"]
    return f"Random model, prompts of 300 tokens, means of {arguments.repeats} pages\n\n" + table(head, rows)


# ---------------------------------------------------------------------- proof
def prove(arguments: argparse.Namespace) -> str:
    """Return how many pages had the same labels with all ways to decode."""
    rows = []
    for folder in arguments.folders or [PREPARED]:
        for answer in arguments.answers or fitting(load_prepared(folder).tokenizer()):
            prover = Prover(folder, answer, arguments.seed)
            with tqdm(total=arguments.cases, desc=answer, unit="page") as bar:
                for proof in prover.prove(arguments.cases, arguments.most_blocks):
                    bar.update(min(proof.pages, arguments.cases) - bar.n)
            rows.append(
                [
                    folder.name,
                    answer,
                    f"{proof.pages:,}",
                    f"{proof.choices:,}",
                    f"{proof.main / proof.choices:.2f}",
                    str(proof.chunked),
                    str(proof.drafted),
                    f"{proof.passes / proof.pages:.1f}",
                    f"{proof.smallest:.1e}",
                ]
            )
    head = ["model", "answer", "pages", "labels", "main", "(b) differs", "(c) differs", "(c) passes", "least margin"]
    about = (
        f"Labels against (a), one token at a time: pages of 1 to {arguments.most_blocks} blocks, "
        "drafts from all wrong to all right"
    )
    return f"{about}\n\n{table(head, rows)}"


# ---------------------------------------------------------------------- time
def timed(call: Callable[[], Decoded | None]) -> tuple[float, float, Decoded | None]:
    """Return the CPU and wall seconds of a call, and what it returned."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = call()
    return time.process_time() - cpu, time.perf_counter() - wall, result


def timing(arguments: argparse.Namespace) -> str:
    """Return the CPU time of each way to decode one page, as a ratio to reading its prompt alone."""
    bench = Bench(arguments.time)
    task = bench.task(arguments.blocks, arguments.tokens)

    def prefill() -> None:
        bench.begin(task, shared=False)
        bench.passes.forward(Chunk(0, task.prompt, np.array([len(task.prompt) - 1])))

    def run(drafted: Task, lookahead: int | None = None) -> Decoded:
        return decode(bench.passes, drafted, bench.begin(task, shared=False), lookahead)

    prefill()
    labels = run(task).main
    ways: dict[str, Callable[[], Decoded | None]] = {"bare prefill": prefill}
    for accuracy in (1.0, 0.95, 0.9, 0.75):
        ways[f"(c) draft, {accuracy:.2f} right"] = partial(run, bench.drafted(task, labels, accuracy))
    ways["(b) forced runs as chunks"] = partial(run, task, 0)
    times: dict[str, list[tuple[float, float, Decoded | None]]] = {name: [] for name in ways}
    for _ in tqdm(range(arguments.repeats), unit="round"):
        for name, call in ways.items():
            times[name].append(timed(call))
    slow = "(a) one token at a time"
    times[slow] = [timed(lambda: naive(bench.passes, task, bench.begin(task, shared=False)))]
    bare = float(np.median([cpu for cpu, _, _ in times["bare prefill"]]))
    rows = []
    for name, ones in times.items():
        cpu, wall = (float(np.median([one[i] for one in ones])) for i in (0, 1))
        result = ones[0][2]
        if result is not None and not np.array_equal(result.main, labels):
            raise SystemExit("the labels differ: see --prove")
        passes, positions = (result.passes, result.positions) if result else (1, len(task.prompt))
        rows.append([name, str(passes), f"{positions:,}", f"{cpu:.2f}", f"{wall:.2f}", f"{cpu / bare:.2f}"])
    prepared = load_prepared(arguments.time)
    about = (
        f"{prepared.name}, {prepared.dtype}: a prompt of {len(task.prompt):,} tokens, "
        f"{arguments.blocks} blocks, {bench.grammar.length(arguments.blocks):,} tokens of answer; medians of "
        f"{arguments.repeats} rounds, (a) once"
    )
    return about + "\n\n" + table(["way", "passes", "positions", "CPU s", "wall s", "ratio"], rows)


def main() -> None:
    """Run one benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prove", action="store_true", help="compare labels")
    parser.add_argument("--time", type=Path, metavar="FOLDER", help="measure CPU time with a prepared model")
    parser.add_argument("--model", type=Path, default=PREPARED, help="prepared model for the first table")
    parser.add_argument("--folders", type=Path, nargs="+", metavar="FOLDER", help="prepared models to prove with")
    parser.add_argument("--cases", type=int, default=500, help="pages, for --prove")
    parser.add_argument(
        "--answers", nargs="+", choices=FORMATS, help="for --prove; default: all that fit the tokenizer"
    )
    parser.add_argument("--most-blocks", type=int, default=MOST_BLOCKS, help="blocks of a page, for --prove")
    parser.add_argument("--tokens", type=int, default=3000, help="tokens of a prompt, for --time")
    parser.add_argument("--blocks", type=int, default=40, help="blocks of a page, for --time")
    parser.add_argument("--repeats", type=int, default=5, help="pages of a kind, or rounds of --time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="where the report goes; by default results/decode*.txt")
    arguments = parser.parse_args()
    runs = {"prove": arguments.prove, "time": arguments.time}
    name = next((name for name, asked in runs.items() if asked), "")
    run = {"": drafts, "prove": prove, "time": timing}[name]
    report = run(arguments)
    path = arguments.output or RESULTS / f"decode{'-' + name if name else ''}.txt"
    publish(f"{heading('decode.py', PACKAGES)}\n\n{report}", path)


if __name__ == "__main__":
    main()
