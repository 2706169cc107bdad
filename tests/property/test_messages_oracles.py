"""Two other codecs, kio and kafka-python, read what we write and write the same bytes again.

Both are generated from Kafka's definitions by other people's generators, so a mistake in ours shows here.
What they do not know is listed below and held to: a message may not drop out of the comparison in silence.
Stored records have no such oracle; Apache Kafka's own tools read them in the compatibility tests.
"""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import UnknownEntity, load_entity_schema
from kio.schema.index import LoadableEntityType
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from headrace.protocol.message import Message
from headrace.protocol.messages.api_versions_response import ApiVersionsResponse
from tests.property.drawn_messages import all_messages, draw, versions
from tests.property.kafka_python_codec import kafka_python_again, kafka_python_classes

WIRE_MESSAGES = [each for each in all_messages() if ".messages." in each.__module__]

# kio 0.6.5 was made from Kafka 4.3: the versions and APIs that 4.4 added are missing.
UNKNOWN_TO_KIO = {
    "AbortedTxn": {0},
    "ApiVersionsRequest": {5},
    "ApiVersionsResponse": {5},
    "DeleteGroupsRequest": {3},
    "DeleteGroupsResponse": {3},
    "StreamsGroupDescribeRequest": {1},
    "StreamsGroupDescribeResponse": {1},
    "StreamsGroupHeartbeatRequest": {1},
    "StreamsGroupHeartbeatResponse": {1},
    "StreamsGroupTopologyDescriptionUpdateRequest": {0},
    "StreamsGroupTopologyDescriptionUpdateResponse": {0},
    "TxnOffsetCommitRequest": {6},
    "TxnOffsetCommitResponse": {6},
    "UnregisterControllerRequest": {0},
    "UnregisterControllerResponse": {0},
}

# kafka-python 3.0.12 has what a client needs: nothing for share and streams groups, KRaft, telemetry,
# delegation tokens, brokers among themselves or the control records. Of the rest, these are newer than it.
UNKNOWN_VERSIONS_TO_KAFKA_PYTHON = {
    "ApiVersionsRequest": {5},
    "ApiVersionsResponse": {5},
    "DeleteGroupsRequest": {3},
    "DeleteGroupsResponse": {3},
    "TxnOffsetCommitRequest": {6},
    "TxnOffsetCommitResponse": {6},
}
KNOWN_TO_KAFKA_PYTHON = 106


def kio_entity(message: type[Message], version: int) -> Any | None:
    name = message.__module__.rpartition(".")[2]
    kind: LoadableEntityType = EntityType.data
    if name in ("request_header", "response_header"):
        kind = EntityType.header
    elif name.endswith("_request"):
        name, kind = name.removesuffix("_request"), EntityType.request
    elif name.endswith("_response"):
        name, kind = name.removesuffix("_response"), EntityType.response
    try:
        return load_entity_schema(name.replace("kraft", "k_raft"), version, kind)
    except UnknownEntity:
        return None


def test_what_kio_does_not_know() -> None:
    unknown = {
        message.__name__: {version for version in versions(message) if kio_entity(message, version) is None}
        for message in WIRE_MESSAGES
    }
    assert {name: missing for name, missing in unknown.items() if missing} == UNKNOWN_TO_KIO


def test_what_kafka_python_does_not_know() -> None:
    known = [each for each in WIRE_MESSAGES if each.__name__ in kafka_python_classes()]
    assert len(known) == KNOWN_TO_KAFKA_PYTHON
    newest = {each.__name__: kafka_python_classes()[each.__name__].max_version for each in known}
    unknown = {
        each.__name__: set(range(newest[each.__name__] + 1, each.MAX_VERSION + 1))
        for each in known
        if newest[each.__name__] < each.MAX_VERSION
    }
    assert unknown == UNKNOWN_VERSIONS_TO_KAFKA_PYTHON


@pytest.mark.parametrize("message", WIRE_MESSAGES, ids=lambda message: message.__name__)
@settings(max_examples=10, deadline=None, database=None)
@given(source=st.binary(max_size=200))
def test_kio_writes_the_same(message: type[Message], source: bytes) -> None:
    for version in versions(message):
        entity = kio_entity(message, version)
        if entity is None:
            continue
        raw = draw(message, version, source, modest=True).to_bytes(version)
        read, _ = entity_reader(entity)(raw, 0)
        again = io.BytesIO()
        entity_writer(entity)(again, read)
        assert again.getvalue() == raw


@pytest.mark.parametrize(
    "message",
    [each for each in WIRE_MESSAGES if each.__name__ in kafka_python_classes()],
    ids=lambda message: message.__name__,
)
@settings(max_examples=10, deadline=None, database=None)
@given(source=st.binary(max_size=200))
def test_kafka_python_writes_the_same(message: type[Message], source: bytes) -> None:
    codec = kafka_python_classes()[message.__name__]
    for version in range(message.MIN_VERSION, min(message.MAX_VERSION, codec.max_version) + 1):
        drawn = draw(message, version, source, modest=True)
        if isinstance(drawn, ApiVersionsResponse):
            drawn.error_code = 0  # it reads any with an error as version 0, on purpose
        raw = drawn.to_bytes(version)
        assert kafka_python_again(codec, raw, version) == raw
