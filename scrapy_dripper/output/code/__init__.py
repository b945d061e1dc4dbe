"""Code blocks: detection, lines and language."""
