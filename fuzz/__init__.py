"""Fuzz complete extractions: random damage to real pages, and checks that every extraction must pass."""
