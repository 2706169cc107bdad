"""Records out of what a broker sent, one after the other: a few kilobytes can be a batch of millions of them,
and one that a broker has not opened can be broken inside. A page must not pay for that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.client.consumer import Fetched
from headrace.client.visible import visible_batches
from headrace.core.errors import ClientError
from headrace.core.ports import Buffer
from headrace.protocol.batch import BatchHeader
from headrace.protocol.records import Record, decode_records

MOST_BYTES: Final = 64 * 1024 * 1024
"""Of a batch when it is opened."""
MOST_RECORDS: Final = 500_000
"""Of a batch: to go on within one, it is opened once more, and what comes before is passed over."""


class Batch:
    """Whoever has gone through its records goes on at `next_offset`."""

    def __init__(self, data: Buffer, at: int, header: BatchHeader, offset: int, *, shown: bool) -> None:
        self.next_offset = max(offset, header.next_offset)
        self.left_out = 0
        """Records that nobody sees, because the batch is too large or broken. Known after the others."""
        self._data = data
        self._at = at
        self._header = header
        self._offset = offset
        self._shown = shown

    def records(self) -> Iterator[Record]:
        """From the offset that was asked for."""
        if not self._shown:
            return
        left = self._header.record_count
        try:
            if left > MOST_RECORDS:
                raise ClientError
            for record in decode_records(self._data, self._at, max_bytes=MOST_BYTES):
                left -= 1
                if record.offset >= self._offset:
                    yield record
        except ClientError:
            self.left_out = left


def batches_from(fetched: Fetched) -> Iterator[Batch]:
    """Of a consumer that leaves batches as they are."""
    raw = fetched.raw
    assert raw is not None, "the consumer was told to leave batches as they are"
    for at, header, shown in visible_batches(raw.data, raw.aborted):
        if header.next_offset > raw.offset:
            yield Batch(raw.data, at, header, raw.offset, shown=shown)
