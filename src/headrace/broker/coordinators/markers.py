"""The control batch that ends a transaction in one partition."""

from __future__ import annotations

from headrace.protocol.control_records import end_marker
from headrace.protocol.records import encode_batch


def end_batch(
    producer: tuple[int, int], *, coordinator_epoch: int, committed: bool, now_ms: int
) -> bytearray:
    producer_id, producer_epoch = producer
    return encode_batch(
        [end_marker(commit=committed, coordinator_epoch=coordinator_epoch, timestamp=now_ms)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )
