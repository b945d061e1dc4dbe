"""What crawl and child say to each other: a header in JSON and a body in bytes, each with its length before it."""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

MAX_HEADER = 1_000_000
"""Bytes of a header; what is longer is no message."""

_lengths = struct.Struct(">IQ")


def send(stream: BinaryIO, header: dict[str, Any], body: bytes = b"") -> None:
    """Write a message. Raise OSError if nobody reads."""
    head = json.dumps(header).encode("ascii")
    stream.write(_lengths.pack(len(head), len(body)) + head)
    stream.write(body)
    stream.flush()


def receive(stream: BinaryIO, most: int) -> tuple[dict[str, Any], bytes]:
    """Read a message with a body of ``most`` bytes at most.

    Raise EOFError at the end of the stream, ValueError if what comes is no such message.
    """
    head, body = _lengths.unpack(_read(stream, _lengths.size))
    if head > MAX_HEADER or body > most:
        raise ValueError(f"a message of {head:,} and {body:,} bytes")
    header = json.loads(_read(stream, head))
    if not isinstance(header, dict):
        raise ValueError("a message without a header")
    return header, _read(stream, body)


def _read(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError(f"{len(data):,} of {size:,} bytes")
    return data
