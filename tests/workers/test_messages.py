"""Messages between crawl and worker arrive unchanged. Invalid messages are rejected."""

from __future__ import annotations

import contextlib
import io
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.workers.wire import receive, send

MOST = 10_000

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet=st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
HEADERS = st.dictionaries(st.text(max_size=5).filter(lambda name: name != "sizes"), JSON, max_size=4)
MESSAGES = st.tuples(HEADERS, st.lists(st.binary(max_size=50), max_size=5))


@given(st.lists(MESSAGES, max_size=4))
def test_messages_arrive_as_they_were_sent(messages: list[tuple[dict[str, Any], list[bytes]]]) -> None:
    """Messages are received one by one, up to the end of the stream."""
    stream = io.BytesIO()
    for header, parts in messages:
        send(stream, header, parts)
    stream.seek(0)
    assert [receive(stream, 1 << 20) for _ in messages] == messages
    with pytest.raises((EOFError, struct.error)):
        receive(stream, MOST)


@given(MESSAGES, st.data())
def test_a_message_that_is_cut_off_is_an_end(message: tuple[dict[str, Any], list[bytes]], data: st.DataObject) -> None:
    """This holds at any position."""
    stream = io.BytesIO()
    send(stream, *message)
    whole = stream.getvalue()
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(EOFError):
        receive(io.BytesIO(cut), MOST)


@given(st.binary(max_size=60))
def test_nonsense_is_an_end_or_a_value_error(data: bytes) -> None:
    with contextlib.suppress(EOFError, ValueError):
        receive(io.BytesIO(data), MOST)


def message(header: bytes, body: bytes = b"", *, most: int = MOST) -> Any:
    """Return the result of receiving a message with a given header."""
    return receive(io.BytesIO(struct.pack(">QQ", len(header), len(body)) + header + body), most)


@pytest.mark.parametrize(
    "header",
    [b"[]", b"7", b"{}", b'{"sizes": 3}', b'{"sizes": [-1]}', b'{"sizes": ["3"]}', b'{"sizes": [2]}', b"{", b"\xff"],
)
def test_headers_that_make_no_sense(header: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        message(header, b"abc")


def test_nothing_is_read_that_is_too_long() -> None:
    """No memory is allocated for it either."""
    with pytest.raises(ValueError, match="at most 10,000 bytes"):
        message(b'{"sizes": [20000]}', b"x" * 20_000)
    with pytest.raises(ValueError, match="at most 10,000 bytes"):
        receive(io.BytesIO(struct.pack(">QQ", 1 << 62, 1 << 62)), MOST)
