"""Input of `headrace produce`: bytes cut into records, and each into key and value."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Protocol, cast

from headrace.protocol.records import Headers, NewRecord

_CHUNK = 1 << 16


class ByteSource(Protocol):
    def read1(self, size: int, /) -> bytes: ...


class _Unbuffered:
    """A descriptor, read as it comes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read1(self, size: int, /) -> bytes:
        return os.read(self._descriptor, size)


def standard_input() -> ByteSource:
    """Without Python's own buffer where that is possible: a thread that waits in a read of it holds its lock,
    and an interpreter that ends meanwhile, as after Ctrl-C, aborts."""
    try:
        return _Unbuffered(sys.stdin.fileno())
    except (OSError, ValueError):  # no file: a test's
        return cast("ByteSource", sys.stdin.buffer)


def split_records(source: ByteSource, delimiter: bytes) -> Iterator[list[bytes]]:
    """What stands between delimiters, as many at a time as one read brings; a rest without one counts too."""
    rest = b""
    while chunk := source.read1(_CHUNK):
        *complete, rest = (rest + chunk).split(delimiter)
        if complete:
            yield complete
    if rest:
        yield [rest]


def record_maker(
    *,
    key: bytes | None = None,
    key_delimiter: bytes | None,
    empty_as_null: bool,
    headers: Headers,
    now_ms: Callable[[], int],
) -> Callable[[bytes], NewRecord]:
    """How a line becomes a record. Without the delimiter in it, a line is a value; `key` is that of all."""
    key_of_all = key

    def make(line: bytes) -> NewRecord:
        key = key_of_all
        value: bytes | None = line
        if key_delimiter is not None:
            before, found, after = line.partition(key_delimiter)
            if found:
                key, value = before, after
        if empty_as_null:
            key, value = key or None, value or None
        return NewRecord(value, key, now_ms(), headers)

    return make
