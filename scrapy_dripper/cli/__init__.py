"""The command line, ``scrapy-dripper COMMAND ...``: a module for each command, with all that only it does."""

from scrapy_dripper.cli.entry import main

__all__ = ["main"]
