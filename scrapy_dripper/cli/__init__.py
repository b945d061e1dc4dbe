"""The command line, ``scrapy-dripper COMMAND ...``: a module for each command, imported when it is called."""

from scrapy_dripper.cli.entry import main

__all__ = ["main"]
