"""Measure extractions against ground truth."""
