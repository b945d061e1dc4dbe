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

LENGTHS = Path(__file__).parent / "lengths.json"
CHARS_PER_TOKEN = 3.22
"""Mean over 147 development pages, in the vocabulary of the published weights."""
PROMPT = 615
"""Tokens of the published prompt. All pages share 565 of them, which the engine reads once."""
SHARED = 565
PER_BLOCK = 6
"""Tokens of an answer for each block."""
CONTEXT = 32_768
LAYERS, HEADS, KV, HIDDEN, INNER = 28, 16 * 128, 8 * 128, 1024, 3072
WEIGHTS = LAYERS * (HIDDEN * (2 * HEADS + 2 * KV) + 3 * HIDDEN * INNER)
"""Parameters of Qwen3-0.6B that take part in the matrix products of a pass: all except the embedding."""
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
WINDOW = 6_000
"""Tokens of a window. Windows reduce the attention of long pages, but some blocks are read twice."""
OVERLAP = 8


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


def flops(tokens: float, past: float = 0.0) -> float:
    """Return the operations of a pass over tokens after ``past`` others, with causal attention and no output layer."""
    return 2.0 * WEIGHTS * tokens + LAYERS * 4.0 * HEADS * tokens * (past + tokens / 2)


def seconds(device: Device, share: float, tokens: float, past: float = 0.0, sequences: int = 1) -> float:
    """Return the time of a pass over sequences: the maximum of the times for operations, memory and launches."""
    memory = 2.0 * WEIGHTS + sequences * (past + tokens) * LAYERS * 2 * KV * 2
    return max(sequences * flops(tokens, past) / (device.flops * share), memory / device.bandwidth, KERNELS * LAUNCH)


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


def in_windows(prompt: int, answer: int, window: int = WINDOW) -> list[tuple[int, int]]:
    """Return the windows into which a page is divided, if that takes fewer operations than reading it whole."""
    size = prompt - PROMPT + answer
    room = window - PROMPT
    count = max(1, -int(-(size - room / OVERLAP) // (room * (1 - 1 / OVERLAP))))
    each = PROMPT + (size + (count - 1) * room // OVERLAP) // count
    own = answer // count
    parts = [(each - own, own)] * count
    whole = flops(prompt + answer - SHARED, SHARED)
    return parts if count * flops(each - SHARED, SHARED) < whole else [(prompt, answer)]


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


def speeds() -> str:
    """Return the pages per second of each device, whole and in windows, and the cores that it needs."""
    pages = lengths()
    rows = []
    for device in DEVICES:
        for share in SHARES:
            whole = [page_seconds(device, share, *page) for page in pages]
            parts = [sum(page_seconds(device, share, *part) for part in in_windows(*page)) for page in pages]
            cores = cores_needed(whole)
            rows.append(
                [
                    device.name,
                    f"{share:.0%}",
                    f"{1000 * mean(whole):.0f}",
                    f"{1 / mean(whole):.1f}",
                    f"{1 / mean(parts):.1f}",
                    str(cores),
                    f"{busy(whole, CPU_SECONDS, cores, cores + MORE, 8):.0%}",
                ]
            )
    head = ["GPU", "of the peak", "ms a page", "pages/s", "in windows", "cores", "busy"]
    return table(head, rows)


def markdown() -> str:
    """Return the table of :func:`speeds` as the documentation has it."""
    head, rule, *rows = [line for line in speeds().splitlines() if line]
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
    linear = mean(2.0 * WEIGHTS * (prompt + answer) for prompt, answer in pages) / 1e12
    whole = mean(flops(prompt + answer) for prompt, answer in pages) / 1e12
    divided = mean(sum(flops(p + a) for p, a in in_windows(*page)) for page in pages) / 1e12
    few = [f"{busy_of(cores):.0%} with {cores} core{'s' * (cores > 1)}" for cores in (1, 2, 3)]
    return "\n\n".join(
        [
            "A model, not a measurement: nothing here has run on a GPU.",
            f"{len(pages)} development pages: prompts of {median(prompts):,.0f} tokens in the median, "
            f"{mean(prompts):,.0f} on average. {linear:.1f} TFLOP a page in products with weights and "
            f"{whole - linear:.1f} in attention; in windows of {WINDOW:,} tokens, {divided:.1f} in all. {PASSES} "
            f"passes a page, {1000 * CPU_SECONDS:.0f} ms a page on a core, batches of 8, a worker more than cores. "
            '"cores" are those that keep the GPU busy for 90 % of the time.',
            speeds(),
            f"Of the time, an H200 at 45 % is busy {', '.join(few)}.",
            "Time that first passes would save if pages shared them, sorted by length, up to 16,384 tokens each:",
            batches(),
        ]
    )


def busy_of(cores: int) -> float:
    """Return the share of the time for which an H200 at 45 % is busy."""
    return busy([page_seconds(DEVICES[1], 0.45, *page) for page in lengths()], CPU_SECONDS, cores, cores + MORE, 8)
