"""Commands that run in this process."""

from tests.cli.conftest import here, run  # noqa: F401
