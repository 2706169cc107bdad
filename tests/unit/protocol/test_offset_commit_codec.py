"""The narrow codec of OffsetCommit reads and writes what the generated classes do, whatever it is given."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.headers import frame_request, frame_response, read_request_header
from headrace.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from headrace.protocol.offset_commit_codec import frame_answer, read_request
from headrace.protocol.primitives import ProtocolError, Reader

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TEXT = st.text(max_size=8) | st.integers(120, 300).map(lambda size: "x" * size)
VERSIONS = st.sampled_from((7, 8, 9))

REQUESTS = st.builds(
    OffsetCommitRequest,
    group_id=TEXT,
    generation_id_or_member_epoch=INT32,
    member_id=TEXT,
    group_instance_id=st.none() | TEXT,
    topics=st.lists(
        st.builds(
            OffsetCommitRequestTopic,
            name=TEXT,
            partitions=st.lists(
                st.builds(
                    OffsetCommitRequestPartition,
                    partition_index=INT32,
                    committed_offset=INT64,
                    committed_leader_epoch=INT32,
                    committed_metadata=st.none() | TEXT,
                ),
                max_size=4,
            ),
        ),
        max_size=3,
    ),
)


def both(body: bytes, version: int) -> tuple[object, object]:
    """What each of the two makes of it; an error by its text."""

    def attempt(read: Callable[[], OffsetCommitRequest]) -> object:
        try:
            return read()
        except ProtocolError as error:
            return str(error)

    view = memoryview(body)
    return (
        attempt(lambda: read_request(view, 0, version)),
        attempt(lambda: OffsetCommitRequest.decode(Reader(view), version)),
    )


@given(REQUESTS, VERSIONS)
def test_a_request_is_read_as_by_the_generated_class(request: OffsetCommitRequest, version: int) -> None:
    frame = memoryview(frame_request(request, version, 1, "client"))[4:]
    _, at = read_request_header(frame)

    assert read_request(frame, at, version) == request


@given(REQUESTS, st.data())
def test_what_is_cut_off_or_damaged_ends_alike(request: OffsetCommitRequest, data: st.DataObject) -> None:
    body = bytearray(request.to_bytes(9))
    cut = data.draw(st.integers(0, len(body)))
    ours, theirs = both(bytes(body[:cut]), 9)
    assert ours == theirs

    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    ours, theirs = both(bytes(body), 9)
    assert ours == theirs


def test_tagged_fields_are_passed_over() -> None:
    request = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t")])
    body = request.to_bytes(9)[:-1] + b"\x01\x63\x02ab"

    assert read_request(memoryview(body), 0, 9) == request


@pytest.mark.parametrize("version", [7, 8, 9, 10])
@pytest.mark.parametrize("rows", [0, 1, 126, 127])
@pytest.mark.parametrize("topics", [0, 1, 2, 127])
def test_an_answer_is_framed_as_by_the_generated_class(version: int, rows: int, topics: int) -> None:
    response = OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name="topic-ü" if version < 10 else "",
                topic_id=UUID(int=7) if version >= 10 else UUID(int=0),
                partitions=[
                    OffsetCommitResponsePartition(partition_index=index, error_code=index % 3)
                    for index in range(rows)
                ],
            )
        ]
        * topics
    )

    assert frame_answer(response, version, 77) == frame_response(response, version, 77)
