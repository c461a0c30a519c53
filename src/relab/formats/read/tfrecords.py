"""How are records framed in a TensorBoard file, and which of them are whole?

A record is  u64 length | u32 masked crc32c(length) | payload | u32 masked crc32c(payload),  little-endian. Lengths are
checked one by one, payloads by the block, all of one length together: their crc is a few numpy operations per byte,
where a loop in Python would take longer than all the rest.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from relab.base import limits

BLOCK = 1 << 22  # bytes read at a time
MAX_RECORD = 1 << 26  # a longer record is taken for a broken length
MAX_LOST = 1 << 27  # bytes without a record after which a file is given up
HEADER, FOOTER = 12, 4
FEW = 16  # records for which a loop is faster than numpy
MAX_CHECKED = 4096  # bytes of a payload whose checksum is looked at
MAX_NOTES = 20  # per file, one by one


@dataclass
class Scan:
    """How far a file was read, and what could not be."""

    end: int = 0  # offset behind the last whole record: where reading may go on
    notes: list[str] = field(default_factory=list)
    more: int = 0  # notes beyond the first few

    def note(self, text: str) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes.append(text)
        else:
            self.more += 1


# ---- crc32c, as TensorBoard masks it


def _table() -> list[int]:
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return table


TABLE = _table()
TABLE_NP = np.array(TABLE, np.uint32)


def masked_crc(data: bytes) -> int:
    """The checksum of a record's part.

    >>> masked_crc(b"123456789") == (((0xE3069283 >> 15) | (0xE3069283 << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    True
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def masked_crcs(rows: np.ndarray) -> np.ndarray:
    """The same for each row of a uint8[n, length]."""
    crc = np.full(len(rows), 0xFFFFFFFF, np.uint32)
    for column in np.ascontiguousarray(rows.T):
        crc = TABLE_NP[(crc ^ column) & 0xFF] ^ crc >> 8
    crc = ~crc
    return (crc >> 15 | crc << 17) + np.uint32(0xA282EAD8)


# ---- Records


@dataclass
class Block:
    """A part of a file and the whole records in it."""

    data: bytes
    offset: int  # of data in the file
    begins: list[int] = field(default_factory=list)  # of the payloads in data
    ends: list[int] = field(default_factory=list)

    @property
    def payloads(self) -> Iterator[bytes]:
        return (self.payload(number) for number in range(len(self.begins)))

    def payload(self, number: int) -> bytes:
        return self.data[self.begins[number] : self.ends[number]]


def blocks(file: BinaryIO, scan: Scan) -> Iterator[Block]:
    """Whole records, some megabytes at a time; what is left of one block begins the next."""
    rest, lost, good = b"", 0, dict[bytes, int]()
    at, size = file.tell(), file.seek(0, os.SEEK_END)
    file.seek(at)
    while True:
        more = file.read(BLOCK)
        limits.report(scan.end, size, str(getattr(file, "name", "")))
        block = Block(rest + more, scan.end)
        used = _split(block, good, scan, last=not more)
        yield block
        scan.end += used
        rest = block.data[used:]
        lost = 0 if block.begins else lost + used
        if lost > MAX_LOST:
            scan.note(f"no record in the {lost:,} bytes before byte {scan.end:,} of {size:,}; the rest was not read")
            return
        if not more:
            break
    if rest:
        size = scan.end + len(rest)
        scan.note(f"truncated at byte {scan.end} of {size}: the last {len(rest)} bytes are no whole record")


def _split(block: Block, good: dict[bytes, int], scan: Scan, last: bool) -> int:
    """Find the records of a block; returns how many of its bytes are used up. `good`: headers and their lengths."""
    data, at, size = block.data, 0, len(block.data)
    while at + HEADER <= size:
        begin = at + HEADER
        header = data[at:begin]
        length = good.get(header)  # lengths repeat, so most are looked up
        if length is None:
            if not _is_header(header):
                skip = _resync(data, at + 1, last)
                scan.note(f"no record at byte {block.offset + at}: {skip - at} bytes were skipped")
                at = skip
                continue
            length = good[header] = int.from_bytes(header[:8], "little")
        end = begin + length
        if end + FOOTER > size:
            if last and (after := _resync(data, at + 1, last)) < size - HEADER:  # a length that lies, not a torn tail
                scan.note(f"the record at byte {block.offset + at} is cut: {after - at} bytes were skipped")
                at = after
                continue
            break
        block.begins.append(begin)
        block.ends.append(end)
        at = end + FOOTER
    return at


def _is_header(header: bytes) -> bool:
    length, crc = struct.unpack("<QI", header)
    return 0 < length <= MAX_RECORD and masked_crc(header[:8]) == crc


def _resync(data: bytes, at: int, last: bool) -> int:
    """The next place that could be a record: its length has zeros on top and the right checksum."""
    while (zeros := data.find(b"\0\0\0\0", at + 4)) >= 0 and zeros + 8 <= len(data):
        if _is_header(data[zeros - 4 : zeros + 8]):
            return zeros - 4
        # Nothing but zeros (a disk that lost them): on to the first other byte, at once.
        nothing = data[zeros - 4 : zeros] == b"\0\0\0\0"
        at = (len(data) - len(data[zeros:].lstrip(b"\0")) if nothing else zeros) - 3
    return len(data) if last else max(at, len(data) - HEADER)


@dataclass
class Group:
    """The records of a block that have one length."""

    numbers: np.ndarray  # of the records in their block, in order
    rows: (
        np.ndarray
    )  # uint8[n, length + FOOTER]: the payloads with their checksums; no rows where these are few or long


def groups(block: Block, numbers: np.ndarray) -> Iterator[Group]:
    """Some records of a block, by length."""
    begins, ends = np.array(block.begins, np.int64)[numbers], np.array(block.ends, np.int64)[numbers]
    lengths = ends - begins
    view = np.frombuffer(block.data, np.uint8)
    for length in np.unique(lengths):
        members = np.flatnonzero(lengths == length)
        rows = np.zeros((0, 0), np.uint8)
        if len(members) >= FEW and length <= MAX_CHECKED:
            rows = np.lib.stride_tricks.sliding_window_view(view, length + FOOTER)[begins[members]]
        yield Group(numbers[members], rows)


def check(block: Block, group: Group, bad: list[int]) -> Group:
    """A group without the records whose payload does not fit its checksum; their numbers go to `bad`."""
    if len(group.rows):
        stored = np.ascontiguousarray(group.rows[:, -FOOTER:]).view("<u4")[:, 0]
        fits = masked_crcs(group.rows[:, :-FOOTER]) == stored
    else:
        fits = np.array([_fits(block, number) for number in group.numbers], bool)
    if fits.all():
        return group
    bad += group.numbers[~fits].tolist()
    return Group(group.numbers[fits], group.rows[fits] if len(group.rows) else group.rows)


def _fits(block: Block, number: int) -> bool:
    payload, end = block.payload(number), block.ends[number]
    if len(payload) > MAX_CHECKED:  # pictures are not worth the time
        return True
    return masked_crc(payload) == int.from_bytes(block.data[end : end + FOOTER], "little")


def say_bad(block: Block, bad: list[int], scan: Scan) -> None:
    for number in sorted(bad):
        place = block.offset + block.begins[number] - HEADER
        scan.note(f"the record at byte {place} has a wrong checksum; it is left out")


def pack(payload: bytes) -> bytes:
    """A payload as a record."""
    length = struct.pack("<Q", len(payload))
    return length + struct.pack("<I", masked_crc(length)) + payload + struct.pack("<I", masked_crc(payload))
