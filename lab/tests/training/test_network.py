"""The network of the first stage and its ONNX graph."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")  # the extra [train]
pytest.importorskip("lightgbm")

import onnxruntime
import torch

from lab.tests.training.test_training import QUICK, in_this_process, pages
from scrapy_dripper.engines.tagger.features import features
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.parse import parse
from scrapy_dripper_lab.training import network as networks
from scrapy_dripper_lab.training.__main__ import main
from scrapy_dripper_lab.training.fit import fit_trees
from scrapy_dripper_lab.training.graphs import blocks_graph
from scrapy_dripper_lab.training.network import fit_network, predict_network
from scrapy_dripper_lab.training.prepare import Example

__all__ = ["in_this_process", "pages"]


def example(seed: int) -> Example:
    """Return a made-up page whose long blocks are main."""
    rng = random.Random(seed)
    lengths = [rng.choice([2, 30]) for _ in range(rng.randint(1, 40))]
    html = "".join(f"<div class=x{n}>{'word ' * n}{i}</div>" for i, n in enumerate(lengths))
    batch = features([cut(parse(html))])
    main = np.array([n > 2 for n in lengths])
    return Example(str(seed), batch, main, np.ones(len(main), dtype=np.float32), batch.size)


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return [example(seed) for seed in range(100)]


def test_a_network_learns(examples: list[Example]) -> None:
    network = fit_network(examples)
    unseen = [example(seed) for seed in range(1_000, 1_010)]
    right = np.concatenate([(predict_network(network, e) > 0.5) == e.main for e in unseen])

    assert right.mean() > 0.9


def test_the_same_seed_gives_the_same_network(examples: list[Example]) -> None:
    one, two, other = (fit_network(examples[:30], seed=seed) for seed in (3, 3, 4))

    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(one.out.weight, other.out.weight)


def test_a_step_without_blocks_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last step of an epoch may have a single page with one block, which is left out at random."""
    little = next(e for e in map(example, range(500)) if len(e.main) == 1)
    monkeypatch.setattr(networks, "EPOCHS", 40)
    weights = fit_network([little]).out.weight

    assert bool(torch.isfinite(weights).all())


def test_a_page_counts_by_its_weight(examples: list[Example]) -> None:
    """Only relative weights count. Doubling the weights of all pages changes nothing, but doubling some of them
    does.
    """

    def weights(shares: list[float]) -> torch.Tensor:
        some = [
            replace(e, share=share, weight=e.weight * np.float32(share))
            for e, share in zip(examples, shares, strict=False)
        ]
        return fit_network(some).out.weight

    plain = weights([1.0] * 12)
    assert torch.equal(weights([2.0] * 12), plain)
    assert not torch.equal(weights([1.0] * 6 + [4.0] * 6), plain)


def test_the_graph_answers_as_its_parts_do(examples: list[Example]) -> None:
    """Pages may be shorter than the reach of the convolutions."""
    network, trees = fit_network(examples[:30]), fit_trees(examples)
    data = blocks_graph(trees, network, 0.4, examples[0].matrix.shape[1])
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for e in (example(seed) for seed in range(2_000, 2_020)):
        (found,) = session.run(None, {"features": e.matrix})
        expected = 0.6 * trees.predict(e.matrix) + 0.4 * predict_network(network, e)
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.usefixtures("pages")
def test_training_with_a_network() -> None:
    """The command trains a model folder with a network."""
    assert main(["pages", "--out", "model", "--no-measure", *QUICK[:-1]]) == 0

    assert Path("model/blocks.onnx").is_file()
    assert '"torch"' in Path("model/manifest.json").read_text()
