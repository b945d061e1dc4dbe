"""A language model behind an endpoint as a peer: what it is asked, its budget and its cache."""

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
from scrapy_dripper.workshop.evaluation.language_model import BudgetError, LanguageModel, ModelOptions
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
def options(fake: FakeEndpoint, tmp_path: Path) -> ModelOptions:
    return ModelOptions(fake.url, "small", tmp_path / "deep" / "answers.sqlite", timeout=5)


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


def test_an_answer_is_kept(fake: FakeEndpoint, options: ModelOptions) -> None:
    """This holds for several runs. Other models and pages have their own answers."""
    first = LanguageModel(options)(PAGE)

    assert LanguageModel(options)(PAGE) == first
    assert len(fake.requests) == 1
    LanguageModel(options)(PAGE.replace(b"Tides", b"Sand"))
    LanguageModel(replace(options, model="large"))(PAGE)
    assert len(fake.requests) == 3


def test_the_budget_of_requests_holds_for_all_processes(fake: FakeEndpoint, options: ModelOptions) -> None:
    """Failed requests count as well. Answers from the cache do not."""
    one, other = (LanguageModel(replace(options, requests=2)) for _ in range(2))
    one(PAGE)
    fake.script = [Reply(400)]
    with pytest.raises(EndpointError, match="HTTP 400"):
        other(PAGE.replace(b"Tides", b"Sand"))

    with pytest.raises(BudgetError, match=r"2 requests and 1,000 tokens .* raise --endpoint-requests"):
        one(PAGE.replace(b"Tides", b"Sea"))
    assert one(PAGE).text == "Tides"
    assert len(fake.requests) == 2


def test_the_budget_of_tokens(fake: FakeEndpoint, options: ModelOptions) -> None:
    model = LanguageModel(replace(options, tokens=1_500))
    model(PAGE)
    model(PAGE.replace(b"Tides", b"Sand"))

    with pytest.raises(BudgetError):
        model(PAGE.replace(b"Tides", b"Sea"))


def test_it_does_not_wait_for_ever(fake: FakeEndpoint, options: ModelOptions) -> None:
    fake.script = [Reply(hang=True)]
    with pytest.raises(EndpointError, match=r"did not answer within 0.1 seconds"):
        LanguageModel(replace(options, timeout=0.1))(PAGE)


def test_the_key_is_in_no_message() -> None:
    assert "s3cret" not in repr(ModelOptions("http://x/v1", "small", Path("x"), key="s3cret"))


# ---------------------------------------------------------------------------- the command
def run(*arguments: object) -> int:
    return main(["evaluate", *map(str, arguments), "--resamples", "50", "--jobs", "1", "--study"])


def test_evaluate(
    data: Path, held_out: Path, tmp_path: Path, fake: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """A language model is a system like any other, with tokens and their price. A page over the budget is an error."""
    pytest.importorskip("rapidfuzz")
    monkeypatch.setenv("KEY", "s3cret")
    fake.script = [lambda request: usage(text_of(request), 400, 100)]
    out = tmp_path / "out.json"
    wanted = [data, "--predictions", held_out, "--endpoint", fake.url, "--endpoint-model", "small", "--json", out]
    wanted += ["--endpoint-cache", tmp_path / "answers", "--endpoint-price", "1,2", "--api-key-env", "KEY"]

    assert run(*wanted, "--endpoint-requests", 6) == 0

    tables = figures(out)["tables"]
    system, study = tables["Systems"][1], tables["Measures of Yadav's study, 0 to 5"][1]
    assert (system["system"], system["errors"]) == ("endpoint small", 2)
    assert system["R"] == 6 / 8
    assert study["tokens"] == 500
    assert study["cost"] == pytest.approx(0.0006)
    printed = capsys.readouterr()
    assert "0.000600" in printed.out
    assert "s3cret" not in printed.out + printed.err + out.read_text()
    assert fake.requests[0].headers["Authorization"] == "Bearer s3cret"

    assert run(*wanted) == 0
    assert figures(out)["tables"]["Systems"][1]["errors"] == 0
    assert len(fake.requests) == 8


def text_of(request: Request) -> str:
    """Return the paragraphs of the page in a question."""
    return "\n".join(part.partition("</p>")[0] for part in request.question.split("<p>")[1:])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "--endpoint needs --endpoint-model NAME and --endpoint-cache FILE"),
        (["--endpoint-model", "x"], "--endpoint needs --endpoint-model NAME and --endpoint-cache FILE"),
        (["--endpoint-model", "x", "--endpoint-cache", "."], "--endpoint-cache expects a file for SQLite"),
        (["--endpoint-price", "1"], "expected two prices of a million tokens, such as 0.15,0.6 (got '1')"),
        (["--endpoint-model", "x", "--endpoint-cache", "c", "--api-key-env", "NO_SUCH"], "it is not set"),
    ],
)
def test_wrong_use(more: list[str], message: str, data: Path, held_out: Path, capsys: Any) -> None:
    try:
        code = run(data, "--predictions", held_out, "--endpoint", "http://127.0.0.1:9/v1", *more)
    except SystemExit as end:
        code = int(end.code or 0)

    assert code == 2
    assert message in capsys.readouterr().err


def test_a_wrong_address(data: Path, held_out: Path, tmp_path: Path, capsys: Any) -> None:
    more = ["--endpoint-model", "x", "--endpoint-cache", tmp_path / "c"]
    assert run(data, "--predictions", held_out, "--endpoint", "ftp://x", *more) == 2
    assert "--endpoint expects a URL such as http://localhost:8000/v1" in capsys.readouterr().err
