"""Where the records of a batch lie, and their keys, without making records of them.

Compaction looks at every record of a log. It needs keys, offsets and whether a value is there; what it keeps
is copied as bytes. So these functions work on the body of a batch (its records without their compression)
and cost a fraction of `records.decode_records`. What they accept, that accepts too, except for what lies
behind the key: values and headers are not opened.

No number is trusted: each is compared with the bytes that remain. InvalidRecord says what does not fit.

Among the modules that can be compiled (hatch_build.py): `read_keys` then takes a fourteenth of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.core.errors import InvalidRecord

MIN_RECORD_BYTES: Final = 7
_NULL: Final = 1
"""The length of a key or value that is not there: zig-zag of -1."""


Keys = tuple[list[bytes | None], list[int] | None, bool]
"""(keys, offset deltas, whether a value is null). Deltas None: they are 0, 1, 2 and so on."""


def read_keys(body: bytes, count: int, last_offset_delta: int) -> Keys:  # noqa: C901 - it calls nothing
    """Short varints are read without a call: nearly all are short, and compaction spends its time here."""
    keys: list[bytes | None] = []
    deltas: list[int] | None = None if count == last_offset_delta + 1 else []
    has_null, previous, at, limit = False, -1, 0, len(body)
    if count < 0 or count * MIN_RECORD_BYTES > limit:
        raise InvalidRecord(f"{count} records cannot be in {limit} bytes")
    try:
        for index in range(count):
            byte = body[at]
            if byte < 0x80:
                at += 1
                end = at + (byte >> 1)
            elif body[at + 1] < 0x80:
                end = at + 2 + ((byte & 0x7F | body[at + 1] << 7) >> 1)
                at += 2
            else:
                end, at = _length(body, at)
            if byte & 1 or end > limit:
                raise InvalidRecord(f"a record ends at byte {end} of {limit}")
            at += 1  # attributes
            if body[at] < 0x80:
                at += 1
            else:
                at = at + 2 if body[at + 1] < 0x80 else _unsigned(body, at)[1]
            delta = body[at]
            if delta < 0x80:
                at += 1
            elif body[at + 1] < 0x80:
                delta = delta & 0x7F | body[at + 1] << 7
                at += 2
            else:
                delta, at = _unsigned(body, at)
            if deltas is not None:
                deltas.append(delta >> 1)
                if delta & 1 or not previous < delta >> 1 <= last_offset_delta:
                    raise InvalidRecord(f"offset delta {delta >> 1} after {previous}")
                previous = delta >> 1
            elif delta != index + index:
                raise InvalidRecord(f"offset delta {delta >> 1} at place {index}")
            byte = body[at]
            if byte < 0x80:
                at += 1
                stop = at + (byte >> 1)
            else:
                stop, at = _length(body, at)
            if byte & 1:
                if byte != _NULL:
                    raise InvalidRecord("a key of a negative length")
                stop = at
            if stop >= end:
                raise InvalidRecord(f"a key ends at byte {stop}, its record at {end}")
            keys.append(None if byte == _NULL else body[at:stop])
            has_null = has_null or body[stop] == _NULL
            at = end
    except IndexError:
        raise InvalidRecord(f"a record runs past the end of its batch at byte {at}") from None
    if at != limit:
        raise InvalidRecord(f"{limit - at} bytes follow the {count} records of the batch")
    return keys, deltas, has_null


def read_bounds(body: bytes, count: int) -> list[int]:
    """Where each record begins, and behind the last of them the end. The body has passed `read_keys`."""
    bounds = [0]
    at = 0
    for _ in range(count):
        byte = body[at]
        if byte < 0x80:
            at += 1 + (byte >> 1)
        elif body[at + 1] < 0x80:
            at += 2 + ((byte & 0x7F | body[at + 1] << 7) >> 1)
        else:
            at = _length(body, at)[0]
        bounds.append(at)
    return bounds


def is_tombstone(body: bytes, start: int) -> bool:
    """Whether the record that begins at `start` has a null value."""
    at = _behind_timestamp(body, start)[2]
    _, at = _unsigned(body, at)
    if body[at] == _NULL:
        return body[at + 1] == _NULL
    length, at = _unsigned(body, at)
    return body[at + (length >> 1)] == _NULL


def largest_timestamp(body: bytes, starts: Sequence[int], base_timestamp: int) -> int:
    return base_timestamp + max(_behind_timestamp(body, start)[1] for start in starts)


def first_at_time(
    body: bytes, count: int, least_time_delta: int, least_offset_delta: int
) -> tuple[int, int] | None:
    """(offset delta, time delta) of the first record that is not older, and not before the offset.

    Keys, values and headers are not looked at: InvalidRecord only where the next record cannot be found.
    """
    if count < 0 or count * MIN_RECORD_BYTES > len(body):
        raise InvalidRecord(f"{count} records cannot be in {len(body)} bytes")
    at = 0
    try:
        for _ in range(count):
            end, time_delta, offset_delta = _times_at(body, at)
            if time_delta >= least_time_delta and offset_delta >= least_offset_delta:
                return offset_delta, time_delta
            at = end
    except IndexError:
        raise InvalidRecord(f"a record runs past the end of its batch at byte {at}") from None
    return None


def latest(body: bytes, count: int, least_offset_delta: int) -> tuple[int, int] | None:
    """(offset delta, time delta) of the first of the youngest records that are not before the offset."""
    if count < 0 or count * MIN_RECORD_BYTES > len(body):
        raise InvalidRecord(f"{count} records cannot be in {len(body)} bytes")
    best: tuple[int, int] | None = None
    at = 0
    try:
        for _ in range(count):
            end, time_delta, offset_delta = _times_at(body, at)
            if offset_delta >= least_offset_delta and (best is None or time_delta > best[1]):
                best = offset_delta, time_delta
            at = end
    except IndexError:
        raise InvalidRecord(f"a record runs past the end of its batch at byte {at}") from None
    return best


def _times_at(body: bytes, start: int) -> tuple[int, int, int]:
    """(where the record at `start` ends, its time delta, its offset delta)."""
    size = body[start]
    if size < 0x80:
        at = start + 1
    else:
        size, at = _unsigned(body, start)
    end = at + (size >> 1)
    if size & 1 or size < (MIN_RECORD_BYTES - 1) * 2 or end > len(body):
        raise InvalidRecord(f"a record ends at byte {end} of {len(body)}")
    at += 1  # attributes
    time_delta = body[at]
    if time_delta < 0x80:
        at += 1
    else:
        time_delta, at = _unsigned(body, at)
    offset_delta = body[at]
    if offset_delta >= 0x80:
        offset_delta, at = _unsigned(body, at)
    return end, (time_delta >> 1) ^ -(time_delta & 1), offset_delta >> 1


def move_base_timestamp(body: bytes, bounds: Sequence[int], later_by: int) -> bytes:
    """The same records under a base timestamp that is `later_by` larger: only the deltas change."""
    parts = []
    for place in range(len(bounds) - 1):
        attributes_at, delta, rest_at = _behind_timestamp(body, bounds[place])
        attributes = body[attributes_at : attributes_at + 1]
        changed = attributes + varint(delta - later_by) + body[rest_at : bounds[place + 1]]
        parts.append(varint(len(changed)))
        parts.append(changed)
    return b"".join(parts)


def _behind_timestamp(body: bytes, start: int) -> tuple[int, int, int]:
    """(where the attributes are, timestamp delta, where the offset delta is) of the record at `start`."""
    _, attributes_at = _unsigned(body, start)
    raw, at = _unsigned(body, attributes_at + 1)
    return attributes_at, (raw >> 1) ^ -(raw & 1), at


def _length(body: bytes, at: int) -> tuple[int, int]:
    """Where the field ends whose length is at `at`, and where it begins."""
    raw, at = _unsigned(body, at)
    return at + (raw >> 1), at


def _unsigned(body: bytes, at: int) -> tuple[int, int]:
    """A varint before its zig-zag is undone, and where it ends."""
    raw = 0
    for shift in range(0, 70, 7):
        byte = body[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw, at
    raise InvalidRecord(f"a varint of more than 10 bytes at {at - 10}")


def varint(number: int) -> bytes:
    """Zig-zag, seven bits a byte, lowest first."""
    raw = (number << 1) ^ (number >> 63)
    out = bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)
