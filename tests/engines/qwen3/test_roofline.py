"""The documented figures for untested GPUs are computed, and the computation satisfies basic constraints."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from scrapy_dripper.engines.qwen3.cost import Rule

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def roofline() -> ModuleType:
    """The module, which is among the scripts."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return importlib.import_module("roofline")
    finally:
        sys.path.pop(0)


def test_a_gpu_that_waits_for_one_core(roofline: ModuleType) -> None:
    """It is busy as long as the core can feed it, and always busy with many cores."""
    gpu = [0.010] * 400

    assert roofline.busy(gpu, 0.040, 1, 2, 8) == pytest.approx(0.25, abs=0.01)
    assert roofline.busy(gpu, 0.040, 2, 3, 8) == pytest.approx(0.5, abs=0.01)
    assert roofline.busy(gpu, 0.040, 8, 9, 8) > 0.95
    assert roofline.busy(gpu, 0.0001, 1, 2, 8) > 0.99


def test_two_cores_keep_an_h200_busy(roofline: ModuleType) -> None:
    """This assumes 45 % of its peak and the lengths of real pages."""
    assert roofline.busy_of(2) >= 0.9 > roofline.busy_of(1)


def test_a_pass_takes_no_less_than_any_of_its_parts(roofline: ModuleType) -> None:
    """Reading the weights limits passes with few tokens, and arithmetic those with many."""
    device = roofline.Device("one", flops=1e12, bandwidth=0.1e12)

    assert roofline.seconds(device, 1.0, 1) == pytest.approx(2 * roofline.SHAPE.weights / 0.1e12, rel=0.01)
    assert roofline.seconds(device, 1.0, 8192) == pytest.approx(roofline.SHAPE.flops(8192) / 1e12)


def test_windows_cost_less_or_there_are_none(roofline: ModuleType) -> None:
    """Short pages and those of middle length stay whole. Every token of a long page is in some window."""
    assert roofline.in_windows(3000, 600) == [(3000, 600)]
    assert roofline.in_windows(8000, 600) == [(8000, 600)] != roofline.in_windows(8000, 600, Rule(6000))
    assert roofline.in_windows(30_000, 1800, None) == [(30_000, 1800)]
    parts = roofline.in_windows(30_000, 1800)

    assert len(parts) > 4
    assert sum(prompt - roofline.PROMPT for prompt, _ in parts) > 30_000 - roofline.PROMPT
    assert sum(answer for _, answer in parts) > 1800
    assert all(prompt + answer <= 6000 for prompt, answer in parts)


def test_the_figures_of_the_rule(roofline: ModuleType) -> None:
    """The default divides a quarter of the development pages, and saves 28 % of the operations of all pages."""
    pages = [[page] for page in roofline.lengths()]
    divided = [roofline.in_windows(*page) for (page,) in pages]

    assert sum(len(parts) > 1 for parts in divided) / len(pages) == pytest.approx(0.26, abs=0.005)
    assert roofline.teraflops(divided) / roofline.teraflops(pages) == pytest.approx(0.72, abs=0.005)


def test_the_tables_of_the_documentation(roofline: ModuleType) -> None:
    """`python benchmarks/gpu.py --simulate` prints the same tables."""
    guide = (ROOT / "docs" / "guides" / "gpu.md").read_text(encoding="utf-8")
    kept = (ROOT / "benchmarks" / "results" / "gpu-model.txt").read_text(encoding="utf-8")

    assert roofline.markdown(roofline.speeds()) in guide
    assert roofline.markdown(roofline.rules()) in guide
    assert roofline.simulated() in kept
    assert "has run on a GPU" in kept
