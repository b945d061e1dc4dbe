"""A small network over the sequence of a page's blocks. Its input is the features, not the text.

Trees look at one block at a time. The network reads the page as a sequence: dilated convolutions, whose reach doubles
with each layer, show each block its neighbours, and means and maxima over the page show it the page. It also learns the
page type, because the same structure can be content on one type of page and boilerplate on another. The mean of trees
and a network is better than either.

Strong regularisation matters more than size. Features of class names and words are dropped for blocks and for whole
pages, declared facts are dropped for whole pages so that the model also knows facts that no page declares, and blocks
are left out. Places are dropped for most pages, so that the model knows a block by what it is and by its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from scrapy_dripper.engines.tagger.features import ABSENT, TAG_FEATURES
from scrapy_dripper.engines.tagger.later_stages import PAGE_TYPES
from scrapy_dripper.page.tags import TAGS
from scrapy_dripper_lab.training.prepare import Example

WIDTH = 64
LAYERS = 5
TAG_WIDTH = 6
"""Size of a tag's embedding."""
CLIP = 5.0
"""Features are clipped at this many standard deviations from the mean."""
EPOCHS = 6
PAGES_TOGETHER = 12
MOST_BLOCKS = 1_500
"""A longer page is cropped, at a random place."""
RATE = 2e-3
WARM_UP = 0.12
"""Share of the steps over which the learning rate rises."""
DECAY = 0.01
AVERAGED = 0.998
"""The weights are the exponential moving average of those of all steps. This is its decay at the end."""
DROPOUT, INPUT_DROPOUT, BLOCK_DROPOUT, NAME_DROPOUT, PAGE_NAME_DROPOUT = 0.3, 0.1, 0.15, 0.3, 0.1
CROPPED = 0.2
"""Share of the pages of which only one half is seen, so that labels do not depend on how long a page goes on."""
DECLARED_DROPOUT = 0.3
"""Share of the pages whose declared facts are dropped."""
PLACE_DROPOUT = 0.7
"""Share of the pages of which no place is seen: how far a block is from the start and the end of its page and of the
elements around it, from headings, and from declared facts."""
PLACES = (
    *("index", "words_before", "words_after", "headings_before", "since_heading", "words_since_heading", "to_h1"),
    *("to_name", "declared_before", "declared_after", "since_long", "until_long"),
)
"""The features that are places, in addition to those that end in ``_start`` and ``_end``."""
F1_LOSS, TYPE_LOSS = 0.5, 0.1
"""Weights of the page's soft F1 and of its type in the loss, in addition to the cross-entropy of its blocks."""
SMOOTH_WORDS = 10.0
"""Words added to numerator and denominator of the soft F1, to reduce the influence of pages with little main
content."""

TAG_COUNT = len(TAGS) + 2
"""Number of tags, including "no tag" and "beyond the edge of the page"."""


def tag_columns(names: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return the indexes of the numeric features, and of those that are tags."""
    tags = [i for i, name in enumerate(names) if name in TAG_FEATURES]
    return [i for i in range(len(names)) if i not in set(tags)], tags


@dataclass(frozen=True, slots=True, eq=False)
class Sequences:
    """The n blocks of some pages, one page after the other."""

    x: Tensor
    """Scaled numeric features, shape (n, numbers)."""
    tags: Tensor
    """Shape (n, tag features)."""
    sizes: Tensor
    """Number of blocks of each page."""


class Network(nn.Module):
    """Maps the blocks of pages to logits, and each page to the logits of its type."""

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
        self.middle = nn.Linear(2 * WIDTH, WIDTH)
        self.page = nn.Linear(3 * WIDTH, WIDTH)
        self.last = nn.Linear(2 * WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, 1)
        self.types = nn.Linear(WIDTH, len(PAGE_TYPES))
        self.dropout, self.input_dropout = nn.Dropout(DROPOUT), nn.Dropout(INPUT_DROPOUT)

    def scaled(self, values: Tensor) -> Tensor:
        """Return numeric features in standard deviations from their means."""
        return ((values - self.mean) / self.deviation).clamp(-CLIP, CLIP)

    def split(self, matrix: np.ndarray) -> tuple[Tensor, Tensor]:
        """Split a matrix of features into scaled numbers and tags. A missing neighbour becomes tag 0."""
        numbers = torch.from_numpy(np.ascontiguousarray(matrix[:, self.numbers]))
        return self.scaled(numbers), torch.from_numpy(matrix[:, self.tags].astype(np.int64) + 1)

    def forward(self, pages: Sequences) -> tuple[Tensor, Tensor]:
        """Return the logits of the blocks, of shape (n,), and those of the page types, of shape (pages, types)."""
        n, count = len(pages.x), len(pages.sizes)
        ends = pages.sizes.cumsum(0)
        number = torch.repeat_interleave(torch.arange(count), pages.sizes)
        first, last, place = (ends - pages.sizes)[number], ends[number], torch.arange(n)

        def total(values: Tensor) -> Tensor:
            return values.new_zeros(count, values.shape[1]).index_add(0, number, values)

        def mean_and_most(h: Tensor) -> list[Tensor]:
            least = h.new_full((count, h.shape[1]), -torch.inf)
            most = least.scatter_reduce(0, number.unsqueeze(-1).expand_as(h), h, "amax")
            return [total(h) / pages.sizes.unsqueeze(-1), most]

        entered = torch.cat([self.input_dropout(pages.x), self.embedding(pages.tags).flatten(1)], dim=-1)
        h = self.dropout(functional.relu(self.enter(entered)))
        h = h + functional.relu(self.mix(h))
        for i, (norm, layer) in enumerate(zip(self.norms, self.layers, strict=True)):
            reach = 2**i
            padded = torch.cat([norm(h), h.new_zeros(1, h.shape[1])])
            before = torch.where(place - reach >= first, place - reach, n)
            after = torch.where(place + reach < last, place + reach, n)
            seen = torch.cat([padded[before], padded[:n], padded[after]], dim=-1)
            h = h + self.dropout(functional.relu(layer(seen)))
            if i == len(self.layers) // 2:
                h = h + functional.relu(self.middle(torch.cat(mean_and_most(h), dim=-1)))[number]
        gate = torch.sigmoid(h[:, :1])  # the network can use its first channel to say what counts
        chosen = total(h * gate) / total(gate)
        page = functional.relu(self.page(torch.cat([*mean_and_most(h), chosen], dim=-1)))
        last_layer = functional.relu(self.last(torch.cat([h, page[number]], dim=-1)))
        logits: Tensor = self.out(self.dropout(last_layer)).squeeze(-1)
        return logits, self.types(page)


@dataclass(frozen=True, slots=True, eq=False)
class _Page:
    """An example as tensors with n rows."""

    x: Tensor
    tags: Tensor
    main: Tensor
    weight: Tensor
    words: Tensor
    share: float
    kind: int
    """Number of the page type; -1 if it is unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class _Dropped:
    """The columns of numeric features that are dropped together."""

    names: Tensor
    words: Tensor
    places: Tensor
    declared: Tensor
    absent: Tensor
    """The values of ``declared`` on a page that declares nothing."""


def fit_network(examples: Sequence[Example], *, seed: int = 0) -> Network:
    """Fit a network on examples, in one thread. The same seed and data give the same network."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _fit(examples, seed)
    finally:
        torch.set_num_threads(threads)


def predict_network(network: Network, example: Example) -> np.ndarray:
    """Return the probability of each block of an example to be main, float32 of shape (n,)."""
    with torch.no_grad():
        logits, _ = network(Sequences(*network.split(example.matrix), torch.tensor([len(example.matrix)])))
        return torch.sigmoid(logits).numpy()


def _fit(examples: Sequence[Example], seed: int) -> Network:
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    names = examples[0].features.names
    numbers, _ = tag_columns(names)
    network = Network(names, *_scale(examples, numbers))
    dropped = _dropped(network, names)
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    averaged = torch.optim.swa_utils.AveragedModel(network, avg_fn=_average)
    steps = EPOCHS * math.ceil(len(examples) / PAGES_TOGETHER)
    step = 0
    network.train()
    for _ in range(EPOCHS):
        order = rng.permutation(len(examples))
        for start in range(0, len(order), PAGES_TOGETHER):
            for group in optimizer.param_groups:
                group["lr"] = RATE * min(1.0, (step + 1) / (WARM_UP * steps)) * (1 - step / steps)
            some_of_all = order[start : start + PAGES_TOGETHER].tolist()
            # The tensors of all pages would take gigabytes.
            parts = [_part(_page(network, examples[i]), rng, dropped) for i in some_of_all]
            some = [page for page in parts if len(page.x)]
            step += 1
            if not some:  # the last pages of an epoch may be a single one of which no block is left
                continue
            loss = _loss(network, some)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            averaged.update_parameters(network)
    fitted: Network = averaged.module
    fitted.eval()
    return fitted


def _scale(examples: Sequence[Example], numbers: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the deviation of the numeric features. All blocks together would take gigabytes."""
    count = sum(len(e.matrix) for e in examples)
    mean = sum(e.matrix[:, numbers].sum(0, dtype=np.float64) for e in examples) / count
    squares = sum(((e.matrix[:, numbers] - mean) ** 2).sum(0) for e in examples)
    return np.asarray(mean), np.sqrt(squares / count) + 1e-3


def _average(mean: Tensor, weights: Tensor, steps: int | Tensor) -> Tensor:
    """Return the moving average of weights after some steps. It forgets the first steps faster than later ones."""
    decay = min(AVERAGED, (1 + int(steps)) / (10 + int(steps)))
    return torch.lerp(weights, mean, decay)


def _page(network: Network, example: Example) -> _Page:
    x, tags = network.split(example.matrix)
    columns = example.main, example.weight, example.words
    main, weight, words = (torch.from_numpy(column.astype(np.float32)) for column in columns)
    kind = PAGE_TYPES.index(example.page_type) if example.page_type in PAGE_TYPES else -1
    return _Page(x, tags, main, weight, words, example.share, kind)


def _dropped(network: Network, names: Sequence[str]) -> _Dropped:
    known = [names[i] for i in network.numbers]

    def columns(*prefixes: str) -> Tensor:
        return torch.tensor([i for i, name in enumerate(known) if name.startswith(prefixes)], dtype=torch.long)

    places = [i for i, name in enumerate(known) if name in PLACES or name.endswith(("_start", "_end"))]
    declared = torch.tensor([i for i, name in enumerate(known) if name in ABSENT], dtype=torch.long)
    values = torch.tensor([ABSENT.get(name, 0.0) for name in known], dtype=torch.float32)
    return _Dropped(
        columns("near:", "far:"), columns("words:"), torch.tensor(places), declared, network.scaled(values)[declared]
    )


def _part(page: _Page, rng: np.random.Generator, dropped: _Dropped) -> _Page:
    """Return a random part of a page: cropped, with blocks left out, and features of names, words and places set to
    their mean."""
    n = len(page.x)
    size = min(n // 2 if rng.random() < CROPPED else n, MOST_BLOCKS)
    start = int(rng.integers(0, n - size + 1))
    kept = torch.from_numpy(np.flatnonzero(rng.random(size) > BLOCK_DROPOUT) + start)
    x = page.x[kept]
    if rng.random() < PAGE_NAME_DROPOUT:
        x[:, dropped.names] = 0
    for columns in (dropped.names, dropped.words):
        rows = torch.from_numpy(np.flatnonzero(rng.random(len(x)) < NAME_DROPOUT))
        x[rows[:, None], columns] = 0
    if rng.random() < DECLARED_DROPOUT:
        x[:, dropped.declared] = dropped.absent
    if rng.random() < PLACE_DROPOUT:
        x[:, dropped.places] = 0
    return _Page(x, page.tags[kept], page.main[kept], page.weight[kept], page.words[kept], page.share, page.kind)


def _loss(network: Network, pages: Sequence[_Page]) -> Tensor:
    sizes = torch.tensor([len(page.x) for page in pages])
    number = torch.repeat_interleave(torch.arange(len(pages)), sizes)
    main, weight, words = (torch.cat([getattr(p, name) for p in pages]) for name in ("main", "weight", "words"))
    share, kind = torch.tensor([page.share for page in pages]), torch.tensor([page.kind for page in pages])
    logits, types = network(Sequences(torch.cat([p.x for p in pages]), torch.cat([p.tags for p in pages]), sizes))
    chance = torch.sigmoid(logits)
    blocks = functional.binary_cross_entropy_with_logits(logits, main, reduction="none")

    def by_page(values: Tensor) -> Tensor:
        return torch.zeros(len(pages)).index_add(0, number, values)

    both, either = by_page(chance * main * words), by_page(chance * words) + by_page(main * words)
    soft_f1 = (2 * both + SMOOTH_WORDS) / (either + SMOOTH_WORDS)
    known = kind >= 0
    of_types = functional.cross_entropy(types[known], kind[known]) if known.any() else torch.zeros(())
    total: Tensor = (
        (blocks * weight).sum() / weight.sum().clamp(min=1e-9)
        + F1_LOSS * ((1 - soft_f1) * share).sum() / share.sum()
        + TYPE_LOSS * of_types
    )
    return total
