"""What a consumer may see of the bytes that a fetch returned."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from headrace.core.ports import Buffer
from headrace.protocol import batch as batches
from headrace.protocol.control_records import ControlType, control_type
from headrace.protocol.records import Record, decode_records


def visible_batches(
    data: Buffer, aborted: Iterable[tuple[int, int]] = ()
) -> Iterator[tuple[int, batches.BatchHeader, bool]]:
    """(position, header, whether its records are for the consumer) of each whole batch, checked.

    `aborted` are (producer id, first offset) of transactions that were given up; only a fetch that asked for
    committed records has them. A producer's batches are hidden from that offset on until its abort marker.
    """
    coming = deque(sorted(aborted, key=lambda transaction: transaction[1]))
    hidden: set[int] = set()
    for at, _ in batches.iterate(data):
        header = batches.check(data, at)
        while coming and coming[0][1] <= header.last_offset:
            hidden.add(coming.popleft()[0])
        if header.is_control:
            if header.producer_id in hidden and _is_abort(data, at):
                hidden.discard(header.producer_id)
            yield at, header, False
        else:
            yield at, header, not (header.is_transactional and header.producer_id in hidden)


def _is_abort(data: Buffer, at: int) -> bool:
    return any(control_type(record) == ControlType.ABORT for record in decode_records(data, at))


def records_from(
    data: Buffer, offset: int, aborted: Iterable[tuple[int, int]] = ()
) -> tuple[list[Record], int]:
    """The records from `offset` on, and the offset to ask for next.

    A fetch returns whole batches, so the first may begin before what was asked for.
    """
    records: list[Record] = []
    position = offset
    for at, header, shown in visible_batches(data, aborted):
        if shown:
            records += (record for record in decode_records(data, at) if record.offset >= offset)
        position = max(position, header.next_offset)
    return records, position
