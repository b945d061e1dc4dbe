"""A small network over the sequence of a page's blocks. Its input is the features, not the text.

Trees look at one block at a time. The network reads the page as a sequence, with convolutions whose reach doubles with
each layer and with the mean over the page. The mean of both is better than either. Strong regularisation matters more
than size: features of class names and words are dropped for blocks and for whole pages, and blocks are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from scrapy_dripper.engines.tagger.features import TAG_FEATURES
from scrapy_dripper.page.tags import TAGS
from scrapy_dripper.training.prepare import Example

WIDTH = 64
LAYERS = 5
TAG_WIDTH = 6
"""Size of a tag's embedding."""
LAST_WIDTH = 64
CLIP = 5.0
"""Features are clipped at this many standard deviations from the mean."""
EPOCHS = 6
PAGES_TOGETHER = 12
MOST_BLOCKS = 500
"""A longer page is cropped, at a random place."""
RATE = 2e-3
WARM_UP = 0.12
"""Share of the steps over which the learning rate rises."""
DECAY = 0.01
DROPOUT, INPUT_DROPOUT, BLOCK_DROPOUT, NAME_DROPOUT, PAGE_NAME_DROPOUT = 0.35, 0.1, 0.15, 0.3, 0.1
F1_LOSS = 0.5
"""Weight of the page's soft F1 in the loss, in addition to the cross-entropy of its blocks."""
SMOOTH_WORDS = 10.0
"""Words added to numerator and denominator of the soft F1, to reduce the influence of pages with little main
content."""

TAG_COUNT = len(TAGS) + 2
"""Number of tags, including "no tag" and "beyond the edge of the page"."""


def tag_columns(names: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return the indexes of the numeric features, and of those that are tags."""
    tags = [i for i, name in enumerate(names) if name in TAG_FEATURES]
    return [i for i in range(len(names)) if i not in set(tags)], tags


class Network(nn.Module):
    """Maps the features of n concatenated blocks to n logits."""

    def __init__(self, names: Sequence[str], mean: np.ndarray, deviation: np.ndarray) -> None:
        super().__init__()
        self.numbers, self.tags = tag_columns(names)
        self.clip = CLIP
        self.mean = torch.from_numpy(mean.astype(np.float32))
        self.deviation = torch.from_numpy(deviation.astype(np.float32))
        self.embedding = nn.Embedding(TAG_COUNT, TAG_WIDTH)
        self.enter = nn.Linear(len(self.numbers) + TAG_WIDTH * len(self.tags), WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(LAYERS)])
        self.layers = nn.ModuleList([nn.Linear(3 * WIDTH, WIDTH) for _ in range(LAYERS)])
        self.page = nn.Linear(WIDTH, WIDTH)
        self.last = nn.Linear(2 * WIDTH, LAST_WIDTH)
        self.out = nn.Linear(LAST_WIDTH, 1)
        self.dropout, self.input_dropout = nn.Dropout(DROPOUT), nn.Dropout(INPUT_DROPOUT)

    def split(self, matrix: np.ndarray) -> tuple[Tensor, Tensor]:
        """Split a matrix of features into scaled numbers and tags. A missing neighbour becomes tag 0."""
        x = torch.from_numpy(np.ascontiguousarray(matrix[:, self.numbers]))
        tags = torch.from_numpy(matrix[:, self.tags].astype(np.int64) + 1)
        return ((x - self.mean) / self.deviation).clamp(-CLIP, CLIP), tags

    def forward(self, x: Tensor, tags: Tensor, first: Tensor, last: Tensor) -> Tensor:
        """Return the logits. ``first`` and ``last`` are the bounds of each block's page."""
        n = len(x)
        place = torch.arange(n)
        entered = torch.cat([self.input_dropout(x), self.embedding(tags).flatten(1)], dim=-1)
        h = self.dropout(functional.relu(self.enter(entered)))
        h = h + functional.relu(self.mix(h))
        for i, (norm, layer) in enumerate(zip(self.norms, self.layers, strict=True)):
            reach = 2**i
            around = torch.cat([norm(h), h.new_zeros(1, WIDTH)])
            before = torch.where(place - reach >= first, place - reach, n)
            after = torch.where(place + reach < last, place + reach, n)
            seen = torch.cat([around[before], around[:n], around[after]], dim=-1)
            h = h + self.dropout(functional.relu(layer(seen)))
        sums = torch.cat([h.new_zeros(1, WIDTH), h.cumsum(0)])
        mean = (sums[last] - sums[first]) / (last - first).unsqueeze(-1)
        page = functional.relu(self.page(mean))
        logits: Tensor = self.out(self.dropout(functional.relu(self.last(torch.cat([h, page], dim=-1)))))
        return logits.squeeze(-1)


@dataclass(frozen=True, slots=True, eq=False)
class _Page:
    """An example as tensors with n rows."""

    x: Tensor
    tags: Tensor
    main: Tensor
    weight: Tensor
    words: Tensor
    share: float


def fit_network(examples: Sequence[Example], *, seed: int = 0) -> Network:
    """Fit a network on examples, in one thread. The same seed and data give the same network."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _fit(examples, seed)
    finally:
        torch.set_num_threads(threads)


def _fit(examples: Sequence[Example], seed: int) -> Network:
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    names = examples[0].features.names
    numbers, _ = tag_columns(names)
    rows = np.concatenate([e.matrix for e in examples])[:, numbers]
    network = Network(names, rows.mean(0, dtype=np.float64), rows.std(0, dtype=np.float64) + 1e-3)
    del rows
    pages = [_page(network, e) for e in examples]
    dropped = [
        torch.tensor([i for i, j in enumerate(numbers) if names[j].startswith(prefixes)], dtype=torch.long)
        for prefixes in (("near:", "far:"), ("words:",))
    ]
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    steps = EPOCHS * math.ceil(len(pages) / PAGES_TOGETHER)
    step = 0
    network.train()
    for _ in range(EPOCHS):
        order = rng.permutation(len(pages))
        for start in range(0, len(order), PAGES_TOGETHER):
            for group in optimizer.param_groups:
                group["lr"] = RATE * min(1.0, (step + 1) / (WARM_UP * steps)) * (1 - step / steps)
            parts = [_part(pages[i], rng, dropped) for i in order[start : start + PAGES_TOGETHER].tolist()]
            some = [page for page in parts if len(page.x)]
            step += 1
            if not some:  # the last pages of an epoch may be a single one of which no block is left
                continue
            loss = _loss(network, some)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
    network.eval()
    return network


def _page(network: Network, example: Example) -> _Page:
    x, tags = network.split(example.matrix)
    columns = example.main, example.weight, example.words
    main, weight, words = (torch.from_numpy(column.astype(np.float32)) for column in columns)
    return _Page(x, tags, main, weight, words, example.share)


def _part(page: _Page, rng: np.random.Generator, dropped: Sequence[Tensor]) -> _Page:
    """Return a random part of a page: cropped, with blocks left out, and features of names and words set to their
    mean."""
    n = len(page.x)
    start = int(rng.integers(0, n - MOST_BLOCKS + 1)) if n > MOST_BLOCKS else 0
    kept = torch.from_numpy(np.flatnonzero(rng.random(min(n, MOST_BLOCKS)) > BLOCK_DROPOUT) + start)
    x = page.x[kept]
    if rng.random() < PAGE_NAME_DROPOUT:
        x[:, dropped[0]] = 0
    for columns in dropped:
        rows = torch.from_numpy(np.flatnonzero(rng.random(len(x)) < NAME_DROPOUT))
        x[rows[:, None], columns] = 0
    return _Page(x, page.tags[kept], page.main[kept], page.weight[kept], page.words[kept], page.share)


def _loss(network: Network, pages: Sequence[_Page]) -> Tensor:
    sizes = torch.tensor([len(page.x) for page in pages])
    ends = sizes.cumsum(0)
    first, last = torch.repeat_interleave(ends - sizes, sizes), torch.repeat_interleave(ends, sizes)
    number = torch.repeat_interleave(torch.arange(len(pages)), sizes)
    main, weight, words = (torch.cat([getattr(p, name) for p in pages]) for name in ("main", "weight", "words"))
    share = torch.tensor([page.share for page in pages])
    logits = network(torch.cat([p.x for p in pages]), torch.cat([p.tags for p in pages]), first, last)
    chance = torch.sigmoid(logits)
    blocks = functional.binary_cross_entropy_with_logits(logits, main, reduction="none")

    def by_page(values: Tensor) -> Tensor:
        return torch.zeros(len(pages)).index_add(0, number, values)

    both, either = by_page(chance * main * words), by_page(chance * words) + by_page(main * words)
    soft_f1 = (2 * both + SMOOTH_WORDS) / (either + SMOOTH_WORDS)
    total: Tensor = (blocks * weight).sum() / weight.sum() + F1_LOSS * ((1 - soft_f1) * share).sum() / share.sum()
    return total
