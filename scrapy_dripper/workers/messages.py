"""The message format between crawl and worker: two lengths, a JSON header, and binary parts."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

Message = tuple[dict[str, Any], list[bytes]]

_lengths = struct.Struct(">QQ")
_SIZES = "sizes"


def send(stream: BinaryIO, header: Mapping[str, Any], parts: Sequence[bytes] = ()) -> None:
    """Write a message. Raise OSError if the other end is closed."""
    data = json.dumps({**header, _SIZES: [len(part) for part in parts]}).encode("ascii")
    stream.write(_lengths.pack(len(data), sum(map(len, parts))) + data)
    for part in parts:
        stream.write(part)
    stream.flush()


def receive(stream: BinaryIO, most: int) -> Message:
    """Read a message of at most ``most`` bytes.

    Raise EOFError if the stream ends before a complete message, and ValueError for an invalid message.
    """
    header_size, parts_size = _lengths.unpack(_read(stream, _lengths.size))
    if header_size + parts_size > most:
        raise ValueError(f"expected a message of at most {most:,} bytes (got {header_size + parts_size:,})")
    header = json.loads(_read(stream, header_size))
    sizes = header.pop(_SIZES, None) if isinstance(header, dict) else None
    if not isinstance(sizes, list) or not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise ValueError("expected a header with the sizes of the parts (got none)")
    if sum(sizes) != parts_size:
        raise ValueError(f"expected parts of {parts_size:,} bytes in total (got {sum(sizes):,})")
    return header, [_read(stream, size) for size in sizes]


def _read(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError(f"expected {size:,} bytes (got {len(data):,})")
    return data
