"""What crawl and worker say to each other: a header in JSON and parts in bytes, with their lengths before them."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

Message = tuple[dict[str, Any], list[bytes]]

_lengths = struct.Struct(">QQ")
_SIZES = "sizes"


def send(stream: BinaryIO, header: Mapping[str, Any], parts: Sequence[bytes] = ()) -> None:
    """Write a message. Raise OSError if nobody reads."""
    head = json.dumps({**header, _SIZES: [len(part) for part in parts]}).encode("ascii")
    stream.write(_lengths.pack(len(head), sum(map(len, parts))) + head)
    for part in parts:
        stream.write(part)
    stream.flush()


def receive(stream: BinaryIO, most: int) -> Message:
    """Read a message of ``most`` bytes at most.

    Raise EOFError at the end of the stream, ValueError if what comes is no such message.
    """
    head, body = _lengths.unpack(_read(stream, _lengths.size))
    if head + body > most:
        raise ValueError(f"a message of {head + body:,} bytes, where {most:,} were the most")
    header = json.loads(_read(stream, head))
    sizes = header.pop(_SIZES, None) if isinstance(header, dict) else None
    if not isinstance(sizes, list) or not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise ValueError("a message without a header")
    if sum(sizes) != body:
        raise ValueError("a message whose parts are not as long as they should be")
    return header, [_read(stream, size) for size in sizes]


def _read(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError(f"{len(data):,} of {size:,} bytes")
    return data
