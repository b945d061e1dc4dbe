"""Code: its blocks, lines and language."""
