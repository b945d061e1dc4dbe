"""Speed of the Qwen3 engine on an NVIDIA GPU, with a random model of the published one's shape.

    pip install -e '.[export]' && pip uninstall -y onnxruntime && pip install -e '.[gpu]'
    python benchmarks/gpu.py                 builds the model in .cache/gpu, runs, writes results/gpu.txt
    python benchmarks/gpu.py --prove         labels on the GPU, fp16 and bf16, against those of one token at a time
    python benchmarks/gpu.py --toy [--prove] the same on a CPU with a tiny model: does the script work? Prints only

Pages have the lengths and the numbers of blocks of the development pages for the published weights. lengths.json has
their characters, and a token is 3.22 characters. Random weights cost as much as trained ones. Only
the accuracy of drafts cannot be measured with them, so a share --wrong of the labels is made wrong on purpose.

Every way to decode is warmed up before any is timed, on all of its shapes, because kernels are chosen and cuDNN's plans
are made once for each shape. Then all ways take turns, in random order, so that a warming device affects all equally.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import heading, publish, table
from equality import Proof, Prover, naive
from random_model import SIZES, write_checkpoint
from tqdm import tqdm

from scrapy_dripper.engines.qwen3.decoder import Decoder, Passes
from scrapy_dripper.engines.qwen3.folder import Prepared, load_prepared
from scrapy_dripper.engines.qwen3.loop import Decoded, DecodeTask, TokenChunk, decode
from scrapy_dripper.engines.qwen3.session import free_cuda_memory

HERE = Path(__file__).parent
LENGTHS = HERE / "lengths.json"
PROVED = 300  # pages
CHARS_PER_TOKEN = 3.22
"""Mean over 147 development pages, in the vocabulary of the published weights."""
PROMPT = 615
"""Tokens of the published prompt."""
PACKAGES = ("onnxruntime", "numpy", "tokenizers", "torch", "transformers")


@dataclass(frozen=True)
class Run:
    """The measurement of one way to decode: seconds, forward passes, and pages."""

    seconds: float
    passes: int
    pages: int

    @property
    def rate(self) -> float:
        """Pages per second."""
        return self.pages / self.seconds


@dataclass(frozen=True)
class Way:
    """A way to decode pages, with the pages."""

    name: str
    call: Callable[[Sequence[Any]], int]
    """Decodes some pages and returns the number of forward passes."""
    tasks: Sequence[Any]
    """The pages: a task for each, or a list of tasks."""
    batch: int = 1

    def steps(self) -> list[Sequence[Any]]:
        """Return the pages of each call."""
        return [self.tasks[i : i + self.batch] for i in range(0, len(self.tasks), self.batch)]


def one_by_one(call: Callable[[DecodeTask], int]) -> Callable[[Sequence[DecodeTask]], int]:
    """Return a way to decode that takes one page after the other."""
    return lambda tasks: sum(map(call, tasks))


class Bench:
    """The engine, and random pages for it."""

    def __init__(self, prepared: Prepared, pages: int, scale: float) -> None:
        self.prepared = prepared
        self.decoder = Decoder(prepared)
        assert self.decoder.passes is not None
        self.passes: Passes = self.decoder.passes
        self.chance = np.random.default_rng(0)
        lengths = json.loads(LENGTHS.read_text(encoding="utf-8"))
        every = [lengths[i * len(lengths) // pages] for i in range(pages)]
        self.tasks = [
            self._task(PROMPT + chars / CHARS_PER_TOKEN * scale, max(1, round(n * scale))) for chars, n in every
        ]
        self.chance.shuffle(self.tasks)  # type: ignore[arg-type]

    def _task(self, tokens: float, n: int) -> DecodeTask:
        grammar = self.decoder.grammar
        while grammar.length(n) > self.prepared.context // 4:
            n = n * 3 // 4
        most = self.prepared.context - grammar.length(n) - 1
        prompt = self.chance.integers(3, min(500, self.prepared.vocab_size), size=int(min(max(tokens, 8), most)))
        return DecodeTask(prompt, grammar.answer(n), np.zeros(n, dtype=np.bool_), grammar.main, grammar.other)

    def begun(self, task: DecodeTask) -> Passes:
        """Allocate a cache for a page."""
        self.passes.begin(len(task) + 1)
        return self.passes

    # ------------------------------------------------------------------ the ways
    def prefill(self, task: DecodeTask) -> int:
        """Read a prompt, and nothing else."""
        self.begun(task).forward(TokenChunk(0, task.prompt, np.array([len(task.prompt) - 1])))
        return 1

    def one_at_a_time(self, task: DecodeTask) -> int:
        """(a)"""
        return naive(self.begun(task), task).passes

    def chunked(self, task: DecodeTask) -> int:
        """(b)"""
        return decode(self.begun(task), task, 0).passes

    def drafted(self, task: DecodeTask) -> int:
        """(c)"""
        return decode(self.begun(task), task).passes

    def whole(self, tasks: Sequence[DecodeTask]) -> int:
        """Run the engine's decoder."""
        passes = 0
        for answer in self.decoder.decode(tasks):
            if not isinstance(answer, Decoded):
                raise SystemExit(f"a page could not be decoded: {answer}")
            passes += answer.passes
        return passes

    def run(self, ways: Sequence[Way]) -> dict[str, Run]:
        """Time ways to decode pages. All are warmed up first, then all of their steps run in random order."""
        steps = [(way, tasks) for way in ways for tasks in way.steps()]
        for way, tasks in tqdm(steps, desc="warming up", unit="step"):
            way.call(tasks)
        self.chance.shuffle(steps)  # type: ignore[arg-type]
        seconds, passes = dict.fromkeys((way.name for way in ways), 0.0), dict.fromkeys((way.name for way in ways), 0)
        for way, tasks in tqdm(steps, desc="timing", unit="step"):
            start = time.perf_counter()
            passes[way.name] += way.call(tasks)
            seconds[way.name] += time.perf_counter() - start
        return {way.name: Run(seconds[way.name], passes[way.name], len(way.tasks)) for way in ways}

    def draft(self, wrong: float) -> None:
        """Give every page a draft in which a share of the labels is wrong."""
        for i, task in enumerate(tqdm(self.tasks, desc="labels", unit="page")):
            self.tasks[i] = self._drafted(task, wrong)

    def _drafted(self, task: DecodeTask, wrong: float) -> DecodeTask:
        right = decode(self.begun(task), task)
        flip = self.chance.random(len(task.answer)) < wrong
        return DecodeTask(task.prompt, task.answer, right.main ^ flip, task.main, task.other)


def build(folder: Path, size: str, device: str, dtype: str | None = None, *, toy: bool = False) -> Path:
    """Return the prepared folder of a random checkpoint of a size. Both are made if they do not exist.

    A graph for a GPU that is a ``toy`` is for CUDA 12, whose nodes a CPU has as well, and was not tried on a GPU.
    """
    checkpoint, prepared = folder / size, folder / "-".join(filter(None, (size, device, dtype, "toy" * toy)))
    if not (checkpoint / "config.json").is_file():
        print(f"writing a random {size} checkpoint to {checkpoint}")
        write_checkpoint(checkpoint, SIZES[size], 0)
    if not (prepared / "manifest.json").is_file():
        from scrapy_dripper.workshop.export.build import Request, export

        cuda = 12 if toy else 13
        request = Request(str(checkpoint), prepared, device=device, dtype=dtype, cuda=cuda, validate=not toy)
        export(request, print)
    return prepared


def measure(arguments: argparse.Namespace) -> str:
    """Build, run and return the report."""
    size, device = ("tiny", "cpu") if arguments.toy else ("qwen3-0.6b", "cuda")
    folder = build(arguments.folder, size, device)
    free = free_cuda_memory() if device == "cuda" else None
    bench = Bench(load_prepared(folder), arguments.pages, 0.1 if arguments.toy else 1.0)
    bench.draft(arguments.wrong)
    tasks = bench.tasks
    few = sorted(tasks, key=len)[:: max(1, len(tasks) // arguments.few)][: arguments.few]

    engine = f"(c) engine, batches of {arguments.batch}"
    ways = [
        Way("bare prefill", one_by_one(bench.prefill), tasks),
        Way(engine, bench.whole, tasks, arguments.batch),
        Way("(c) one page at a time", one_by_one(bench.drafted), tasks),
        Way("bare prefill, few", one_by_one(bench.prefill), few),
        Way("(c) one page at a time, few", one_by_one(bench.drafted), few),
        Way("(b) forced runs as chunks", one_by_one(bench.chunked), few),
        Way("(a) one token at a time", one_by_one(bench.one_at_a_time), few),
    ]
    runs = bench.run(ways)
    used = None if free is None else free - (free_cuda_memory() or 0)
    bench.passes.release()
    bench.decoder.close()

    rows = []
    for name, run in runs.items():
        subset = run.pages != len(tasks)
        bare = runs["bare prefill, few" if subset else "bare prefill"]
        rows.append(
            [
                name,
                str(run.pages),
                f"{run.rate:.2f}",
                f"{1000 * run.seconds / run.pages:.1f}",
                f"{run.passes / run.pages:.1f}",
                f"{1000 * run.seconds / run.passes:.2f}",
                f"{run.seconds / bare.seconds:.2f}",
            ]
        )
    head = ["way", "pages", "pages/s", "ms/page", "passes", "ms/pass", "x prefill"]
    tokens = [len(task.prompt) for task in tasks]
    about = (
        f"{size}, {bench.prepared.dtype}, {_device_name(device)}; prompts of {statistics.median(tokens):,.0f} tokens "
        f"in the median, {statistics.mean(tokens):,.0f} on average, {max(tokens):,} at most; "
        f"{statistics.mean(len(task.answer) for task in tasks):.0f} blocks a page, {arguments.wrong:.0%} of the draft "
        f"wrong; (a) and (b) on {len(few)} pages, with ratios on those"
    )
    memory = "" if used is None else f"\nMemory of the device that the engine took: {used / 2**30:.1f} GiB"
    toy = "\n\nA toy on a CPU: it shows that the script runs, but says nothing about speed." if arguments.toy else ""
    return f"{about}{memory}\n\n{table(head, rows)}{toy}"


def prove(arguments: argparse.Namespace) -> str:
    """Return how many pages have labels that differ from decoding one token at a time, in each half precision."""
    rows = []
    for dtype in ("float16",) if arguments.toy else ("float16", "bfloat16"):  # no CPU attends in bfloat16
        folder = build(arguments.folder, "tiny", "cuda", dtype, toy=arguments.toy)
        proof = Proof()
        prover = Prover(folder, "json", seed=0, device="cpu" if arguments.toy else None)
        for proof in prover.prove(min(PROVED, arguments.pages) if arguments.toy else PROVED):
            print(f"\r{dtype}: {proof.pages} pages", end="")
        counts = (proof.pages, proof.choices, proof.main, proof.chunked, proof.drafted)
        rows.append([dtype, *map(str, counts), f"{proof.smallest:.4f}"])
    head = ["data type", "pages", "labels", "main", "differ in chunks", "differ with a draft", "smallest margin"]
    where = "a CPU, of the graph for a GPU with CUDA 12," if arguments.toy else "the GPU"
    about = f"Labels of a small random model on {where} against those of one token at a time in the same place."
    return f"{about}\n\n{table(head, rows)}"


def _device_name(device: str) -> str:
    if device == "cpu":
        return "CPU"
    import torch

    return str(torch.cuda.get_device_name(0))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toy", action="store_true", help="a tiny model on the CPU")
    parser.add_argument("--prove", action="store_true", help="compare labels with those of one token at a time")
    parser.add_argument("--folder", type=Path, default=HERE.parent / ".cache" / "gpu", help="where models are built")
    parser.add_argument("--pages", type=int, default=240, help="prompts")
    parser.add_argument("--few", type=int, default=12, help="prompts for the slow ways")
    parser.add_argument("--batch", type=int, default=32, help="pages of a call of the engine")
    parser.add_argument("--wrong", type=float, default=0.1, help="share of the draft's labels that are wrong")
    parser.add_argument("--output", type=Path, help="where the report goes; by default results/gpu.txt")
    arguments = parser.parse_args()
    packages = [name for name in PACKAGES if name != "onnxruntime" or arguments.toy]
    packages += [] if arguments.toy else ["onnxruntime-gpu"]
    found = prove(arguments) if arguments.prove else measure(arguments)
    report = f"{heading('gpu.py', packages)}\n\n{found}"
    if arguments.toy and arguments.output is None:
        print(report)
        return
    name = "gpu-prove.txt" if arguments.prove else "gpu.txt"
    publish(report, arguments.output or HERE / "results" / name)


if __name__ == "__main__":
    main()
