"""Formulas: detection, and conversion to LaTeX."""
