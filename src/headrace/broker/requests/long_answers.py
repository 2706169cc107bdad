"""An answer of many rows, encoded a few at a time as they come.

Rows are written when they are there, and a row that contains rows when the next one begins. What is left for
the end is to put pieces of bytes together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from headrace.core.ports import Buffer
from headrace.protocol.headers import LENGTH_SIZE
from headrace.protocol.message import Message, Structure
from headrace.protocol.primitives import Writer


class EncodedRows:
    """Stands where a message has a list of structures: counts as many, and writes what was written before."""

    __slots__ = ("_at", "_count", "written")

    def __init__(self, count: int, written: bytes) -> None:
        self._count = count
        self.written = written
        self._at = -1
        """Where they belong, while a message is written around them; -1: they are written with it."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[EncodedRows]:
        yield self

    def encode(self, writer: Writer, _version: int) -> None:
        if self._at == -1:
            writer.buf += self.written
        else:
            self._at = len(writer.buf)

    def framed(self, write: Callable[[], bytes]) -> list[Buffer]:
        """What `write` makes, in pieces: these rows are sent from where they are, and copied for nobody."""
        self._at = 0
        try:
            frame = write()
            at = self._at
        finally:
            self._at = -1
        length = len(frame) - LENGTH_SIZE + len(self.written)
        pieces = (length.to_bytes(LENGTH_SIZE, "big") + frame[LENGTH_SIZE:at], self.written, frame[at:])
        return [piece for piece in pieces if piece]


class Rows:
    """The list `fields[0]` of some structure; `fields[1]` is the list that each of its rows has."""

    def __init__(self, fields: Sequence[str], version: int) -> None:
        self._version = version
        self._writer = Writer()
        self._count = 0
        self._open: Structure | None = None
        """The last row, while more may come for the list that it has."""
        self._field = fields[1] if len(fields) > 1 else ""
        self._inner = Rows(fields[1:], version) if len(fields) > 1 else None

    def add(self, rows: Iterable[Any]) -> Iterator[None]:
        """A generator: it stops after each row, also after one that has none within, so that the caller can
        pause."""
        inner = self._inner
        for row in rows:
            if isinstance(row, EncodedRows):
                self._close()
                self._writer.buf += row.written
                self._count += len(row)
                yield
                continue
            if inner is None:
                row.encode(self._writer, self._version)
                self._count += 1
                yield
                continue
            within = getattr(row, self._field)
            if self._open is None or not _is_continued(self._open, row, self._field):
                self._close()
                self._count += 1
                if within is None:
                    row.encode(self._writer, self._version)
                    yield
                    continue
                self._open = row
            yield from inner.add(within)
            yield

    @property
    def size_bytes(self) -> int:
        return len(self._writer.buf) + (0 if self._inner is None else self._inner.size_bytes)

    def add_within(self, rows: Iterable[Any]) -> Iterator[None]:
        """More of the list that the last row has."""
        assert self._inner is not None
        return self._inner.add(rows)

    def take(self) -> EncodedRows:
        """All that was added since the last time."""
        self._close()
        taken = EncodedRows(self._count, self._writer.getvalue())
        self._writer, self._count = Writer(), 0
        return taken

    def _close(self) -> None:
        row, self._open = self._open, None
        if row is not None and self._inner is not None:
            setattr(row, self._field, self._inner.take())
            row.encode(self._writer, self._version)


def _is_continued(first: Structure, second: Structure, field: str) -> bool:
    """Whether the second goes on with the list of the first: all else that they say is the same."""
    return all(getattr(first, name) == getattr(second, name) for name in first.__slots__ if name != field)


class LongAnswer:
    """The answers to the parts of one request, as one."""

    def __init__(self, fields: Sequence[str], version: int) -> None:
        self._fields = fields
        self._rows = Rows(fields, version)
        self._whole: Message | None = None
        self.is_refused = False

    def add(self, answer: Message) -> Iterator[None]:
        """A generator: it stops after each row. A part that is refused as a whole stands for all of them."""
        self._whole = answer
        if getattr(answer, "error_code", 0):
            self.is_refused = True
            return iter(())
        return self._rows.add(getattr(answer, self._fields[0]))

    @property
    def size_bytes(self) -> int:
        return self._rows.size_bytes

    def whole(self) -> Message:
        assert self._whole is not None, "a request has at least one part"
        if not self.is_refused:
            setattr(self._whole, self._fields[0], self._rows.take())
        return self._whole
