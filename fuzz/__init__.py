"""Fuzzing of the whole way of a page: random damage to real pages, and what must be true of every extraction."""
