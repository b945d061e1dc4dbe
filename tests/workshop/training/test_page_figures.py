"""Figures of the model's predictions for whole pages."""

from __future__ import annotations

import math

from scrapy_dripper.workshop.training.page_figures import PageFigures, Told


def told(quality: float, f1: float, *, other: float = 0.5, kind: str = "article", true: str = "article") -> Told:
    return Told("set", kind, true, quality, f1, other)


def test_quality_beside_the_f1_that_it_foretells() -> None:
    """Bins have their means. Pages below a threshold count with the F1 of the other extractor."""
    figures = PageFigures([told(0.4, 0.2, other=0.8), told(0.96, 0.9), told(0.98, 1.0), told(1.0, 0.95)])

    assert 0.9 < figures.correlation <= 1
    lines = [line.split() for line in figures.text("peer").splitlines()]
    assert ["0", "to", "0.5", "1", "0.400", "0.200"] in lines
    assert ["0.95", "to", "1", "3", "0.980", "0.950"] in lines  # 1 is in the last bin
    assert ["0", "(off)", "0", "0.7625"] in lines
    assert ["0.5", "1", "0.200", "0.800", "0.9125"] in lines


def test_page_types() -> None:
    """A page whose type the model does not know counts neither as right nor as wrong."""
    pages = [told(0.9, 0.9), told(0.9, 0.9, true="forum"), told(0.9, 0.9, kind="forum", true="forum")]
    figures = PageFigures([*pages, told(0.9, 0.9, true="mixed")])

    assert math.isclose(figures.accuracy, 2 / 3)
    text = figures.text("peer", markdown=True)
    assert "| forum | 2 | 1 | 0.500 | 1.000 |" in text
    assert "| article | 1 | 2 | 1.000 | 0.500 |" in text


def test_no_pages() -> None:
    """Without pages the figures say so and raise nothing."""
    figures = PageFigures([])

    assert (figures.correlation, figures.accuracy) == (0, 0)
    assert "0 (off)" in figures.text("peer")
