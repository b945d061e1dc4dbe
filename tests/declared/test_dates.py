"""Dates for machines and written dates."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.declared.dates import date_in_path, iso_date

NO_DATES = (
    "", "May 2024", "2024", "2024-13-01", "2024-02-30", "0001-01-01", "1970-01-01T00:00:00Z", "9999-12-31",
    "Smarch 6, 2024", "yesterday", "Mon, 99 May 2024 07:08:09 GMT", "tel. 555-2024-05", "v1.2.2024.7",
    "6 tháng 13 2024", "2024. smarch 6.",
)  # fmt: skip


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2024-05-06", "2024-05-06"),
        ("20240506", "2024-05-06"),
        ("2024-05-06T07:08:09Z", "2024-05-06T07:08:09Z"),
        ("2024-05-06T07:08:09.123456+00:00", "2024-05-06T07:08:09Z"),
        ("2024-05-06 07:08:09 +0530", "2024-05-06T07:08:09+05:30"),
        ("2024-05-06T07:08-05", "2024-05-06T07:08:00-05:00"),
        ("2024-05-06T07:08:09", "2024-05-06T07:08:09"),
        ("2024-05-06T25:08:09", "2024-05-06"),
        ("Mon, 06 May 2024 07:08:09 +0200", "2024-05-06T07:08:09+02:00"),
        ("2024/5/6", "2024-05-06"),
        ("May 6, 2024", "2024-05-06"),
        ("Published on Monday, May 6th, 2024 at 7 am", "2024-05-06"),
        ("6th of May 2024", "2024-05-06"),
        ("Sept. 9, 2024", "2024-09-09"),
        ("6. Mai 2024", "2024-05-06"),
        ("le 1er février 2024", "2024-02-01"),
        ("6 de mayo de 2024", "2024-05-06"),
        ("6 maggio 2024", "2024-05-06"),
        ("6 мая 2024 г.", "2024-05-06"),
        ("6 maja 2024", "2024-05-06"),
        ("2024年5月6日", "2024-05-06"),
        ("2024년 5월 6일", "2024-05-06"),
        ("6 Μαΐου 2024", "2024-05-06"),
        ("6. toukokuuta 2024", "2024-05-06"),
        ("2024. május 6.", "2024-05-06"),
        ("2024. máj. 6.", "2024-05-06"),
        ("Thứ Hai, ngày 06 tháng 5 năm 2024", "2024-05-06"),
        ("6 Tháng 5, 2024", "2024-05-06"),
        ("06.05.2024", "2024-05-06"),
        ("13/05/2024", "2024-05-13"),
        ("05/13/2024", "2024-05-13"),
        ("05/06/2024", "2024-05-06"),
        *((written, None) for written in NO_DATES),
    ],
)
def test_dates(written: str, expected: str | None) -> None:
    assert iso_date(written) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("https://e.org/2024/05/06/tides", "2024-05-06"),
        ("https://e.org/news/20240506-tides.html", "2024-05-06"),
        ("https://e.org/2024-05-06-tides", "2024-05-06"),
        ("https://e.org/2024/05/tides", None),
        ("https://e.org/p/2024132", None),
    ],
)
def test_dates_in_urls(path: str, expected: str | None) -> None:
    assert date_in_path(path) == expected


@given(st.datetimes(dt.datetime(1990, 1, 1), dt.datetime(2026, 1, 1)), st.integers(-12 * 60, 14 * 60))
def test_property_moments_survive_a_round_trip(moment: dt.datetime, minutes: int) -> None:
    """This holds for any time zone."""
    moment = moment.replace(microsecond=0, tzinfo=dt.timezone(dt.timedelta(minutes=minutes)))
    found = iso_date(moment.isoformat())
    assert found is not None
    assert dt.datetime.fromisoformat(found.replace("Z", "+00:00")) == moment


@given(st.text(max_size=60))
def test_property_results_are_valid_dates(text: str) -> None:
    found = iso_date(text)
    assert found is None or dt.date.fromisoformat(found[:10])
