"""Trained models, one folder each: weights, manifest.json and a model card."""
