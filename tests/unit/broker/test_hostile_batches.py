"""What a producer's batch claims is checked before anything is made of it: checksum, length and counts."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest

from headrace.network.response import Response
from headrace.protocol import batch as batches
from headrace.protocol import compression
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.primitives import Reader
from headrace.protocol.records import NewRecord, encode_batch
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.rights import Authorizer
from tests.unit.broker.serving import TOPIC, Server, sent
from tests.unit.log.material import NOW, topic_config

VERSION = 11
GOOD = bytes(encode_batch([NewRecord(b"v" * 500, b"k", NOW)], compression=compression.Compression.GZIP))


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server(isr=(1,))
    yield made
    made.close()


def send(server: Server, records: bytes, transactional_id: str | None = None) -> ErrorCode:
    data = [PartitionProduceData(index=0, records=records)]
    request = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        transactional_id=transactional_id,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=data)],
    )
    answer: Response = server.ask(request, VERSION)
    response = ProduceResponse.decode(Reader(sent(answer), 5), VERSION)
    return ErrorCode(response.responses[0].partition_responses[0].error_code)


def changed(at: int, form: str, value: int, *, reseal: bool = True) -> bytes:
    made = bytearray(GOOD)
    struct.pack_into(form, made, at, value)
    if reseal:
        batches.reseal(made, 0, len(made))
    return bytes(made)


REFUSED = {
    "a bit of the records": (changed(len(GOOD) - 3, ">B", 0x5A, reseal=False), ErrorCode.CORRUPT_MESSAGE),
    "a checksum of nothing": (changed(17, ">I", 0, reseal=False), ErrorCode.CORRUPT_MESSAGE),
    "two batches": (GOOD + GOOD, ErrorCode.INVALID_RECORD),
    "bytes behind it": (GOOD + b"\0", ErrorCode.INVALID_RECORD),
    "a byte too few": (GOOD[:-1], ErrorCode.INVALID_RECORD),
    "a length beyond the request": (changed(8, ">i", 0x7FFFFFFF, reseal=False), ErrorCode.INVALID_RECORD),
    "a negative length": (changed(8, ">i", -1, reseal=False), ErrorCode.CORRUPT_MESSAGE),
    "magic 1": (changed(16, ">b", 1, reseal=False), ErrorCode.INVALID_RECORD),
    "more records than offsets": (changed(57, ">i", 2), None),
    "a delta without records": (changed(23, ">i", 5), None),
    "2^31-1 records": (changed(57, ">i", 0x7FFFFFFF), None),
    "an offset of its own": (changed(0, ">q", 7, reseal=False), ErrorCode.INVALID_RECORD),
    "nothing": (b"", None),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_nothing_of_it_is_opened_or_stored(
    server: Server, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Also on a topic whose batches are opened, to be compressed in another way."""
    opened: list[int] = []

    def noted(codec: int, *rest: Any) -> bytes:
        opened.append(codec)
        return compression.decompress(codec, *rest)

    monkeypatch.setattr("headrace.protocol.records.decompress", noted)
    records, code = REFUSED[what]
    server.partition.log.update_config(topic_config(compression_type="zstd"))
    told = send(server, records)
    assert told == code if code is not None else told != ErrorCode.NONE
    assert opened == []
    assert server.partition.log.end_offset == 0
    assert send(server, GOOD) == ErrorCode.NONE, "the good one is taken"
    assert opened == [compression.Compression.GZIP]


def rule(kind: ResourceType, name: str) -> AclRule:
    return AclRule(kind, name, PatternType.LITERAL, "User:alice", "*", Operation.WRITE, Permission.ALLOW)


async def test_transactional_records_need_the_right_on_the_id_that_they_are_for(server: Server) -> None:
    """Whoever may write to the topic, and to another transactional id, may not write in this one's name."""
    rules = [rule(ResourceType.TOPIC, TOPIC), rule(ResourceType.TRANSACTIONAL_ID, "own")]
    server.connection.rights = Authorizer(AclIndex(rules)).rights_of("User:alice", "10.0.0.1")
    of_a_transaction = bytes(
        encode_batch(
            [NewRecord(b"v", b"k", NOW)], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
        )
    )
    for name in (None, "of-another", ""):
        told = send(server, of_a_transaction, name)
        assert told == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, name
    assert server.partition.log.end_offset == 0
    assert send(server, GOOD) == ErrorCode.NONE
