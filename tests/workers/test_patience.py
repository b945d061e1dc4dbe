"""The time limit of a page depends on earlier pages of its host."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.crawl import patience as module
from scrapy_dripper.crawl.patience import LEAST_SECONDS, RECOVERY, Patience

HOSTS = ["a.example", "b.example", "c.example", ""]
EVENTS = st.lists(st.tuples(st.sampled_from(HOSTS), st.booleans()), max_size=60)
SECONDS = st.floats(0.1, 1_000)


def after(events: list[tuple[str, bool]], seconds: float = 30.0) -> Patience:
    """Return the limits after pages that were stopped or answered."""
    patience = Patience(seconds)
    for host, stopped in events:
        (patience.stopped if stopped else patience.answered)(host)
    return patience


@given(EVENTS, SECONDS)
def test_property_limits_stay_within_their_bounds(events: list[tuple[str, bool]], seconds: float) -> None:
    patience = after(events, seconds)
    for host in HOSTS:
        assert min(seconds, LEAST_SECONDS) <= patience.seconds(host) <= seconds


@given(EVENTS)
def test_a_host_recovers(events: list[tuple[str, bool]]) -> None:
    """After enough successful pages, a host has the full limit again and uses no memory, whatever happened before."""
    patience = after(events)
    for host in HOSTS:
        stops = sum(stopped for other, stopped in events if other == host)
        for _ in range(RECOVERY * stops + 1):
            patience.answered(host)
        assert patience.seconds(host) == 30.0
    assert not patience._levels


@given(EVENTS)
def test_a_host_does_not_pay_for_another_one(events: list[tuple[str, bool]]) -> None:
    """This holds as long as some page succeeds in between."""
    patience = after([event for event in events if event[0] != "a.example"])
    patience.answered("a.example")
    assert patience.seconds("a.example") == 30.0


def test_limits_get_shorter_and_longer_again() -> None:
    """The first stopped page has no effect. Each further one halves the limit, and eight successes double it."""
    patience = Patience(96.0)
    found = [patience.seconds("a.example")]
    for _ in range(8):
        patience.stopped("a.example")
        found.append(patience.seconds("a.example"))
    assert found == [96, 96, 48, 24, 12, 6, 3, 3, 3]
    for _ in range(3 * RECOVERY):
        patience.answered("a.example")
    assert patience.seconds("a.example") == 6.0


def test_where_all_hosts_fail_in_a_row_it_is_the_engine() -> None:
    """New hosts have a short limit, too, until a page succeeds."""
    patience = Patience(96.0)
    for number in range(5):
        patience.stopped(f"{number}.example")
    assert patience.seconds("new.example") == 6.0
    patience.answered("other.example")
    assert patience.seconds("new.example") == patience.seconds("3.example") == 96.0


def test_a_short_limit_stays() -> None:
    """A limit of half a second is not increased."""
    patience = after([("a.example", True)] * 20, 0.5)
    assert patience.seconds("a.example") == 0.5


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A site with ten thousand host names takes bounded memory. The latest ones are known."""
    monkeypatch.setattr(module, "HOSTS", 50)
    patience = Patience(30.0)
    for number in range(500):
        for _ in range(3):
            patience.stopped(f"{number}.example")
    patience.answered("else.example")
    assert len(patience._levels) == 50
    assert patience.seconds("499.example") < 30.0 == patience.seconds("3.example")
