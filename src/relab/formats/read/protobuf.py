"""What is in a protobuf message? Its fields in order, without the schema and without the library."""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Value = int | bytes  # fixed-size fields stay bytes: only the schema knows whether they are floats


MAX_FIELDS = 1_000_000  # of one message


class MalformedError(ValueError):
    """Bytes that are no protobuf message; the message says where."""


def fields(data: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[int, Value]]:
    """(number, value) of each field of a message; MalformedError where it stops being one.

    >>> list(fields(b"\\x08\\x96\\x01\\x12\\x02hi"))
    [(1, 150), (2, b'hi')]
    """
    at, end = start, len(data) if end is None else end
    left = MAX_FIELDS
    while at < end:
        left -= 1
        if data[at] == 0 or not left:
            raise MalformedError(f"a field without a number at byte {at}" if left else f"more than {MAX_FIELDS} fields")
        key, at = (data[at], at + 1) if data[at] < 0x80 else varint(data, at, end)  # nearly all are one byte
        kind = key & 7
        if kind == BYTES and at < end:
            size, at = (data[at], at + 1) if data[at] < 0x80 else varint(data, at, end)
        elif kind == VARINT:
            value, at = varint(data, at, end)
            yield key >> 3, value
            continue
        else:
            size = {FIXED64: 8, FIXED32: 4}.get(kind, -1)
        if size < 0 or at + size > end:
            raise MalformedError(f"field {key >> 3} of kind {kind} does not fit at byte {at} of {end}")
        yield key >> 3, data[at : at + size]
        at += size


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """(number, where it ends): seven bits a byte, low ones first."""
    result = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
    raise MalformedError(f"a number does not end before byte {at} of {end}")


def signed(number: int) -> int:
    """An int64 from its varint.

    >>> signed(2**64 - 1), signed(7)
    (-1, 7)
    """
    number &= 0xFFFF_FFFF_FFFF_FFFF
    return number - (1 << 64) if number >= 1 << 63 else number


def double(value: Value) -> float:
    return float(_unpacked("<d", value))


def single(value: Value) -> float:
    return float(_unpacked("<f", value))


def _unpacked(form: str, value: Value) -> float:
    if not isinstance(value, bytes) or len(value) != struct.calcsize(form):
        raise MalformedError(f"a number of {struct.calcsize(form)} bytes was expected, but got {value!r:.40}")
    number: float = struct.unpack(form, value)[0]
    return number


def text(value: Value) -> str:
    """A string field; bytes that are no UTF-8 are shown as such."""
    if not isinstance(value, bytes):
        raise MalformedError(f"text was expected, but got the number {value}")
    return value.decode("utf-8", "replace")


def message(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise MalformedError(f"a message was expected, but got the number {value}")
    return value


# ---- Writing


def put_varint(number: int) -> bytes:
    number &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def put_bytes(field: int, data: bytes) -> bytes:
    return put_varint(field << 3 | BYTES) + put_varint(len(data)) + data
