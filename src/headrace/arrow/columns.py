"""The columns of records as bytes in Arrow's layout, filled batch by batch.

`compiled_columns.c` is the same class, which some wheels have: `column_maker` takes it where it is there.
Both give the same bytes, and refuse the same batches; a batch that is refused leaves nothing behind.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final, NamedTuple, Protocol

from headrace.core.ports import Buffer
from headrace.protocol.batch import BatchHeader
from headrace.protocol.records import Headers, Record, decode_body

FIRST: Final = -(1 << 63)
END: Final = (1 << 63) - 1
_NUMBERS: Final = 1 << 64


class Wanted(NamedTuple):
    """What costs something to bring along. Offsets, times and their types always come."""

    keys: bool = True
    values: bool = True
    headers: bool = True


class Bounds(NamedTuple):
    """Records outside of them are left out: offsets and milliseconds, the first one and the one behind."""

    first_offset: int = FIRST
    next_offset: int = END
    first_ms: int = FIRST
    next_ms: int = END


Binary = tuple[Buffer, Buffer, Buffer | None]
"""Ends as int32, one more than there are rows; the bytes; a bit for each row that is not null, or None."""


class Taken(NamedTuple):
    rows: int
    offsets: Buffer
    timestamps: Buffer
    types: Buffer
    """0: the producer's time, 1: the broker's, as int32."""
    keys: Binary | None
    values: Binary | None
    header_ends: Buffer | None
    header_names: Binary | None
    header_values: Binary | None


class Columns(Protocol):
    @property
    def rows(self) -> int: ...

    @property
    def size(self) -> int:
        """Bytes of keys, values and headers."""
        ...

    def add(self, header: BatchHeader, body: Buffer) -> None:
        """Take in the records of a batch, without their compression. InvalidRecord if they are none."""
        ...

    def take(self) -> tuple[object, ...]:
        """The fields of `Taken`; the next ones begin."""
        ...


class _BinaryColumn:
    def __init__(self) -> None:
        self.ends = array("i", (0,))
        self.data = bytearray()
        self.valid = bytearray()
        """A byte for each row."""

    def put(self, contents: Sequence[bytes | None]) -> None:
        there = [content or b"" for content in contents]
        ends = accumulate(map(len, there), initial=len(self.data))
        next(ends)
        self.ends.extend(ends)
        self.data += b"".join(there)
        self.valid += bytes([content is not None for content in contents])

    def take(self) -> Binary:
        valid = self.valid
        bits = None
        if 0 in valid:
            padded = valid + bytes(-len(valid) % 8)
            bits = bytes(sum(padded[at + bit] << bit for bit in range(8)) for at in range(0, len(padded), 8))
        return self.ends.tobytes(), bytes(self.data), bits


class RecordColumns:
    def __init__(self, wanted: Wanted, bounds: Bounds) -> None:
        self._wanted = wanted
        self._bounds = bounds
        self._begin()

    def _begin(self) -> None:
        self._offsets = array("q")
        self._timestamps = array("q")
        self._types = array("i")
        self._keys = _BinaryColumn()
        self._values = _BinaryColumn()
        self._header_ends = array("i", (0,))
        self._header_names = _BinaryColumn()
        self._header_values = _BinaryColumn()

    @property
    def rows(self) -> int:
        return len(self._offsets)

    @property
    def size(self) -> int:
        columns = (self._keys, self._values, self._header_names, self._header_values)
        return sum(len(column.data) for column in columns)

    def add(self, header: BatchHeader, body: Buffer) -> None:
        first_offset, next_offset, first_ms, next_ms = self._bounds
        rows = [
            record
            for record in map(_in_64_bits, decode_body(header, bytes(body)))
            if first_offset <= record[0] < next_offset and first_ms <= record[1] < next_ms
        ]
        if not rows:
            return
        offsets, timestamps, keys, values, headers = zip(*rows, strict=True)
        self._offsets.extend(offsets)
        self._timestamps.extend(timestamps)
        self._types.extend([int(header.is_log_append_time)] * len(rows))
        if self._wanted.keys:
            self._keys.put(keys)
        if self._wanted.values:
            self._values.put(values)
        if self._wanted.headers:
            self._put_headers(headers)

    def _put_headers(self, headers: Sequence[Headers]) -> None:
        ends = accumulate(map(len, headers), initial=self._header_ends[-1])
        next(ends)
        self._header_ends.extend(ends)
        pairs = [pair for each in headers for pair in each]
        self._header_names.put([name.encode("utf-8", "surrogateescape") for name, _ in pairs])
        self._header_values.put([value for _, value in pairs])

    def take(self) -> Taken:
        keys, values, headers = self._wanted
        taken = Taken(
            self.rows,
            self._offsets.tobytes(),
            self._timestamps.tobytes(),
            self._types.tobytes(),
            self._keys.take() if keys else None,
            self._values.take() if values else None,
            self._header_ends.tobytes() if headers else None,
            self._header_names.take() if headers else None,
            self._header_values.take() if headers else None,
        )
        self._begin()
        return taken


def _in_64_bits(record: Record) -> Record:
    """As Java adds, and C where it is told to."""
    if record[0] <= END and FIRST <= record[1] <= END:
        return record
    offset, timestamp = ((number - FIRST) % _NUMBERS + FIRST for number in record[:2])
    return record._replace(offset=offset, timestamp=timestamp)


def column_maker() -> Callable[[Wanted, Bounds], Columns]:
    """The compiled class where the installed wheel has it."""
    try:
        from headrace.arrow.compiled_columns import RecordColumns as Compiled
    except ModuleNotFoundError:
        return RecordColumns
    return Compiled
