"""The settings of the other tests, commands that run in this process, and an endpoint of a language model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tests.conftest  # noqa: F401 (the settings of Hypothesis)
from lab.tests.fake_endpoint import FakeEndpoint
from scrapy_dripper_lab import endpoint
from tests.cli.conftest import here, run  # noqa: F401


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEndpoint]:
    """An endpoint that gives good answers until it is told otherwise.

    Requests go straight to it, and waiting for a second attempt takes no time.
    """
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(endpoint.time, "sleep", lambda seconds: None)
    server = FakeEndpoint()
    yield server
    server.close()
