"""A language model behind an endpoint as a peer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.tests.evaluation.test_evaluate_command import data, figures, held_out
from lab.tests.fake_endpoint import FakeEndpoint, Reply, Request, chat, good
from scrapy_dripper.cli import main
from scrapy_dripper.inspection.answers import AnswerError
from scrapy_dripper_lab.endpoint import Endpoint, EndpointError
from scrapy_dripper_lab.evaluation.language_models import LanguageModel, Verdict, judge, judged_table
from tests.cli.conftest import Run

__all__ = ["data", "held_out"]

PAGE = b"<html><head><script>secret()</script><style>p {}</style></head><body><!-- no --><p>Tides</p></body></html>"


@pytest.fixture
def model(fake: FakeEndpoint) -> LanguageModel:
    fake.script = [usage("Tides", 900, 100)]
    return LanguageModel(Endpoint(fake.url, "small", timeout=5))


def usage(text: str, asked: int, answered: int) -> Reply:
    found = json.loads(chat(text).body)
    return Reply(body=json.dumps({**found, "usage": {"prompt_tokens": asked, "completion_tokens": answered}}).encode())


def test_it_gets_the_page_and_its_text_is_what_it_says(fake: FakeEndpoint, model: LanguageModel) -> None:
    """The model gets HTML without scripts, styles and comments. Its tokens are counted and priced, or guessed if they
    are not reported.
    """
    reply = replace(model, price=(2, 10))(PAGE)

    assert (reply.text, reply.tokens) == ("Tides", 1_000)
    assert reply.cost == pytest.approx((900 * 2 + 100 * 10) / 1e6)
    assert reply.seconds > 0
    assert fake.requests[0].payload["model"] == "small"
    assert fake.requests[0].question.endswith("<html><body><p>Tides</p></body></html>")

    fake.script = [chat("x" * 41)]
    reply = model(PAGE.replace(b"Tides", "\u6f6e".encode() * 40))
    question = fake.requests[1].question
    assert reply.tokens == 11 + -(-len(question) // 4), "in characters, whatever JSON makes of them"


LONG_HEAD = "<html><head><meta content='" + "x" * 9_000 + "'><title>T</title></head><body>"
SITE = f"{LONG_HEAD}<nav><a href='/'>Home</a></nav><main><h1>Tides</h1><p>Twice a\n day.</p></main></body></html>"


@pytest.mark.parametrize(
    ("form", "sent"),
    [
        ("raw-html", '<html><body><nav><a href="/">Home</a></nav><main><h1>Tides</h1>'),
        ("raw-text", "\n\nHome\nTides\nTwice a day."),
        ("tag-depth", "\n\n1 nav 2 Home\n2 h1 3 Tides\n3 p 3 Twice a day."),
        ("blocks", '<h1 _item_id="2">Tides</h1>\n<p _item_id="3">Twice a day.</p>'),
    ],
)
def test_appendix_b_the_model_reads_the_text_and_not_the_head(
    form: str, sent: str, fake: FakeEndpoint, model: LanguageModel
) -> None:
    """A head of 9,000 characters leaves room for the page. With blocks, the answer has labels, as in the
    comparison of the Dripper paper (A.9), and with tag-depth the numbers of lines, as in the paper on SORE (appendix
    B). The text is then that of the main blocks.
    """
    answers = {"blocks": good, "tag-depth": chat("2, 3")}
    fake.script = [answers.get(form, chat("Tides\nTwice a day."))]
    reply = replace(model, prompt=form)(SITE.encode())

    assert sent in fake.requests[0].payload["messages"][-1]["content"]
    assert reply.text == "Tides\nTwice a day."


@pytest.mark.parametrize(
    ("form", "answer"), [("raw-html", "Tides"), ("raw-text", "Tides"), ("tag-depth", "2"), ("blocks", None)]
)
def test_appendix_b_a_prompt_to_the_letter(
    form: str, answer: str | None, fake: FakeEndpoint, model: LanguageModel
) -> None:
    """Nothing of ours is said with it. Braces and what looks like a place in the page stay as they are."""
    fake.script = [good if answer is None else chat(answer)]
    site = SITE.replace("Twice", "{html} Twice")
    reply = replace(model, prompt=form, words='Extract {"core": 1}.\n\nInput:\n{html}\n\nOutput: text')(site.encode())
    [message] = fake.requests[0].payload["messages"]

    assert reply.text == ("Tides" if answer else "Tides\n{html} Twice a day.")
    assert message["content"].startswith('Extract {"core": 1}.\n\nInput:\n')
    assert message["content"].endswith("\n\nOutput: text")
    assert message["content"].count("{html} Twice") == 1


def test_appendix_figure_22_a_judge_asked_to_the_letter(fake: FakeEndpoint, model: LanguageModel) -> None:
    fake.script = [chat('{"score": 1}')]
    words = 'HTML: {html}\nA: {first}\nB: {second}\nReturn {"score": [1|2]}'
    assert judge(model.endpoint, PAGE, "{second} ours", "theirs", words) == Verdict(0.5, pytest.approx(7 / 13))
    ends = [request.question.partition("\nA: ")[2] for request in fake.requests]
    assert ends == [
        '{second} ours\nB: theirs\nReturn {"score": [1|2]}', 'theirs\nB: {second} ours\nReturn {"score": [1|2]}',
    ]  # fmt: skip


@pytest.mark.parametrize(("answer", "text"), [("", ""), ("3,1", "Home\nTwice a day."), ("4", None), ("none", None)])
def test_appendix_b_the_answer_is_a_list_of_lines(
    answer: str, text: str | None, fake: FakeEndpoint, model: LanguageModel
) -> None:
    """The text is then always of the page. A number that no line has is an error, and so are words alone."""
    fake.script = [chat(answer)]
    model = replace(model, prompt="tag-depth")
    if text is None:
        with pytest.raises(AnswerError, match="expected the numbers of lines, 1 to 3"):
            model(SITE.encode())
    else:
        assert model(SITE.encode()).text == text


def test_only_the_first_characters_are_sent(fake: FakeEndpoint, model: LanguageModel) -> None:
    """As many as were asked for, and as many whole blocks as fit."""
    model(b"<p>" + b"x" * 100_000)
    assert 4_900 < fake.requests[0].question.count("x") < 5_000

    replace(model, chars=70)(b"<p>" + b"x" * 100_000)
    assert 40 < fake.requests[1].question.count("x") <= 70

    fake.script = [good]
    reply = replace(model, chars=70, prompt="blocks")(b"<p>one two<p>three four<p>five six")
    assert reply.text == "one two\nthree four"


def test_a_model_without_an_answer(fake: FakeEndpoint, model: LanguageModel) -> None:
    """It is not waited for, and no message, which is written into the figures of a page, has the key."""
    with_key = LanguageModel(Endpoint(fake.url, "small", "s3cret", timeout=0.1), prompt="blocks")
    fake.script = [chat("You sent s3cret"), Reply(hang=True)]

    assert "s3cret" not in repr(with_key)
    with pytest.raises(AnswerError, match=r"got 'You sent \*\*\*'"):
        with_key(PAGE)
    with pytest.raises(EndpointError, match=r"did not answer within 0.1 seconds"):
        with_key(PAGE)


# ---------------------------------------------------------------------------- the judge
def prefers(word: str) -> Callable[[Request], Reply]:
    """Return a judge who prefers the text with a word, and the first one if both have it."""

    def judge(request: Request) -> Reply:
        page, first, second = request.question.split("\n\n")[-3:]
        assert json.loads(page)["HTML"].startswith("<html><body>")
        score = 1 if word in json.loads(first)["Text 1"] or word not in json.loads(second)["Text 2"] else 2
        return chat(f'```json\n{{"score": {score}, "name": "paragraph", "reason": "more"}}\n```')

    return judge


@pytest.mark.parametrize(
    ("ours", "other", "expected"),
    [
        ("Tides and more", "Tide", Verdict(1, 10 / 14)),
        ("Tide", "Tides and more", Verdict(0, -10 / 14)),
        ("none of both", "neither", Verdict(0.5, 5 / 12)),
        ("same", "same", Verdict(0.5, 0)),
    ],
)
def test_section_4_1_2_a_pair_is_judged_in_both_orders(
    ours: str, other: str, expected: Verdict, fake: FakeEndpoint, model: LanguageModel
) -> None:
    """If the place decides, nobody has won. The ratio of the lengths is that of MinerU-HTML, section 4.1.1. A judge
    without a valid answer gives no verdict.
    """
    fake.script = [prefers("more")]
    assert judge(model.endpoint, PAGE, ours, other) == pytest.approx(expected)
    assert len(fake.requests) == (0 if ours == other else 2)
    for answer in (chat("The first one."), chat('{"score": 3}'), Reply(400, b"no")):
        fake.script = [answer]
        assert judge(model.endpoint, PAGE, "a", "b") is None


def test_section_4_1_2_win_rates_by_length() -> None:
    """20 groups from -1 to 1; an undecided pair is half a win."""
    table = judged_table([Verdict(1, 1), Verdict(0.5, 0.95), Verdict(0, -0.44), None], "peer")
    assert [list(row.values()) for row in table.records()] == [
        ["-0.5 to -0.4", 1, 0, 0, 1, 0],
        ["+0.9 to +1.0", 2, 1, 1, 0, 0.75],
        ["all", 3, 1, 1, 1, 0.5],
    ]
    assert "Pages without a valid answer: 1" in table.note
    assert judged_table([None], "peer").rows == []


def test_evaluate_with_a_judge(data: Path, held_out: Path, tmp_path: Path, fake: FakeEndpoint, capsys: Any) -> None:
    """Two requests a page, none of them for its text. The half text and the empty one lose."""
    fake.script = [lambda request: prefers("link")(request)]
    out = tmp_path / "out.json"
    wanted = [data, "--predictions", held_out, "--judge", "html2text", "--endpoint", fake.url, "--json", out]
    assert run(*wanted, "--endpoint-model", "x", "--endpoint-requests", 15) == 2
    assert "16 requests are more than --endpoint-requests 15" in capsys.readouterr().err
    assert run(*wanted, "--endpoint-model", "x", "--csv", tmp_path / "out.csv") == 0

    found = figures(out)
    assert found["tables"]["Judged: ours against html2text"][-1]["win rate"] == 0
    assert [row["system"] for row in found["tables"]["Systems"]][1].startswith("html2text")
    assert [row["preferred"] for row in found["pages"] if row["system"] == "html2text"] == [0.0] * 8
    assert len(fake.requests) == 16
    fake.script = [Reply(400, b"no")]
    assert run(*wanted, "--endpoint-model", "x") == 0
    assert "Pages without a valid answer: 8." in capsys.readouterr().out


@pytest.mark.parametrize("judge", [["--judge", "html2text"], []])
def test_a_key_that_is_refused_ends_the_run(
    judge: list[str], data: Path, held_out: Path, fake: FakeEndpoint, capsys: Any
) -> None:
    """The other pages would be refused as well."""
    fake.script = [Reply(401, b"no")]
    assert run(data, "--predictions", held_out, *judge, "--endpoint", fake.url, "--endpoint-model", "x") == 2
    assert len(fake.requests) == 1
    assert "the endpoint refuses requests" in capsys.readouterr().err


# ---------------------------------------------------------------------------- the command
def run(*arguments: object) -> int:
    return main(["evaluate", *map(str, arguments), "--jobs", "1", "--study"])


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
    assert "8 requests are more than --endpoint-requests 7" in capsys.readouterr().err
    assert run(*wanted) == 0

    tables = figures(out)["tables"]
    system, study = tables["Systems"][1], tables["Measures of Yadav's study, 0 to 5"][2]
    assert (system["system"], system["errors"]) == ("endpoint small", 1)
    assert system["R"] == 7 / 8
    assert study["tokens"] == 500
    assert study["cost"] == pytest.approx(0.0006)
    printed = capsys.readouterr()
    assert "0.000600" in printed.out
    assert "s3cret" not in printed.out + printed.err + out.read_text()
    assert fake.requests[0].headers["Authorization"] == "Bearer s3cret"
    assert len(fake.requests) == 8


URL = "http://127.0.0.1:9/v1"


def text_of(request: Request) -> str:
    """Return the paragraphs of the page in a question."""
    return "\n".join(part.partition("</p>")[0] for part in request.question.split("<p>")[1:])


@pytest.mark.parametrize(
    ("url", "more", "message"),
    [
        (URL, [], "--endpoint needs --endpoint-model NAME"),
        (URL, ["--endpoint-model", "x", "--csv", "."], ". is a folder"),
        (URL, ["--endpoint-model", "x", "--endpoint-words", "no.txt"], "cannot read the prompt no.txt"),
        (URL, ["--endpoint-price", "1"], "expected two prices of a million tokens, such as 0.15,0.6 (got '1')"),
        (URL, ["--endpoint-model", "x", "--api-key-env", "NO_SUCH"], "it is not set"),
        ("ftp://x", ["--endpoint-model", "x"], "--endpoint expects a URL such as http://localhost:8000/v1"),
        *(
            (None, [option, "html2text"], f"{option} needs --endpoint URL")
            for option in ("--judge", "--endpoint-model", "--api-key-env")
        ),
    ],
)
def test_wrong_use(url: str | None, more: list[str], message: str, data: Path, held_out: Path, run: Run) -> None:
    """Options of an endpoint that is not named would do nothing."""
    named = ["--endpoint", url] if url else []
    done = run("evaluate", data, "--predictions", held_out, *named, *more, "--jobs", 1)
    assert (done.code, message in done.err) == (2, True)
