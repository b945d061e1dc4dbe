"""Metrics and runs against ground truth."""
