"""What is fuzzed: each target takes any bytes, and may fail with an error that this project raises itself.

Whatever else comes out is a crash: another exception, an answer that contradicts itself, more than a second
of the processor's time (under instrumentation), more memory than libFuzzer's limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from headrace.broker.requests.apis import BY_KEY
from headrace.broker.requests.request_reading import read_request
from headrace.broker.requests.request_shapes import SHAPES
from headrace.core.errors import HeadraceError
from headrace.log import checkpoints, producer_snapshot
from headrace.protocol import batch, compression, record_spans
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.fetch_codec import parse_fetch
from headrace.protocol.headers import read_request_header
from headrace.protocol.produce_codec import parse_produce
from headrace.protocol.records import decode_records, open_batch
from headrace.protocol.replica_fetch_codec import parse_replica_fetch
from tests.hostile.fuzz.damaged_log import open_damaged
from tests.hostile.fuzz.security_targets import SECURITY_TARGETS

Target = Callable[[bytes], None]
MOST_SECONDS: Final = 1.0
_CAP: Final = 1 << 20


class Contradiction(AssertionError):
    """The code took the bytes and says of them what cannot be."""


def frames(data: bytes) -> None:
    """A request without its length, as a connection hands it over: header, then body."""
    view = memoryview(data)
    header, at = read_request_header(view)
    api = BY_KEY.get(header.api_key)
    if api is None or not api.lowest <= header.api_version <= api.highest:
        return
    if api.key is ApiKey.PRODUCE:
        parse_produce(view, at, header.api_version)
    elif api.key is ApiKey.FETCH:
        parse_fetch(view, at, header.api_version)
    else:
        shape = SHAPES.get(header.api_key << 8 | header.api_version)
        request = read_request(api, view, at, header.api_version, shape)
        again = api.request.from_bytes(request.to_bytes(header.api_version), header.api_version)
        if again != request:
            raise Contradiction(f"{request!r} is written as {again!r}")


def answers(data: bytes) -> None:
    """What a follower is told by its leader."""
    parse_replica_fetch(memoryview(data))


def batches(data: bytes) -> None:
    """A batch of a producer, with the checksum made right: whoever sends noise can do that too."""
    fixed = bytearray(data)
    if len(fixed) >= batch.HEADER_SIZE:
        batch.reseal(fixed, 0, len(fixed))
    header = batch.check(fixed)
    try:
        body = open_batch(fixed, max_bytes=_CAP)[1]
        record_spans.read_keys(body, header.record_count, header.last_offset_delta)  # what compaction sees
        record_spans.read_bounds(body, header.record_count)
    except HeadraceError:
        pass
    offsets = [record.offset for record in decode_records(fixed, max_bytes=_CAP)]
    if len(offsets) != header.record_count:
        raise Contradiction(f"{len(offsets)} records, and the header says {header.record_count}")


def codecs(data: bytes) -> None:
    """The first byte chooses the codec."""
    codec = data[0] % 5 if data else 0
    opened = compression.decompress(codec, data[1:], _CAP)
    if codec and len(opened) > _CAP:
        raise Contradiction(f"{len(opened)} bytes, and {_CAP} were allowed")


def small_files(data: bytes) -> None:
    """Checkpoints, identities and snapshots. The first byte chooses which."""
    parsers: tuple[Callable[[bytes], object], ...] = (
        checkpoints.parse_offsets,
        checkpoints.parse_lines,
        checkpoints.parse_partition_metadata,
        checkpoints.parse_clean_shutdown,
        checkpoints.parse_properties,
        producer_snapshot.decode,
    )
    if data:
        parsers[data[0] % len(parsers)](data[1:])


def recovery(data: bytes) -> None:
    """A log whose files are damaged as the bytes say; what is served of it is whole."""
    open_damaged(data)


TARGETS: Final[dict[str, Target]] = {
    each.__name__: each
    for each in (frames, answers, batches, codecs, small_files, recovery, *SECURITY_TARGETS)
}


def run(name: str, data: bytes) -> None:
    """One input, judged."""
    began = time.thread_time()
    try:
        TARGETS[name](data)
    except HeadraceError:
        pass
    took = time.thread_time() - began
    if took > MOST_SECONDS:
        raise Contradiction(f"{took:.2f} s for {len(data)} bytes")
