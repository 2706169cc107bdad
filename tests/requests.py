"""Requests that several suites send by hand."""

from __future__ import annotations

from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.messages.fetch_response import FetchResponse
from tests.wire import Wire

#: The last version that names topics by their names.
FETCH_BY_NAME = 12


def fetch_request(
    topic: str,
    partition: int = 0,
    offset: int = 0,
    *,
    max_bytes: int = 50 << 20,
    partition_max_bytes: int = 50 << 20,
    min_bytes: int = 0,
    max_wait_ms: int = 0,
) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_epoch=-1,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes
                    )
                ],
            )
        ],
    )


def fetch_records(wire: Wire, topic: str, partition: int = 0, offset: int = 0) -> bytes:
    """The stored bytes from the batch that holds `offset` on, as far as one answer brings them."""
    answer = wire.ask(fetch_request(topic, partition, offset), FETCH_BY_NAME, FetchResponse)
    found = answer.responses[0].partitions[0]
    assert found.error_code == 0, found.error_code
    return bytes(found.records or b"")
