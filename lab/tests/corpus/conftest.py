"""A page to name on a command line."""

from tests.cli.test_extract import tides  # noqa: F401
