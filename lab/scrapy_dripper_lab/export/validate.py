"""Compare a graph with the model from which it was exported, within the tolerance of its data type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer

from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.engines.qwen3.decoder import Passes, open_session
from scrapy_dripper.engines.qwen3.folder import Prepared
from scrapy_dripper.engines.qwen3.grammar import Grammar, Ids
from scrapy_dripper.engines.qwen3.profile import HTML

TOLERANCES = {"float32": 1e-3, "float16": 3e-2, "bfloat16": 1e-1, "int8": 1e-1, "int4": 1.0, "float8e4m3fn": 1.0}
"""Maximum difference of a logit, as a share of the largest one, by the format of weights or cache. A model in so few
bits is another model: the labels tell whether it is as good."""

_PAGES = (
    ["<h1>Tides</h1>"],
    ["<div><a>Home</a></div>", "<h1>Tides</h1>", "<p>The sea rises and falls twice a day.</p>", "<div>Imprint</div>"],
    [
        *(f'<li class="menu"><a>{word}</a></li>' for word in ("News", "Sport", "Weather", "Maps", "Shop")),
        '<h1 class="title">Spring tides</h1>',
        *(f"<p>{text}</p>" for text in (
            "Twice a month, near new moon and full moon, the range between high and low water is largest.",
            "Sun and Moon then pull along one line. 潮汐 are older than any calendar.",
            "Between them come the neap tides.",
        )),
        "<table><tr><td>Brest</td><td>6.1 m</td></tr><tr><td>Cuxhaven</td><td>3.3 m</td></tr></table>",
        "<div>Read more: 12 places to see a tidal bore</div>",
        '<div class="footer"><a>Privacy</a></div>',
    ],
)  # fmt: skip


PROBE_LABELS = ("1", "0110", "000001111100")
"""Which blocks of the pages are main content."""


@dataclass(frozen=True, slots=True)
class LogitCheck:
    """A prompt with an answer, and the checkpoint's logits."""

    ids: list[int]
    rows: list[int]
    """Positions whose next token is a label."""
    logits: list[list[float]]
    """Logits of main and other at each row, from PyTorch in single precision."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The difference between a graph and its checkpoint."""

    choices: int
    same: int
    """Number of choices at which both prefer the same label."""
    difference: float
    """Largest difference between two logits."""
    largest: float
    """Largest logit."""
    margin: float
    """Mean distance between the logits of main and other, in the checkpoint."""
    moved: float
    """Mean difference of that distance in the graph."""
    tolerance: float

    @property
    def passed(self) -> bool:
        """True if the difference is within the tolerance, and there is something to compare."""
        return self.choices > 0 and self.difference <= self.tolerance * max(1.0, self.largest)

    def __str__(self) -> str:
        return (
            f"{self.choices} choice logits differ by at most {self.difference:.2g} (of {self.largest:.1f}; allowed: "
            f"{self.tolerance * max(1.0, self.largest):.2g}), {self.same} of {self.choices} labels are the same, and "
            f"margins of {self.margin:.2g} in the mean have moved by {self.moved:.2g}"
        )


def probe_pages() -> list[list[str]]:
    """Return a few pages, each as the simplified HTML of its blocks."""
    return [[block.replace(">", f' _item_id="{k}">', 1) for k, block in enumerate(page, 1)] for page in _PAGES]


def probes(tokenizer: Tokenizer, template: str, grammar: Grammar, context: int) -> list[tuple[Ids, Ids]]:
    """Return the ids and rows of a few prompts, the longest last, each with the right answer."""
    found = []
    for page, main in zip(probe_pages(), PROBE_LABELS, strict=True):
        prompt = np.array(tokenizer.encode(template.replace(HTML, "".join(page))).ids, dtype=np.int64)
        answer = grammar.answer(len(page))
        ids = answer.ids.copy()
        ids[answer.places] = [grammar.main if label == "1" else grammar.other for label in main]
        if len(prompt) + len(ids) <= context:
            found.append((np.concatenate([prompt, ids[:-1]]), len(prompt) + answer.places - 1))
    if not found:
        raise UsageError(f"the prompt has no room in the model's context of {context:,} tokens")
    return found


def right_labels(checks: Sequence[LogitCheck]) -> dict[str, int]:
    """Return how many blocks the checkpoint labels right, given right labels before them, and the number of blocks."""
    truth = {len(main): main for main in PROBE_LABELS}
    right = [
        (one[0] > one[1]) == (label == "1")
        for check in checks
        for one, label in zip(check.logits, truth[len(check.rows)], strict=True)
    ]
    return {"right": sum(right), "blocks": len(right)}


def compare(prepared: Prepared, checks: Sequence[LogitCheck]) -> Comparison:
    """Run a graph on the prompts of checks, each in one pass, and in two passes with a cache between them.

    Raise :exc:`~scrapy_dripper.engines.base.ModelError` if it does not run at all.
    """
    passes = Passes(open_session(prepared), prepared)
    ours, theirs = [np.zeros((0, 2), dtype=np.float32)], [np.zeros((0, 2), dtype=np.float32)]
    for check in checks:
        ids, rows = np.array(check.ids, dtype=np.int64), np.array(check.rows, dtype=np.int64)
        for cut in {len(ids), int(rows[0])}:
            passes.begin(len(ids))
            for start, end in ((0, cut), (cut, len(ids))):
                here = (rows >= start) & (rows < end)
                if end > start:
                    ours.append(passes.forward(start, ids[start:end], rows[here] - start))
                    theirs.append(np.array(check.logits, dtype=np.float32)[here])
    a, b = np.concatenate(ours), np.concatenate(theirs)
    margins = np.abs(b[:, 0] - b[:, 1])
    moved = np.abs(a[:, 0] - a[:, 1] - b[:, 0] + b[:, 1])
    return Comparison(
        choices=len(b),
        same=int(((a[:, 0] > a[:, 1]) == (b[:, 0] > b[:, 1])).sum()),
        difference=float(np.abs(a - b).max(initial=0.0)) if np.isfinite(a).all() else float("inf"),
        largest=float(np.abs(b).max(initial=0.0)),
        margin=float(margins.mean()),
        moved=float(moved.mean()),
        tolerance=max(TOLERANCES[one] for one in (prepared.dtype, prepared.weight_format, prepared.cache_dtype)),
    )


def stored_checks(prepared: Prepared) -> list[LogitCheck]:
    """Return the checks that an export left in a manifest. Raise :exc:`UsageError` if there are none."""
    try:
        checks = [LogitCheck(**one) for one in prepared.source["checks"]]
        if checks and all(len(one.rows) == len(one.logits) and one.rows for one in checks):
            return checks
    except (KeyError, TypeError):
        pass
    raise UsageError(
        f"the manifest in {prepared.folder} holds no logits to compare with: export the model again with "
        "'scrapy-dripper export'"
    )
