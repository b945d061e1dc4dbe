"""Commands that run in this process, and a page to name on their command line."""

from tests.cli.conftest import here, run  # noqa: F401
from tests.cli.test_extract import tides  # noqa: F401
