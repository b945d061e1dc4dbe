"""The fuzzer detects each kind of violation, and minimises findings."""

from __future__ import annotations

import mmap
import os
import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz import cases, checks, minimise, trial
from fuzz.cases import Case
from fuzz.checks import BrokenError
from fuzz.grammar import RULES, piece
from fuzz.minimise import Outcome
from fuzz.mutate import cross, mutate, soup
from fuzz.pump import SIZES, pumped
from fuzz.records import FORMS, NUMBERS, Cost, Records
from fuzz.safety import runs, unsafe_html
from fuzz.seeds import write_seeds
from fuzz.state import Peak, Shared, State, cpu_seconds, resident
from scrapy_dripper.data import Document, Extraction, FallbackReason
from scrapy_dripper.extractor import Extractor

PAGE = Case("<p>one two</p><p>three <b>four</b></p><p>five</p>", seed=0)


def test_a_page_is_as_promised() -> None:
    found = checks.run(PAGE)
    checks.check(PAGE, found)
    assert found.text == "one two\nthree four\nfive"


def _raise(*_: object) -> Any:
    raise KeyError("planted")


def _planted(found: Extraction, name: str, value: str) -> Extraction:
    """Set a field without the constructor, which removes what an extraction may not contain."""
    changed = replace(found)
    object.__setattr__(changed, name, value)
    return changed


BROKEN: dict[str, tuple[str, Callable[[Extraction], Extraction]]] = {
    "a lost word": ("parses again", lambda e: replace(e, main_html=(e.main_html or "").replace("four", ""))),
    "another order": ("parses again", lambda e: replace(e, main_html="<p>three four<p>one two<p>five")),
    "an invented word": ("parses again", lambda e: replace(e, main_html=f"{e.main_html}<p>six")),
    "a script": ("safety", lambda e: replace(e, main_html=f"{e.main_html}<ScRiPt>x</script>")),
    "a handler": ("safety", lambda e: replace(e, main_html=f"{e.main_html}<img src=x onerror=y>")),
    "a URL that runs": ("safety", lambda e: replace(e, main_html=f"{e.main_html}<a href='jav&#9;ascript:x'>y</a>")),
    "a script in Markdown": ("safety", lambda e: replace(e, markdown="a <script>x</script>")),
    "a link in Markdown": ("safety", lambda e: replace(e, markdown="[a](javascript:x)")),
    "NUL": ("strings", lambda e: _planted(e, "text", "a\0")),
    "a command of a terminal": ("strings", lambda e: _planted(e, "title", "a\x9b2J")),
    "half a character": ("strings", lambda e: _planted(e, "markdown", "a\ud800")),
    "a control in content": ("strings", lambda e: replace(e, content=[{"type": "code", "text": "a\x1b"}])),
    "bytes": ("strings", lambda e: replace(e, title=b"t")),  # type: ignore[arg-type]
    "a label too few": ("labels", lambda e: replace(e, labels=e.labels[1:])),
    "a probability too few": ("labels", lambda e: replace(e, probabilities=e.probabilities[1:])),
    "blocks miscounted": ("labels", lambda e: e.with_details(blocks=e.details["blocks"] + 1)),
    "no text": ("fields", lambda e: replace(e, text=None)),
    "content against the schema": (
        "schema",
        lambda e: replace(e, content=[{"type": "paragraph", "runs": [{"type": "text", "text": 7}]}]),
    ),
    "content that is no JSON": ("content", lambda e: replace(e, content=[{"type": b"x"}])),
    "a reason that is a defect": ("reason", lambda e: replace(e, fallback_reason=FallbackReason.OUTPUT_ERROR)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, change = BROKEN[name]
    whole = Extractor.extract
    monkeypatch.setattr(Extractor, "extract", lambda self, documents: [change(e) for e in whole(self, documents)])
    with pytest.raises(BrokenError) as caught:
        checks.check(PAGE, checks.run(PAGE))
    assert caught.value.kind == kind


def test_another_result_the_second_time_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, times = Extractor.extract, iter("abc")
    monkeypatch.setattr(
        Extractor, "extract", lambda self, documents: [replace(e, title=next(times)) for e in whole(self, documents)]
    )
    with pytest.raises(BrokenError, match="same twice"):
        checks.check(PAGE, checks.run(PAGE))


@pytest.mark.parametrize(
    ("what", "kind"), [("extract", "raises"), ("write", "swallows"), ("read", "swallows"), ("fall_back", "raises")]
)
def test_an_exception_is_found_also_where_it_is_caught(what: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = replace(PAGE, engine="failing") if what == "fall_back" else PAGE
    if what == "extract":
        monkeypatch.setattr(Extractor, "extract", _raise)
    else:
        monkeypatch.setattr(f"scrapy_dripper.extractor.{what}", _raise)
    with pytest.raises(BrokenError, match="KeyError") as caught:
        checks.check(case, checks.run(case))
    assert caught.value.kind == kind


def test_one_extraction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Extractor, "extract", lambda self, documents: [])
    with pytest.raises(BrokenError, match="one extraction"):
        checks.run(PAGE)


@pytest.mark.parametrize(("limit", "kind"), [("seconds", "slow"), ("memory", "memory")])
def test_a_costly_page_is_found(limit: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"fuzz.limits.{limit}", lambda size, **_: -1)
    with pytest.raises(BrokenError) as caught:
        trial.attempt(PAGE, Peak())
    assert caught.value.kind == kind


# ---------------------------------------------------------------------------------------------------------------- cost
def _plant(monkeypatch: pytest.MonkeyPatch, steps: Callable[[str], int], written: Callable[[str], int]) -> None:
    """Make documents cost a microsecond for each of their steps, and write a number of characters of Markdown."""
    whole = Extractor.extract
    now = 0.0

    def extract(extractor: Extractor, documents: Sequence[Document]) -> list[Extraction]:
        nonlocal now
        html = str(documents[0].html)
        now += 1e-6 * (len(html) + steps(html))
        return [replace(one, markdown="y" * written(html)) for one in whole(extractor, documents)]

    monkeypatch.setattr(Extractor, "extract", extract)
    monkeypatch.setattr(trial, "clock", lambda: now)


def _search(*, keep: bool, inputs: int) -> tuple[str, bytes] | None:
    """Run the fuzzing process without coverage; return the kind of the finding and its document."""
    chance, records, peak = Random(1), Records(), Peak()
    pool = [b"<p>one two</p><p>three <b>four</b>"]
    for _ in range(inputs):
        tried = body = mutate(chance.choice(pool), chance)[:3_000]
        try:
            broken = records.broken(len(body), _cost(body, peak), lambda body=body: _cost(body, peak).seconds)
            if broken and keep:
                pool.append(body)
            for tried in pumped(body, SIZES[-1]) if "seconds" in broken and keep else ():
                _cost(tried, peak)
        except BrokenError as error:
            return error.kind, tried
    return None


def _cost(body: bytes, peak: Peak) -> Cost:
    return trial.measured(Case(body.decode("latin-1")), peak)[1]


def _longest_run(html: str) -> int:
    """Return the length of the longest run of a character."""
    return max((len(run[0]) for run in re.finditer(r"(.)\1*", html, re.S)), default=0)


def test_the_search_for_time_finds_what_is_quadratic(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first inputs are far below the limit; inputs that are kept and made longer are not."""
    _plant(monkeypatch, lambda html: _longest_run(html) ** 2 // 100, lambda _: 0)

    assert _search(keep=False, inputs=300) is None
    found = _search(keep=True, inputs=300)

    assert found is not None
    assert found[0] == "slow"
    assert _longest_run(found[1].decode("latin-1")) > 9_000


def test_the_search_for_output_finds_what_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of mark adds to it, so only inputs that are kept and damaged again get all of them."""
    marks = ("<li", "[", "\\", "|", "$")
    _plant(monkeypatch, lambda _: 0, lambda html: len(html) * 2 ** sum(mark in html for mark in marks))

    assert _search(keep=False, inputs=800) is None
    found = _search(keep=True, inputs=800)

    assert found is not None
    assert found[0] == "output"
    assert all(mark.encode() in found[1] for mark in marks)


def test_a_record_is_what_costs_more_for_its_size() -> None:
    records = Records()
    never = cast("Callable[[], float]", None)

    assert set(records.broken(2_000, Cost(0.01, 0, {"text": 2_000}), lambda: 0.01)) == {"seconds", "text"}
    assert records.broken(2_000, Cost(0.01, 0, {"text": 2_000}), never) == {}
    assert records.broken(3_999, Cost(0.02, 0, {"text": 4_000}), never) == {}  # a little more, for twice the size
    assert set(records.broken(2_000, Cost(0.001, 0, {"text": 9_000}), never)) == {"text"}
    assert set(records.broken(9_000, Cost(0.1, 0, {"text": 9_000}), lambda: 0.1)) == {"seconds", "text"}  # of its class
    assert set(records.broken(2_000, Cost(9.0, 0, {}), lambda: 9.0)) == {"seconds"}


def test_time_is_a_record_only_if_it_is_one_twice() -> None:
    """Other programs can make an input slow once."""
    records = Records()
    records.broken(1_000, Cost(0.01), lambda: 0.01)

    assert records.broken(1_000, Cost(5.0), lambda: 0.009) == {}
    assert set(records.broken(1_000, Cost(0.1), lambda: 0.1)) == {"seconds"}


@given(st.integers(0, 10**9), st.floats(0, 1e6), st.dictionaries(st.sampled_from(FORMS), st.integers(0, 10**12)))
def test_every_record_has_a_number_of_its_own(size: int, seconds: float, output: dict[str, int]) -> None:
    broken = Records().broken(size, Cost(seconds, 0, output), lambda: seconds)
    assert len(set(broken.values())) == len(broken)
    assert all(0 <= number < NUMBERS for number in broken.values())


def test_the_function_that_takes_the_time_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """This works even within one call of a regular expression; two slow functions are two findings."""
    spin = re.compile(r"(?:a|a)*b").match  # until the time is over
    code = compile("def planted(text):\n    spin(text)\n", "/x/scrapy_dripper/output/slow.py", "exec")
    names: dict[str, Any] = {"spin": spin}
    exec(code, names)
    with trial.Places() as places:
        names["planted"]("a" * 23)
    assert places.most() == "slow.planted"

    one, other = (BrokenError("slow", f"3.0 s for 7 characters, most of them in {name}") for name in ("a.b", "c.d"))
    assert trial.finding_name(one) == "slow-a_b"
    assert trial.finding_name(other) == "slow-c_d"


@given(st.binary(max_size=2_000), st.sampled_from(SIZES))
def test_a_pumped_document_is_as_long_as_asked_for(body: bytes, size: int) -> None:
    made = list(pumped(body, size))
    assert all(size - max(64, len(body)) <= len(one) <= max(size, len(body)) for one in made)
    assert bool(made) == bool(body)


def test_a_run_is_made_longer_where_it_stands() -> None:
    assert next(pumped(b"<p>a" + b" &nbsp;" * 9 + b"!", 1_000)).startswith(b"<p>a" + b" &nbsp;" * 130)


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_of_the_grammar_ends_and_is_used(rule: str) -> None:
    made = {piece(Random(seed), rule) for seed in range(200)}
    assert not any("«".encode() in one for one in made)
    assert len(made) >= min(4, len(RULES[rule]))
    assert rule == "piece" or any(f"«{rule}" in one for rules in RULES.values() for one in rules)


# ------------------------------------------------------------------------------------------------------------- safety
@pytest.mark.parametrize(
    "html",
    [
        "<p onclick=x>", "<svg/onload=x>", "<math><mtext><img src onerror=x>", "<iframe src=x>",
        "<iframe srcdoc=x>", "<object data=x>", "<base href=x>", "<meta http-equiv=refresh>", "<p style=x>",
        "<a href=' \x01javascript:x'>", "<a href=&#x6a;avascript:x>", "<a href='java\nscript:x'>",
        "<img src=data:text/html,x>",
        "<form action=vbscript:x>", "<img data-src=javascript:x>", "<script type=module>",
    ],
)  # fmt: skip
def test_what_runs(html: str) -> None:
    assert unsafe_html(html) is not None


@pytest.mark.parametrize(
    "html",
    [
        "<p>javascript: onclick = &lt;script&gt;</p>", "<a href=/javascript:x>y</a>",
        "<script type='math/tex'>x</script>",
        "<img src='data:image/png;base64,AA'>", "<iframe data-src=x></iframe>", "<p title='<script>'>a</p>",
    ],
)  # fmt: skip
def test_what_does_not_run(html: str) -> None:
    assert unsafe_html(html) is None


def test_only_images_are_harmless_as_data() -> None:
    assert [runs(url) for url in ("data:image/gif,x", "data:image/svg+xml,x", "data:,x", "/a")] == [
        False,
        True,
        True,
        False,
    ]


# ------------------------------------------------------------------------------------------------------------- inputs
@given(st.binary(max_size=300))
def test_all_bytes_are_a_case(data: bytes) -> None:
    case = cases.decode(data)
    assert len(case.html) <= max(cases.MAX_CHARS + 300, len(data))
    assert cases.decode(data) == case


@given(st.binary(max_size=300), st.binary(max_size=300), st.integers(0, 2**32))
def test_damage_depends_on_the_seed_alone(html: bytes, other: bytes, seed: int) -> None:
    assert mutate(html, Random(seed), other) == mutate(html, Random(seed), other)
    assert cross(html, other, Random(seed)) == cross(html, other, Random(seed))
    assert soup(Random(seed)) == soup(Random(seed))


def test_seeds_of_a_fresh_clone(tmp_path: Path) -> None:
    """The test pages are enough to start."""
    n = write_seeds(tmp_path / "corpus", Random(1))
    written = [path.read_bytes() for path in (tmp_path / "corpus").iterdir()]
    assert n >= 150
    assert any(b"<math" in one for one in written)
    assert all(len(one) > cases.HEADER for one in written)


# ------------------------------------------------------------------------------------------------------------ findings
def test_a_finding_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the cause is left, also of the choices."""

    def planted(data: bytes) -> Outcome | None:
        html = cases.decode(data).html
        both = isinstance(html, bytes) and 0 <= html.find(b"<b>") < html.find(b"needle")
        return Outcome("planted", "") if both else None

    monkeypatch.setattr(minimise, "outcome", planted)
    data = bytes(range(1, 12)) + b"\0" + b"<p>hay <b> hay</p> <i>hay</i> a needle in hay " * 5
    data = b"\4" + data[1:]  # a form that leaves bytes

    small = minimise.minimise(data, Outcome("planted", ""))

    assert small == bytes(cases.HEADER) + b"<b>needle"


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "hang"),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), "died-SIGTERM"),
        (lambda: _raise(), "check"),
        (lambda: _spin(), "hang"),
    ],
)
def test_a_try_cannot_bring_down_the_process(
    fault: Callable[[], object], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(minimise, "attempt", lambda *_: fault())
    monkeypatch.setattr(minimise, "_most_seconds", lambda _: 1)
    found = minimise.outcome(bytes(cases.HEADER) + b"<p>x")
    assert found is not None
    assert found.name == name


def _spin() -> None:
    while True:
        pass


def test_findings_that_happen_no_more_are_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.input").write_bytes(bytes(cases.HEADER) + b"<p>gone")
    (tmp_path / "b.input").write_bytes(bytes(cases.HEADER) + b"<p>here <b>x")
    monkeypatch.setattr(minimise, "outcome", lambda data: Outcome("here", "so") if b"here" in data else None)

    found = minimise.review(tmp_path)

    assert [(path.name, one.detail) for path, one in found] == [("b.min", "so")]
    assert (tmp_path / "b.html").read_bytes() == b"here"
    assert (tmp_path / "a.gone").exists()


def test_processes_share_counts_and_the_present_input(tmp_path: Path) -> None:
    one, other = Shared(tmp_path / "state"), Shared(tmp_path / "state")
    one.write(State(inputs=3, started=1.5, largest=7))
    one.write_input(b"<p>x")
    assert other.read() == State(inputs=3, started=1.5, largest=7)
    assert other.read_input() == b"<p>x"


def test_cost_of_a_process() -> None:
    assert cpu_seconds(os.getpid()) > 0
    assert resident(os.getpid()) > 10_000_000
    peak = Peak()
    before = peak.reset()
    with mmap.mmap(-1, 50_000_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as large:  # new, whatever malloc keeps
        large.write(b"x" * len(large))
    assert peak.read() - before > 40_000_000
