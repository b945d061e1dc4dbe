"""Formulas: finding them, and LaTeX from whatever they are written in."""
