"""Speed and labels of the Qwen3 engine on an NVIDIA GPU, with a random model of the published one's shape.

    pip install -e . -e 'lab[export]' && pip uninstall -y onnxruntime && pip install -e '.[gpu]'
    python benchmarks/gpu.py          builds the models in .cache/gpu, runs, writes results/gpu.txt
    python benchmarks/gpu.py --toy    the same on a CPU with a tiny model: does the script work? results/gpu-toy.txt

Pages have the lengths and the numbers of blocks of the development pages for the published weights. lengths.json has
their characters, and a token is 3.22 characters. They begin with a prompt as long as the published one, which only the
engine keeps. Random weights cost as much as trained ones. Only the accuracy of drafts cannot be measured with them, so
a tenth of the labels is made wrong on purpose.

Every way to decode is warmed up before any is timed, on all of its shapes, because kernels are chosen and cuDNN's plans
are made once for each shape. Then all ways take turns, in random order, so that a warming device affects all equally.
Tokens are those of prompt and answer, each counted once. transformers runs the checkpoint itself, in the data type of
the graph, with the same two columns of the head.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import DATA, options, publish, table
from equality import EXACT, Prover, compared, naive
from random_model import SIZES, TOKENIZER_FILE, write_checkpoint
from tokenizers import Tokenizer
from tqdm import tqdm

from scrapy_dripper.engines.qwen3.decoder import (
    PIECE,
    Bools,
    Decoded,
    Decoder,
    DecodeTask,
    Floats,
    Passes,
    decode,
    free_cuda_memory,
)
from scrapy_dripper.engines.qwen3.folder import Prepared, load_prepared
from scrapy_dripper.engines.qwen3.grammar import Ids
from scrapy_dripper_lab.cli.export import CACHE_DTYPES

LENGTHS = Path(__file__).with_name("lengths.json")
BARE, PLAIN = "bare prefill", f"(a) {EXACT}"
CHARS_PER_TOKEN = 3.22
"""Mean over 147 development pages, in the vocabulary of the published weights."""
PROMPT = 615
"""Tokens of the published prompt."""
BATCH = 32
"""Pages of a call of the engine."""
WRONG = 0.1
"""Share of the draft's labels that are wrong."""
SENTENCE = "Say of each block whether it is main or other. "
PACKAGES = ("numpy", "tokenizers", "torch", "transformers")


class Way(NamedTuple):
    """A way to decode pages."""

    decode: Callable[[Sequence[DecodeTask]], Sequence[Decoded]]
    tasks: Sequence[DecodeTask]
    batch: int = 1
    """Pages of a call."""


@dataclass
class Run:
    """What a way took."""

    seconds: dict[DecodeTask, float] = field(default_factory=dict)
    passes: int = 0
    labels: dict[DecodeTask, Bools] = field(default_factory=dict)


class Torch:
    """The checkpoint in transformers, which keeps keys and values as well."""

    def __init__(self, checkpoint: Path, prepared: Prepared) -> None:
        import torch
        from transformers import Qwen3ForCausalLM

        self._torch = torch
        model = Qwen3ForCausalLM.from_pretrained(checkpoint, dtype=getattr(torch, prepared.dtype))
        self._model = model.eval().to(prepared.device)
        self._head = model.lm_head.weight[[prepared.labels["main"], prepared.labels["other"]]].float()

    def forward(self, start: int, ids: Ids, rows: Ids) -> Floats:
        """Read tokens after the cached ones, and return the logits of main and other."""
        from transformers import DynamicCache

        if not start:
            self._cache = DynamicCache(config=self._model.config)
        if over := self._cache.get_seq_length() - start:
            self._cache.crop(-over)
        device = self._model.device
        with self._torch.inference_mode():
            text = self._torch.from_numpy(ids)[None].to(device)
            states = self._model.model(input_ids=text, past_key_values=self._cache, use_cache=True).last_hidden_state[0]
            found: Floats = (states[self._torch.from_numpy(rows).to(device)].float() @ self._head.T).cpu().numpy()
        return found


class Bench:
    """The engine, and random pages for it."""

    def __init__(self, prepared: Prepared, checkpoint: Path, pages: int, scale: float) -> None:
        self.prepared, self.checkpoint = prepared, checkpoint
        self.decoder = Decoder(prepared)
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
        shared = self.decoder.prompt.shared[: len(prompt)]
        prompt[: len(shared)] = shared
        return DecodeTask(prompt, grammar.answer(n), np.zeros(n, dtype=np.bool_))

    def begun(self, task: DecodeTask, decoder: Decoder | None = None) -> Passes:
        """Allocate a cache for a page."""
        passes = (decoder or self.decoder).passes
        assert passes is not None
        passes.begin(len(task) + 1)
        return passes

    def ways(self, few: Sequence[DecodeTask]) -> dict[str, Way]:
        """Return the ways to decode pages, all of them and a few."""
        graphs, torch = Decoder(replace(self.prepared, cuda_graphs=True)), Torch(self.checkpoint, self.prepared)

        def each(call: Callable[[DecodeTask], Decoded]) -> Callable[[Sequence[DecodeTask]], list[Decoded]]:
            return lambda tasks: [call(task) for task in tasks]

        def prefill(task: DecodeTask) -> Decoded:
            self.begun(task).forward(0, task.prompt, np.array([len(task.prompt) - 1]))
            return Decoded(np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.float32), 1, len(task.prompt), 0)

        return {
            BARE: Way(each(prefill), self.tasks),
            f"(c) engine, batches of {BATCH}": Way(self.engine, self.tasks, BATCH),
            "(c) one page at a time": Way(each(lambda task: decode(self.begun(task), task)), self.tasks),
            "(c) with CUDA graphs": Way(each(lambda task: decode(self.begun(task, graphs), task)), self.tasks),
            "(b) forced runs as chunks": Way(each(lambda task: decode(self.begun(task), task, 0)), few),
            PLAIN: Way(each(lambda task: naive(self.begun(task), task)), few),
            "transformers, like (a)": Way(each(lambda task: naive(torch, task)), few),
            "transformers, like (c)": Way(each(lambda task: decode(torch, task)), few),
        }

    def engine(self, tasks: Sequence[DecodeTask]) -> list[Decoded]:
        """Run the engine's decoder."""
        found = []
        for answer in self.decoder.decode(tasks):
            if not isinstance(answer, Decoded):
                raise SystemExit(f"a page could not be decoded: {answer}")
            found.append(answer)
        return found

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
        runs = {name: Run() for name in ways}
        for name, call, tasks in tqdm(steps, desc="timing", unit="step"):
            start = time.perf_counter()
            found = call(tasks)
            run = runs[name]
            run.seconds |= dict.fromkeys(tasks, (time.perf_counter() - start) / len(tasks))
            run.passes += sum(one.passes for one in found)
            run.labels |= {task: one.main for task, one in zip(tasks, found, strict=True)}
        return runs

    def draft(self) -> None:
        """Give every page a draft in which a share of the labels is wrong."""
        for i, task in enumerate(tqdm(self.tasks, desc="labels", unit="page")):
            right = decode(self.begun(task), task)
            flip = self.chance.random(len(task.answer)) < WRONG
            self.tasks[i] = replace(task, draft=right.main ^ flip)


def build(arguments: argparse.Namespace, size: str, dtype: str | None = None) -> tuple[Path, Path]:
    """Return the folder of a random checkpoint and its prepared folder. Both are made if they do not exist.

    A graph of ``dtype`` for a GPU that is a toy is for CUDA 12, whose nodes a CPU has as well, and was not tried.
    """
    device = "cpu" if arguments.toy and dtype is None else "cuda"
    checkpoint = arguments.folder / size
    weights, cache = arguments.weight_format, arguments.kv_cache_dtype
    prepared = arguments.folder / "-".join(filter(None, (size, device, dtype, weights, cache, "toy" * arguments.toy)))
    if not (checkpoint / "config.json").is_file():
        print(f"writing a random {size} checkpoint to {checkpoint}")
        write_checkpoint(checkpoint, SIZES[size], 0)
    if not (prepared / "manifest.json").is_file():
        from scrapy_dripper_lab.export.build import Request, export

        prompt = arguments.folder / "prompt.txt"
        least = len(Tokenizer.from_file(str(TOKENIZER_FILE)).encode(SENTENCE).ids)
        prompt.write_text(SENTENCE * (PROMPT // least) + "\n{html}\n", encoding="utf-8")
        export(
            Request(
                str(checkpoint),
                prepared,
                device=device,
                dtype=dtype,
                weight_format=weights,
                cache_dtype=CACHE_DTYPES.get(cache),
                cuda=12 if arguments.toy else 13,
                prompt=prompt,
                validate=device == "cpu" or not arguments.toy,
            )
        )
    return checkpoint, prepared


def measure(arguments: argparse.Namespace) -> list[str]:
    """Build, run and return what was measured, and the table of ways."""
    size = "tiny" if arguments.toy else "qwen3-0.6b"
    checkpoint, folder = build(arguments, size)
    if arguments.toy:
        free, name = None, "CPU"
    else:
        import torch

        free, name = free_cuda_memory(), torch.cuda.get_device_name(0)
    prepared = load_prepared(folder)
    bench = Bench(prepared, checkpoint, arguments.pages, 0.1 if arguments.toy else 1.0)
    bench.draft()
    used = None if free is None else free - (free_cuda_memory() or 0)  # before another model takes some
    tasks = bench.tasks
    few = sorted(tasks, key=len)[:: max(1, len(tasks) // arguments.few)][: arguments.few]

    runs = bench.run(bench.ways(few))
    bench.decoder.close()

    expected, rows = runs[PLAIN].labels, []
    for way, run in runs.items():
        pages, seconds = len(run.seconds), sum(run.seconds.values())
        both = [(run.labels[task], main) for task, main in expected.items()]
        same = sum(int((ours == main).sum()) for ours, main in both if len(ours))
        rows.append(
            [
                way,
                str(pages),
                f"{pages / seconds:.2f}",
                f"{sum(map(len, run.seconds)) / seconds:,.0f}",
                f"{run.passes / pages:.1f}",
                f"{1000 * seconds / run.passes:.2f}",
                f"{seconds / sum(map(runs[BARE].seconds.__getitem__, run.seconds)):.2f}",
                "" if way == BARE else f"{same} of {sum(len(main) for _, main in both)}",
            ]
        )
    alone = [
        (n, took) for task, took in runs[BARE].seconds.items() if (n := len(task.prompt)) <= PIECE[prepared.device]
    ]
    costs = ""
    if len({n for n, _ in alone}) > 2:
        _, slope, fixed = np.polyfit(*np.array(alone).T, 2)
        costs = f"\nA pass by itself costs about {fixed / slope:,.0f} tokens (a parabola through {len(alone)} prefills)"
    head = ["way", "pages", "pages/s", "tokens/s", "passes/page", "ms/pass", "x prefill", "labels of (a)"]
    tokens = [len(task.prompt) for task in tasks]
    about = (
        f"{size}, {prepared.weight_format} weights, {prepared.cache_dtype} cache, {prepared.dtype}, {name}; prompts of "
        f"{statistics.median(tokens):,.0f} tokens in the median, {statistics.mean(tokens):,.0f} on average, "
        f"{max(tokens):,} at most; {statistics.mean(len(task.answer) for task in tasks):.0f} blocks a page, "
        f"{WRONG:.0%} of the draft wrong; the slow ways on {len(few)} pages, with the prefill of those"
    )
    peak = f"Memory of this process at most: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB"
    memory = peak if used is None else f"{peak}; memory of the device that the engine took: {used / 2**30:.1f} GiB"
    toy = ["A toy on a CPU: it shows that the script runs, but says nothing about speed."] if arguments.toy else []
    return [f"{about}\n{memory}{costs}", table(head, rows), *toy]


def prove(arguments: argparse.Namespace) -> Iterator[str]:
    """Yield which labels in each half precision are those of decoding one token at a time."""
    where = "a CPU, of the graph for a GPU with CUDA 12," if arguments.toy else "the GPU"
    yield f"Labels of a small random model on {where} against those of one token at a time."
    for dtype in ("float16",) if arguments.toy else ("float16", "bfloat16"):  # no CPU attends in bfloat16
        _, folder = build(arguments, "tiny", dtype)
        prover = Prover(folder, "json", seed=0, device="cpu" if arguments.toy else None)
        about, ways = compared(prover, arguments.prove)
        yield from (f"{dtype}: {about}", ways)


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--toy", action="store_true", help="a tiny model on the CPU")
    parser.add_argument("--prove", type=int, default=300, help="pages whose labels are compared")
    parser.add_argument("--weight-format", choices=("int8", "int4"), help="store the weights in 8 or 4 bits")
    parser.add_argument("--kv-cache-dtype", choices=tuple(CACHE_DTYPES), help="keep keys and values in 8 bits")
    parser.add_argument("--folder", type=Path, default=DATA / "gpu", help="where models are built")
    parser.add_argument("--pages", type=int, default=240, help="prompts")
    parser.add_argument("--few", type=int, default=12, help="prompts for the slow ways")
    arguments = parser.parse_args()
    runtime, kind = ("onnxruntime", "-toy") if arguments.toy else ("onnxruntime-gpu", "")
    publish(arguments, [runtime, *PACKAGES], *measure(arguments), *prove(arguments), kind=kind)


if __name__ == "__main__":
    main()
