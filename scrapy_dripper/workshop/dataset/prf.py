"""Precision, recall and F1 of bags of words."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple


class PRF(NamedTuple):
    """Precision, recall and their harmonic mean, each 0 to 1."""

    precision: float
    recall: float
    f1: float


def bag_prf(predicted: Counter[str], wanted: Counter[str]) -> PRF:
    """Compare two bags of words. All three values are 1 if both are empty, and 0 if one of them is."""
    if not predicted or not wanted:
        same = float(not predicted and not wanted)
        return PRF(same, same, same)
    overlap = (predicted & wanted).total()
    precision, recall = overlap / predicted.total(), overlap / wanted.total()
    return PRF(precision, recall, 2 * precision * recall / (precision + recall) if overlap else 0.0)
