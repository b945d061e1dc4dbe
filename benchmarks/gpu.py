"""Speed of the Qwen3 engine on an NVIDIA GPU, with a random model of the published one's shape.

    pip install -e . -e 'lab[export]' && pip uninstall -y onnxruntime && pip install -e '.[gpu]'
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import heading, publish, table
from equality import Proof, Prover, naive
from random_model import SIZES, write_checkpoint
from tqdm import tqdm

from scrapy_dripper.engines.qwen3.decoder import Decoder, Passes
from scrapy_dripper.engines.qwen3.folder import Prepared, load_prepared
from scrapy_dripper.engines.qwen3.loop import Decoded, DecodeTask, decode
from scrapy_dripper.engines.qwen3.session import free_cuda_memory

HERE = Path(__file__).parent
LENGTHS = HERE / "lengths.json"
PROVED = 300  # pages
BARE = "bare prefill"
CHARS_PER_TOKEN = 3.22
"""Mean over 147 development pages, in the vocabulary of the published weights."""
PROMPT = 615
"""Tokens of the published prompt."""
PACKAGES = ("onnxruntime", "numpy", "tokenizers", "torch", "transformers")


class Way(NamedTuple):
    """A way to decode pages."""

    decode: Callable[[Sequence[DecodeTask]], int]
    """Decodes some pages, and returns the number of forward passes."""
    tasks: Sequence[DecodeTask]
    batch: int = 1
    """Pages of a call."""


class Run(NamedTuple):
    """The seconds and the forward passes of a way."""

    seconds: float
    passes: int


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
        return DecodeTask(prompt, grammar.answer(n), np.zeros(n, dtype=np.bool_))

    def begun(self, task: DecodeTask) -> Passes:
        """Allocate a cache for a page."""
        self.passes.begin(len(task) + 1)
        return self.passes

    def ways(self, few: Sequence[DecodeTask], batch: int) -> dict[str, Way]:
        """Return the ways to decode pages, all of them and a few."""

        def one_by_one(call: Callable[[DecodeTask], int]) -> Callable[[Sequence[DecodeTask]], int]:
            return lambda tasks: sum(map(call, tasks))

        def prefill(task: DecodeTask) -> int:
            self.begun(task).forward(0, task.prompt, np.array([len(task.prompt) - 1]))
            return 1

        def drafted(task: DecodeTask) -> int:
            return decode(self.begun(task), task).passes

        return {
            BARE: Way(one_by_one(prefill), self.tasks),
            f"(c) engine, batches of {batch}": Way(self.engine, self.tasks, batch),
            "(c) one page at a time": Way(one_by_one(drafted), self.tasks),
            f"{BARE}, few": Way(one_by_one(prefill), few),
            "(c) one page at a time, few": Way(one_by_one(drafted), few),
            "(b) forced runs as chunks": Way(one_by_one(lambda task: decode(self.begun(task), task, 0).passes), few),
            "(a) one token at a time": Way(one_by_one(lambda task: naive(self.begun(task), task).passes), few),
        }

    def engine(self, tasks: Sequence[DecodeTask]) -> int:
        """Run the engine's decoder."""
        passes = 0
        for answer in self.decoder.decode(tasks):
            if not isinstance(answer, Decoded):
                raise SystemExit(f"a page could not be decoded: {answer}")
            passes += answer.passes
        return passes

    def run(self, ways: Mapping[str, Way]) -> dict[str, Run]:
        """Time ways to decode pages. All are warmed up first, then all of their steps run in random order."""
        steps = [
            (name, way.decode, way.tasks[i : i + way.batch])
            for name, way in ways.items()
            for i in range(0, len(way.tasks), way.batch)
        ]
        for _, call, tasks in tqdm(steps, desc="warming up", unit="step"):
            call(tasks)
        self.chance.shuffle(steps)  # type: ignore[arg-type]
        runs = dict.fromkeys(ways, Run(0.0, 0))
        for name, call, tasks in tqdm(steps, desc="timing", unit="step"):
            start = time.perf_counter()
            passes = call(tasks)
            runs[name] = Run(runs[name].seconds + time.perf_counter() - start, runs[name].passes + passes)
        return runs

    def draft(self, wrong: float) -> None:
        """Give every page a draft in which a share of the labels is wrong."""
        for i, task in enumerate(tqdm(self.tasks, desc="labels", unit="page")):
            right = decode(self.begun(task), task)
            flip = self.chance.random(len(task.answer)) < wrong
            self.tasks[i] = replace(task, draft=right.main ^ flip)


def build(folder: Path, size: str, device: str, dtype: str | None = None, *, toy: bool = False) -> Path:
    """Return the prepared folder of a random checkpoint of a size. Both are made if they do not exist.

    A graph for a GPU that is a ``toy`` is for CUDA 12, whose nodes a CPU has as well, and was not tried on a GPU.
    """
    checkpoint, prepared = folder / size, folder / "-".join(filter(None, (size, device, dtype, "toy" * toy)))
    if not (checkpoint / "config.json").is_file():
        print(f"writing a random {size} checkpoint to {checkpoint}")
        write_checkpoint(checkpoint, SIZES[size], 0)
    if not (prepared / "manifest.json").is_file():
        from scrapy_dripper_lab.export.build import Request, export

        cuda = 12 if toy else 13
        request = Request(str(checkpoint), prepared, device=device, dtype=dtype, cuda=cuda, validate=not toy)
        export(request)
    return prepared


def measure(arguments: argparse.Namespace) -> str:
    """Build, run and return the report."""
    size, device = ("tiny", "cpu") if arguments.toy else ("qwen3-0.6b", "cuda")
    folder = build(arguments.folder, size, device)
    if arguments.toy:
        free, name = None, "CPU"
    else:
        import torch

        free, name = free_cuda_memory(), torch.cuda.get_device_name(0)
    bench = Bench(load_prepared(folder), arguments.pages, 0.1 if arguments.toy else 1.0)
    bench.draft(arguments.wrong)
    tasks = bench.tasks
    few = sorted(tasks, key=len)[:: max(1, len(tasks) // arguments.few)][: arguments.few]

    ways = bench.ways(few, arguments.batch)
    runs = bench.run(ways)
    used = None if free is None else free - (free_cuda_memory() or 0)
    bench.passes.release()
    bench.decoder.close()

    rows = []
    for way, run in runs.items():
        pages = len(ways[way].tasks)
        bare = runs[BARE if pages == len(tasks) else f"{BARE}, few"]
        rows.append(
            [
                way,
                str(pages),
                f"{pages / run.seconds:.2f}",
                f"{1000 * run.seconds / pages:.1f}",
                f"{run.passes / pages:.1f}",
                f"{1000 * run.seconds / run.passes:.2f}",
                f"{run.seconds / bare.seconds:.2f}",
            ]
        )
    head = ["way", "pages", "pages/s", "ms/page", "passes", "ms/pass", "x prefill"]
    tokens = [len(task.prompt) for task in tasks]
    about = (
        f"{size}, {bench.prepared.dtype}, {name}; prompts of {statistics.median(tokens):,.0f} tokens "
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
