"""Places in Postgres' write-ahead log, as its functions print them: 16/B374D848."""

from __future__ import annotations

from typing import Final

from headrace.core.errors import HeadraceError

PAGE_BYTES: Final = 8192
_HEADERS: Final = (24, 40)
"""What stands at the beginning of a page, and of a segment's first page."""


class BadLsn(HeadraceError):
    """A text is no place in a log."""


def lsn_of(text: str) -> int:
    high, slash, low = text.partition("/")
    try:
        if not slash:
            raise ValueError
        return (int(high, 16) << 32) | int(low, 16)
    except ValueError:
        raise BadLsn(f"{text!r} is no place in Postgres' log: they look like 16/B374D848") from None


def lsn_text(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def last_byte_written(insert: int) -> int:
    """Where the last record ends, if the next one goes to `insert`. At the beginning of a page the next one
    goes behind the page's header, which is not written before it: whoever waits until the log is flushed up
    to `insert` would wait for that record."""
    return insert - insert % PAGE_BYTES if insert % PAGE_BYTES in _HEADERS else insert
