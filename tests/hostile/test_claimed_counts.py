"""Counts and lengths of every request, each in turn as large as it can be said: nothing is made of them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest

from headrace.broker.requests.apis import APIS
from headrace.broker.requests.request_reading import read_request
from headrace.broker.requests.request_shapes import SHAPES
from headrace.core.errors import HeadraceError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.fetch_codec import parse_fetch
from headrace.protocol.headers import LENGTH_SIZE, frame_request, read_request_header
from headrace.protocol.message import Message
from headrace.protocol.messages.fetch_request import FetchRequest
from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.protocol.produce_codec import parse_produce
from tests.property.drawn_messages import DrawnReader

LARGEST = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\xff\xff\x7f", b"\x7f\xff")
"""As a count of 32 bits, as a compact one, as two millions in a few bytes, as a length of 16 bits."""
MOST_BYTES = 128 * 1024
"""Of memory, for a request of some hundred bytes."""
BY_KEY = {int(api.key): api for api in APIS}


def requests() -> Iterator[tuple[str, bytes]]:
    """Every API, in its first and its last version, with something in each array."""
    for api in APIS:
        lowest = max(api.lowest, api.request.MIN_VERSION)
        for version in {lowest, api.highest}:
            drawn = DrawnReader(b"\x02\x03" * 30, modest=True)
            request = api.request.decode(drawn, version)  # type: ignore[arg-type]  # has every method of a Reader
            yield f"{api.key.name} {version}", frame_request(request, version, 7, "x")[LENGTH_SIZE:][:400]


def read(frame: bytes) -> None:
    view = memoryview(frame)
    header, at = read_request_header(view)
    api = BY_KEY[header.api_key]
    if api.key is ApiKey.PRODUCE:
        parse_produce(view, at, header.api_version)
    elif api.key is ApiKey.FETCH:
        parse_fetch(view, at, header.api_version)
    else:
        shape = SHAPES.get(header.api_key << 8 | header.api_version)
        read_request(api, view, at, header.api_version, shape)


@pytest.mark.parametrize("large", LARGEST, ids=bytes.hex)
def test_no_count_of_any_request_makes_memory(large: bytes) -> None:
    frames = list(requests())
    for _, frame in frames:
        read(frame) if len(frame) < 400 else None  # what is imported or kept at the first time
    worst: list[tuple[str, int, int]] = []
    refused = 0
    tracemalloc.start()
    try:
        for name, frame in frames:
            for at in range(8, len(frame)):
                changed = frame[:at] + large + frame[at + len(large) :]
                tracemalloc.reset_peak()
                before = tracemalloc.get_traced_memory()[0]
                try:
                    read(changed)
                except HeadraceError:
                    refused += 1
                peak = tracemalloc.get_traced_memory()[1] - before
                if peak > MOST_BYTES:
                    worst.append((name, at, peak))
    finally:
        tracemalloc.stop()
    assert worst == []
    assert refused > 1000


@pytest.mark.parametrize("request_class", [MetadataRequest, FetchRequest], ids=["no tags", "some tags"])
def test_tags_that_nobody_knows_leave_nothing_behind(request_class: type[Message]) -> None:
    """A thousand of them are skipped, not kept, whether the message has tagged fields of its own or not."""
    version = request_class.MAX_VERSION
    whole = request_class().to_bytes(version)
    assert whole[-1:] == b"\0", "no tags"
    body = whole[:-1] + b"\x80\x08" + b"\x50\x00" * 1024
    request_class.from_bytes(body, version)
    tracemalloc.start()
    try:
        request_class.from_bytes(body, version)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4096
