from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol import messages
from headrace.protocol.api_keys import FIRST_FLEXIBLE, ApiKey
from headrace.protocol.headers import (
    RequestHeader,
    frame_length,
    frame_request,
    frame_response,
    read_request_header,
    read_response_header,
    request_header_version,
    response_header_version,
)
from headrace.protocol.message import NEVER
from headrace.protocol.messages import request_header, response_header
from headrace.protocol.messages.api_versions_request import ApiVersionsRequest
from headrace.protocol.messages.api_versions_response import ApiVersionsResponse
from headrace.protocol.messages.heartbeat_request import HeartbeatRequest
from headrace.protocol.messages.heartbeat_response import HeartbeatResponse
from headrace.protocol.primitives import ProtocolError
from tests.property.drawn_messages import all_messages

int32 = st.integers(-(1 << 31), (1 << 31) - 1)
client_ids = st.none() | st.text(max_size=300)


@given(correlation_id=int32, client_id=client_ids, version=st.integers(0, 4), before=st.binary(max_size=3))
def test_request_headers_are_read_as_the_generated_codec_writes_them(
    correlation_id: int, client_id: str | None, version: int, before: bytes
) -> None:
    header = request_header.RequestHeader(
        request_api_key=ApiKey.HEARTBEAT,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    ).to_bytes(request_header_version(ApiKey.HEARTBEAT, version))
    frame = before + header + b"body"
    read, body = read_request_header(memoryview(frame), len(before))
    assert read == RequestHeader(ApiKey.HEARTBEAT, version, correlation_id, client_id)
    assert frame[body:] == b"body"


@given(correlation_id=int32, client_id=client_ids, version=st.integers(0, 4))
def test_a_framed_request_is_length_header_and_body(
    correlation_id: int, client_id: str | None, version: int
) -> None:
    request = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    frame = frame_request(request, version, correlation_id, client_id)
    assert frame_length(frame, 0, 1 << 20) == len(frame) - 4
    header, body = read_request_header(frame, 4)
    assert header == RequestHeader(12, version, correlation_id, client_id)
    assert HeartbeatRequest.from_bytes(frame[body:], version) == request


@given(correlation_id=int32, version=st.integers(0, 4))
def test_a_framed_response_is_length_header_and_body(correlation_id: int, version: int) -> None:
    response = HeartbeatResponse(error_code=27)
    frame = frame_response(response, version, correlation_id)
    assert frame_length(frame, 0, 1 << 20) == len(frame) - 4
    expected = response_header.ResponseHeader(correlation_id=correlation_id)
    header_version = response_header_version(ApiKey.HEARTBEAT, version)
    assert frame[4:] == expected.to_bytes(header_version) + response.to_bytes(version)
    assert read_response_header(frame, ApiKey.HEARTBEAT, version, 4)[0] == correlation_id


def test_the_api_versions_response_always_has_the_oldest_header() -> None:
    for version in range(ApiVersionsResponse.MAX_VERSION + 1):
        assert response_header_version(ApiKey.API_VERSIONS, version) == 0
    frame = frame_response(ApiVersionsResponse(), 3, 7)
    assert frame[4:8] == b"\0\0\0\x07"
    assert ApiVersionsResponse.from_bytes(frame[8:], 3) == ApiVersionsResponse()


def test_header_versions_follow_the_first_flexible_version() -> None:
    for message in all_messages():
        if message.__module__.startswith(messages.__name__) and message.__name__.endswith("Request"):
            key = message.API_KEY
            first = FIRST_FLEXIBLE.get(ApiKey(key), NEVER)
            # A message counts from its own first version, where older ones are no longer spoken.
            assert max(first, message.MIN_VERSION) == message.FIRST_FLEXIBLE
            for version in range(message.MIN_VERSION, message.MAX_VERSION + 1):
                flexible = version >= message.FIRST_FLEXIBLE
                assert request_header_version(key, version) == (2 if flexible else 1)
                if key != ApiKey.API_VERSIONS:
                    assert response_header_version(key, version) == (1 if flexible else 0)


def test_the_header_of_an_unknown_api_is_read_as_far_as_it_is_known() -> None:
    header, body = read_request_header(b"\x7f\xff\x00\x09\x00\x00\x00\x05\x00\x01cREST")
    assert header == RequestHeader(32767, 9, 5, "c")
    assert body == 11


def test_the_header_of_a_version_yet_to_come_is_flexible() -> None:
    frame = frame_request(ApiVersionsRequest(), 3, 1, "c")
    newer = frame[4:6] + b"\x00\x63" + frame[8:]
    header, body = read_request_header(newer)
    assert header.api_version == 99
    assert ApiVersionsRequest.from_bytes(newer[body:], 3) == ApiVersionsRequest()


@pytest.mark.parametrize("size", range(11))
def test_a_header_that_is_cut_off_is_refused(size: int) -> None:
    with pytest.raises(ProtocolError):
        read_request_header(b"\x00\x12\x00\x03\x00\x00\x00\x01\x00\x01c\x00"[:size])


def test_a_header_must_end_before_its_frame_does() -> None:
    whole = b"\x00\x12\x00\x03\x00\x00\x00\x01\x00\x01c\x00"
    assert read_request_header(whole)[1] == 12
    with pytest.raises(ProtocolError):
        read_request_header(whole, 0, 11)


def test_a_field_that_does_not_fit_is_our_own_mistake() -> None:
    with pytest.raises(ValueError, match="HeartbeatResponse"):
        frame_response(HeartbeatResponse(error_code=1 << 20), 0, 1)
    with pytest.raises(ValueError, match="HeartbeatResponse"):
        HeartbeatResponse(error_code=1 << 20).to_bytes(0)
