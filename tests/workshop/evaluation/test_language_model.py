"""A language model behind an endpoint as a peer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.cli import main
from scrapy_dripper.workshop import endpoint as endpoint_module
from scrapy_dripper.workshop.endpoint import EndpointError
from scrapy_dripper.workshop.evaluation.peers import LanguageModel, ModelOptions
from tests.fake_endpoint import FakeEndpoint, Reply, Request, chat
from tests.workshop.evaluation.test_evaluate_command import data, figures, held_out

__all__ = ["data", "held_out"]

PAGE = b"<html><head><script>secret()</script><style>p {}</style></head><body><!-- no --><p>Tides</p></body></html>"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEndpoint]:
    """An endpoint that returns the text it was asked for. Retries do not wait."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(endpoint_module.time, "sleep", lambda seconds: None)
    fake = FakeEndpoint()
    fake.script = [usage("Tides", 900, 100)]
    yield fake
    fake.close()


@pytest.fixture
def options(fake: FakeEndpoint) -> ModelOptions:
    return ModelOptions(fake.url, "small", timeout=5)


def usage(text: str, asked: int, answered: int) -> Reply:
    found = json.loads(chat(text).body)
    return Reply(body=json.dumps({**found, "usage": {"prompt_tokens": asked, "completion_tokens": answered}}).encode())


def test_it_gets_the_page_and_its_text_is_what_it_says(fake: FakeEndpoint, options: ModelOptions) -> None:
    """The model gets HTML without scripts, styles and comments. Its tokens are counted and priced."""
    reply = LanguageModel(replace(options, price=(2, 10)))(PAGE)

    assert (reply.text, reply.tokens) == ("Tides", 1_000)
    assert reply.cost == pytest.approx((900 * 2 + 100 * 10) / 1e6)
    assert reply.seconds > 0
    assert fake.requests[0].payload["model"] == "small"
    assert fake.requests[0].question.endswith("<html><head></head><body><p>Tides</p></body></html>")


def test_only_the_first_characters_are_sent(fake: FakeEndpoint, options: ModelOptions) -> None:
    LanguageModel(options)(b"<p>" + b"x" * 100_000)

    assert 4_900 < fake.requests[0].question.count("x") < 5_000


def test_tokens_are_guessed_where_none_are_reported(fake: FakeEndpoint, options: ModelOptions) -> None:
    fake.script = [chat("x" * 41)]
    reply = LanguageModel(options)(PAGE)

    assert 11 + len(fake.requests[0].question) // 4 < reply.tokens < 200


def test_it_does_not_wait_for_ever(fake: FakeEndpoint, options: ModelOptions) -> None:
    fake.script = [Reply(hang=True)]
    with pytest.raises(EndpointError, match=r"did not answer within 0.1 seconds"):
        LanguageModel(replace(options, timeout=0.1))(PAGE)


def test_the_key_is_in_no_message() -> None:
    assert "s3cret" not in repr(ModelOptions("http://x/v1", "small", key="s3cret"))


# ---------------------------------------------------------------------------- the command
def run(*arguments: object) -> int:
    return main(["evaluate", *map(str, arguments), "--resamples", "50", "--jobs", "1", "--study"])


def test_evaluate(
    data: Path, held_out: Path, tmp_path: Path, fake: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """A language model is a system like any other, with tokens and their price."""
    pytest.importorskip("rapidfuzz")
    monkeypatch.setenv("KEY", "s3cret")
    fake.script = [Reply(400), *[lambda request: usage(text_of(request), 400, 100)] * 7]
    out = tmp_path / "out.json"
    wanted = [data, "--predictions", held_out, "--endpoint", fake.url, "--endpoint-model", "small", "--json", out]
    wanted += ["--endpoint-price", "1,2", "--api-key-env", "KEY"]

    assert run(*wanted, "--endpoint-requests", 7) == 2
    assert "8 pages are more than --endpoint-requests 7" in capsys.readouterr().err
    assert run(*wanted) == 0

    tables = figures(out)["tables"]
    system, study = tables["Systems"][1], tables["Measures of Yadav's study, 0 to 5"][1]
    assert (system["system"], system["errors"]) == ("endpoint small", 1)
    assert system["R"] == 7 / 8
    assert study["tokens"] == 500
    assert study["cost"] == pytest.approx(0.0006)
    printed = capsys.readouterr()
    assert "0.000600" in printed.out
    assert "s3cret" not in printed.out + printed.err + out.read_text()
    assert fake.requests[0].headers["Authorization"] == "Bearer s3cret"
    assert len(fake.requests) == 8


def text_of(request: Request) -> str:
    """Return the paragraphs of the page in a question."""
    return "\n".join(part.partition("</p>")[0] for part in request.question.split("<p>")[1:])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "--endpoint needs --endpoint-model NAME"),
        (["--endpoint-price", "1"], "expected two prices of a million tokens, such as 0.15,0.6 (got '1')"),
        (["--endpoint-model", "x", "--api-key-env", "NO_SUCH"], "it is not set"),
    ],
)
def test_wrong_use(more: list[str], message: str, data: Path, held_out: Path, capsys: Any) -> None:
    try:
        code = run(data, "--predictions", held_out, "--endpoint", "http://127.0.0.1:9/v1", *more)
    except SystemExit as end:
        code = int(end.code or 0)

    assert code == 2
    assert message in capsys.readouterr().err


def test_a_wrong_address(data: Path, held_out: Path, capsys: Any) -> None:
    assert run(data, "--predictions", held_out, "--endpoint", "ftp://x", "--endpoint-model", "x") == 2
    assert "--endpoint expects a URL such as http://localhost:8000/v1" in capsys.readouterr().err
