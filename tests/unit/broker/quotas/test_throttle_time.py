"""`throttle_time_ms` is written where the message has it, for every API and version."""

from __future__ import annotations

import pytest

from headrace.broker.quotas import throttle_time
from headrace.broker.quotas.throttle_time import place_of, write_throttle_time
from headrace.broker.requests.apis import BY_KEY, response_class
from headrace.core.ports import FileRange
from headrace.log.os_disk import OsDisk
from headrace.network.response import Parts
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.headers import frame_response
from headrace.protocol.messages.fetch_response import FetchResponse
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.protocol.messages.produce_response import NodeEndpoint, ProduceResponse

THROTTLE_MS = 1234
SERVED = [
    (key, version)
    for key, api in BY_KEY.items()
    for version in range(api.lowest, api.highest + 1)
    if not (key == ApiKey.PRODUCE and version < 3)
]
NOT_TOLD = {ApiKey.API_VERSIONS, ApiKey.OFFSET_DELETE}
"""The field stands in the middle, or before what may look like it."""


def joined(parts: Parts) -> bytes:
    assert not any(isinstance(part, FileRange) for part in parts)
    return b"".join(bytes(part) for part in parts)  # type: ignore[arg-type]  # no range is among them


@pytest.mark.parametrize(("key", "version"), SERVED)
def test_it_is_as_if_the_answer_had_been_encoded_with_it(key: int, version: int) -> None:
    kind = response_class(key)
    before = frame_response(kind(), version, 77)
    try:
        after = frame_response(kind(throttle_time_ms=THROTTLE_MS), version, 77)  # type: ignore[call-arg]
    except TypeError:
        after = before  # there is no such field
    parts: Parts = [before]
    write_throttle_time(parts, kind, version, THROTTLE_MS)
    assert joined(parts) == (before if key in NOT_TOLD else after)


def test_the_field_is_found_in_a_later_part_and_no_part_is_changed() -> None:
    whole = frame_response(MetadataResponse(), 12, 5)
    for cut in range(len(whole)):
        before: Parts = [whole[:cut], whole[cut:]]
        parts = list(before)
        write_throttle_time(parts, MetadataResponse, 12, THROTTLE_MS)
        found = joined(parts)
        if cut <= 9 or cut >= 13:  # not within the field
            assert found == frame_response(MetadataResponse(throttle_time_ms=THROTTLE_MS), 12, 5)
        else:
            assert found == whole
        assert joined(before) == whole


def test_behind_records_in_a_file_nothing_is_looked_for(tmp_path: object) -> None:
    path = f"{tmp_path}/records"
    with open(path, "wb") as file:
        file.write(b"r" * 100)
    opened = OsDisk().open(path)
    head = frame_response(FetchResponse(), 12, 5)
    parts: Parts = [head, FileRange(opened, 0, 100), b"tail"]
    write_throttle_time(parts, FetchResponse, 12, THROTTLE_MS)
    assert joined(parts[:-2]) == frame_response(FetchResponse(throttle_time_ms=THROTTLE_MS), 12, 5)
    assert isinstance(parts[-2], FileRange)
    opened.close()


@pytest.mark.parametrize("rack", [None, "", "r"])
@pytest.mark.parametrize("port", [1, 256, 9092, 65535])
def test_an_answer_that_names_new_leaders_is_left_as_it_is(port: int, rack: str | None) -> None:
    """The tagged fields stand behind the field there: how many bytes they take, nobody knows."""
    response = ProduceResponse(node_endpoints=[NodeEndpoint(node_id=0, host="", port=port, rack=rack)])
    frame = frame_response(response, 10, 5)
    parts: Parts = [frame]
    write_throttle_time(parts, ProduceResponse, 10, THROTTLE_MS)
    assert joined(parts) == frame


def test_places() -> None:
    assert place_of(ProduceResponse, 8) == place_of(ProduceResponse, 9) == throttle_time.LAST
    assert place_of(FetchResponse, 4) == place_of(FetchResponse, 18) == throttle_time.FIRST
    assert place_of(MetadataResponse, 2) == throttle_time.NOWHERE
