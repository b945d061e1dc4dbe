"""Model the time of the Qwen3 engine on a GPU, from the GPU's data sheet and the CPU time of pages.

This is not a measurement: ``gpu.py --simulate`` prints the model, ``gpu.py`` measures.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import mean, median

from report import table

from scrapy_dripper.engines.qwen3 import cost
from scrapy_dripper.engines.qwen3.cost import Rule, Shape, saved
from scrapy_dripper.engines.qwen3.windows import even, sizes, windows

LENGTHS = Path(__file__).parent / "lengths.json"
CHARS_PER_TOKEN = 3.22
"""Mean over 147 development pages, in the vocabulary of the published weights."""
PROMPT = 615
"""Tokens of the published prompt. All pages share 565 of them, which the engine reads once."""
SHARED = 565
PER_BLOCK = 6
"""Tokens of an answer for each block."""
CONTEXT = 32_768
SHAPE = Shape(layers=28, hidden=1024, inner=3072, heads=16, kv_heads=8, head_dim=128)
"""Dimensions of Qwen3-0.6B."""
KERNELS = 351
"""Nodes of the exported graph."""
LAUNCH = 4e-6
"""Seconds to launch a kernel. A pass takes at least the time to launch all of them."""
PASSES = 2
"""Passes per page with good drafts of the tagger. The second pass reads half of the answer again."""
CPU_SECONDS = 0.060
"""CPU time per page on one core: reading, drafting, and writing the prompt and the result, in a quiet process."""
SHARES = (1.0, 0.45)
"""Shares of the peak that a pass reaches: all of it is the bound, and 45 % is common for such graphs."""
CRAWL = 10
"""How often a crawl sees all pages."""
MORE = 1
"""Number of workers in excess of the cores, because workers that wait for the GPU need no core."""
LEAST = (0.0, 0.1, 0.2, 0.25, 0.33, 0.5)
"""Thresholds for the share of operations that windows must save."""


@dataclass(frozen=True)
class Device:
    """A GPU: dense operations in half precision per second, and bytes of memory per second."""

    name: str
    flops: float
    bandwidth: float


DEVICES = (
    Device("H100 SXM", 0.8 * 989e12, 3.35e12),
    Device("H200", 0.8 * 989e12, 4.8e12),
    Device("L4", 0.8 * 121e12, 0.3e12),
)
"""Four fifths of the operations on the data sheet, because matrix products do not reach more under the power limit."""


def seconds(device: Device, share: float, tokens: float, past: float = 0.0, sequences: int = 1) -> float:
    """Return the time of a pass over sequences: the maximum of the times for operations, memory and launches."""
    cached = 2 * SHAPE.layers * SHAPE.kv_heads * SHAPE.head_dim
    memory = 2.0 * (SHAPE.weights + sequences * (past + tokens) * cached)
    work = sequences * SHAPE.flops(tokens, past)
    return max(work / (device.flops * share), memory / device.bandwidth, KERNELS * LAUNCH)


def rounded(tokens: float) -> int:
    """Return the tokens of a pass, including padding."""
    return -int(-tokens // 256) * 256


def lengths() -> list[tuple[int, int]]:
    """Return the tokens of prompt and answer of each development page that fits the context, in random order."""
    pages = json.loads(LENGTHS.read_text(encoding="utf-8"))
    found = [(PROMPT + round(chars / CHARS_PER_TOKEN), PER_BLOCK * blocks) for chars, blocks in pages]
    fitting = [(prompt, answer) for prompt, answer in found if prompt + answer <= CONTEXT]
    Random(0).shuffle(fitting)
    return fitting


def page_seconds(device: Device, share: float, prompt: int, answer: int) -> float:
    """Return the time of a page: a pass over prompt and draft after the shared tokens, and the correcting passes."""
    first = seconds(device, share, rounded(prompt + answer - SHARED), SHARED)
    return first + (PASSES - 1) * seconds(device, share, rounded(answer / 2), prompt + answer / 2)


def in_windows(prompt: int, answer: int, rule: Rule | None = cost.AUTO) -> list[tuple[int, int]]:
    """Return the tokens of prompt and answer for each window of a page, or for the page if the engine reads it whole.

    All blocks of a page are assumed to be equally long.
    """
    n, text = answer // PER_BLOCK, prompt - PROMPT
    if rule is None or prompt <= rule.tokens:
        return [(prompt, answer)]
    costs = [PER_BLOCK + (i + 1) * text // n - i * text // n for i in range(n)]
    budget = even(costs, rule.tokens - PROMPT)
    found = sizes(costs, budget, PROMPT)
    if saved(SHAPE, SHARED, [prompt + answer], found) <= rule.least:
        return [(prompt, answer)]
    answers = [PER_BLOCK * len(window) for window in windows(costs, budget, lambda *_: True)]
    return [(size - own, own) for size, own in zip(found, answers, strict=True)]


def together(device: Device, share: float, pages: Sequence[tuple[int, int]], budget: int = 16_384) -> float:
    """Return the time of first passes if pages share them, sorted by length.

    Each page then reads the shared tokens again, because several sequences in one pass cannot have a common past.
    """
    total, group = 0.0, 0
    sizes = sorted(prompt + answer for prompt, answer in pages)
    for i, size in enumerate(sizes):
        group += 1
        following = sizes[i + 1] if i + 1 < len(sizes) else budget
        if (group + 1) * rounded(following) > budget:
            alone = sum(seconds(device, share, rounded(one - SHARED), SHARED) for one in sizes[i + 1 - group : i + 1])
            total += min(alone, seconds(device, share, rounded(size), 0, group))
            group = 0
    return total


def busy(gpu: Sequence[float], cpu: float, cores: int, workers: int, batch: int) -> float:
    """Return the share of the time for which a GPU computes, 0 to 1.

    Each worker reads a batch of pages, waits for the GPU, which serves one worker at a time, and begins with the next
    batch. Workers that read share the cores. ``gpu`` has the seconds of each page on the GPU, and ``cpu`` is the time
    of a page on one core.
    """
    gpu = [*gpu] * CRAWL
    batches = [sum(gpu[i : i + batch]) for i in range(0, len(gpu) - batch + 1, batch)]
    left = dict.fromkeys(range(workers), cpu * batch)  # seconds of work left for the workers that read
    waiting: list[tuple[float, int]] = []
    now = computed = 0.0
    free_at: float | None = None
    served = -1
    while batches:
        speed = min(1.0, cores / len(left)) if left else 0.0
        next_read = min(left.values()) / speed if left else float("inf")
        step = min(next_read, free_at - now if free_at is not None else float("inf"))
        now += step
        left = {worker: work - step * speed for worker, work in left.items()}
        for worker in [worker for worker, work in left.items() if work <= 1e-12]:
            del left[worker]
            heapq.heappush(waiting, (now, worker))
        if free_at is not None and now >= free_at - 1e-12:
            left[served], free_at = cpu * batch, None
        if free_at is None and waiting:
            _, served = heapq.heappop(waiting)
            computed += batches[0]
            free_at = now + batches.pop(0)
    return computed / (free_at or now)


def cores_needed(gpu: Sequence[float], cpu: float = CPU_SECONDS, batch: int = 8, least: float = 0.9) -> int:
    """Return the smallest number of cores that keep a GPU busy for a share of the time, with one more worker."""
    for cores in range(1, 100):
        if busy(gpu, cpu, cores, cores + MORE, batch) >= least:
            return cores
    raise ValueError(f"no number of cores keeps the GPU busy for {least:.0%} of the time")


def times(device: Device, share: float, rule: Rule | None = cost.AUTO) -> list[float]:
    """Return the time of each page on a GPU."""
    return [sum(page_seconds(device, share, *part) for part in in_windows(*page, rule)) for page in lengths()]


def speeds() -> str:
    """Return a table of the pages per second of each device, read whole and in windows, and the cores that it needs."""
    rows = []
    for device in DEVICES:
        for share in SHARES:
            gpu = times(device, share)
            cores = cores_needed(gpu)
            rows.append(
                [
                    device.name,
                    f"{share:.0%}",
                    f"{1 / mean(times(device, share, None)):.1f}",
                    f"{1 / mean(gpu):.1f}",
                    f"{1000 * mean(gpu):.0f}",
                    str(cores),
                    f"{busy(gpu, CPU_SECONDS, cores, cores + MORE, 8):.0%}",
                ]
            )
    head = ["GPU", "of the peak", "pages/s, whole", "pages/s, auto", "ms a page, auto", "cores", "busy"]
    return table(head, rows)


def rules() -> str:
    """Return a table of thresholds for windows, with the operations that they save and the share of pages in
    windows.
    """
    pages = lengths()
    rows = []
    for rule in (None, *(Rule(cost.AUTO.tokens, least) for least in LEAST)):
        parts = [in_windows(*page, rule) for page in pages]
        divided = [sum(page) for page, own in zip(pages, parts, strict=True) if len(own) > 1]
        rows.append(
            [
                "always whole" if rule is None else f"over {rule.least:.0%}" + " (auto)" * (rule == cost.AUTO),
                f"{teraflops(parts):.1f}",
                f"{1 - teraflops(parts) / teraflops([[page] for page in pages]):.0%}",
                f"{len(divided) / len(pages):.0%}",
                f"{min(divided):,}" if divided else "",
            ]
        )
    return table(["windows where they save", "TFLOP a page", "saved", "pages in windows", "shortest, tokens"], rows)


def teraflops(pages: Sequence[Sequence[tuple[int, int]]]) -> float:
    """Return the mean operations per page, in units of 1e12, given the tokens of prompts and answers."""
    return mean(sum(SHAPE.flops(sum(part) - SHARED, SHARED) for part in parts) for parts in pages) / 1e12


def markdown(text: str) -> str:
    """Return a table as the documentation has it."""
    head, rule, *rows = [line for line in text.splitlines() if line]
    columns = [len(one) for one in rule.split("  ")]
    lines = []
    for line in (head, *rows):
        cells = []
        for width in columns:
            cells.append(line[:width].strip())
            line = line[width + 2 :]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([lines[0], "|---" * len(columns) + "|", *lines[1:]])


def batches() -> str:
    """Return the time that sharing passes would save."""
    pages = lengths()
    rows = []
    for device in DEVICES:
        for share in SHARES:
            alone = sum(seconds(device, share, rounded(p + a - SHARED), SHARED) for p, a in pages)
            rows.append([device.name, f"{share:.0%}", f"{max(0.0, 1 - together(device, share, pages) / alone):.1%}"])
    return table(["GPU", "of the peak", "saved"], rows)


def simulated() -> str:
    """Return the whole report."""
    pages = lengths()
    prompts = [prompt for prompt, _ in pages]
    whole = teraflops([[page] for page in pages])
    linear = mean(2.0 * SHAPE.weights * (prompt + answer - SHARED) for prompt, answer in pages) / 1e12
    few = [f"{busy_of(cores):.0%} with {cores} core{'s' * (cores > 1)}" for cores in (1, 2, 3)]
    return "\n\n".join(
        [
            "A model, not a measurement: nothing here has run on a GPU.",
            f"{len(pages)} development pages: prompts of {median(prompts):,.0f} tokens in the median, "
            f"{mean(prompts):,.0f} on average. Read whole, {linear:.1f} TFLOP a page in products with weights and "
            f"{whole - linear:.1f} in attention. {PASSES} passes a page, {1000 * CPU_SECONDS:.0f} ms a page on a core, "
            'batches of 8, a worker more than cores. "cores" are those that keep the GPU busy for 90 % of the time.',
            f'"whole" has one prompt a page. "auto" reads pages in windows of up to {cost.AUTO.tokens:,} tokens where '
            f"these save over {cost.AUTO.least:.0%} of the operations.",
            speeds(),
            rules(),
            f"Of the time, an H200 at 45 % is busy {', '.join(few)}.",
            "Time that first passes would save if pages shared them, sorted by length, up to 16,384 tokens each:",
            batches(),
        ]
    )


def busy_of(cores: int) -> float:
    """Return the share of the time for which an H200 at 45 % is busy."""
    return busy(times(DEVICES[1], 0.45), CPU_SECONDS, cores, cores + MORE, 8)
