"""Everything from offset 0, by a client of somebody else, and what the bucket itself says."""

from __future__ import annotations

import json
import time
from hashlib import blake2b
from typing import Final, NamedTuple

from confluent_kafka import TopicPartition
from crc32c import crc32c
from pyarrow.fs import FileSelector, FileType

from tests.cluster.tier_fire.clients import PARTITIONS, PLAIN, make_consumer, note
from tests.cluster.tier_fire.ledger import Key, Ledger, Sent, parse
from tests.directories.object_store import BUCKET, ObjectStore

SECONDS: Final = 900


class Whole(NamedTuple):
    """One reading of everything."""

    ends: dict[Key, int]
    digests: dict[Key, dict[int, bytes]]
    """Of each offset: key, value and time."""
    rows: dict[Key, list[tuple[int, Sent]]]


def high_watermarks(bootstrap: str) -> dict[Key, int]:
    consumer = make_consumer(bootstrap)
    try:
        return {
            (name, n): consumer.get_watermark_offsets(TopicPartition(name, n), timeout=60)[1]
            for name, count in PARTITIONS.items()
            for n in range(count)
        }
    finally:
        consumer.close()


def read_all(bootstrap: str, ledger: Ledger, level: str) -> Whole:
    ends = high_watermarks(bootstrap)
    consumer = make_consumer(bootstrap, level)
    whole = Whole(ends, {key: {} for key in ends}, {key: [] for key in ends})
    last = {key: -1 for key in ends if key[0] == PLAIN}
    consumer.assign([TopicPartition(*key, 0) for key in ends])
    until = time.monotonic() + SECONDS
    try:
        while any(_position(consumer, key) < end for key, end in ends.items()):
            if time.monotonic() > until:
                at = {key: _position(consumer, key) for key in ends}
                ledger.accuse(f"not all was read within {SECONDS} s: {at} of {ends}")
                break
            for message in consumer.consume(5000, 0.5):
                note(ledger, message, last, f"the reader of all, {level}")
                key, offset = (message.topic() or "", message.partition() or 0), message.offset() or 0
                data = repr((message.key(), message.value(), message.timestamp())).encode()
                whole.digests[key][offset] = blake2b(data, digest_size=8).digest()
                value = message.value()
                sent = parse(value if isinstance(value, bytes) else None)
                if sent is not None:
                    whole.rows[key].append((offset, sent))
    finally:
        consumer.close()
    return whole


def _position(consumer: object, key: Key) -> int:
    (found,) = consumer.position([TopicPartition(*key)])  # type: ignore[attr-defined]  # a Consumer
    return int(found.offset)


class InBucket(NamedTuple):
    """What one manifest names, by nobody's code but the bytes' own."""

    folder: str
    begin: int
    end: int
    segments: int
    garbage: int


def look_into(store: ObjectStore, prefix: str, ledger: Ledger) -> list[InBucket]:
    """Each manifest names segments without gaps, and each of those is there, byte for byte."""
    files = store.files()
    root = f"{BUCKET}/{prefix}"
    entries = files.get_file_info(FileSelector(root, recursive=True, allow_not_found=True))
    paths = {each.path for each in entries if each.type == FileType.File}
    found = []
    for manifest in sorted(path for path in paths if path.endswith("/manifest")):
        folder = manifest.rpartition("/")[0]
        body = json.loads(files.open_input_stream(manifest).read())["manifest"]
        segments = list(body["oldest"])
        named = {manifest}
        for page in body["pages"]:
            name = f"{folder}/{page['name']}.page"
            named.add(name)
            segments += json.loads(files.open_input_stream(name).read())["page"]["segments"]
        segments += body["segments"]
        at = int(segments[0]["name"][:20]) if segments else body["start"]
        begin = at
        for segment in segments:
            if int(segment["name"][:20]) != at:
                ledger.accuse(f"{manifest}: {segment['name']} does not begin at {at}")
            at = segment["next"]
            for ending, checksum in ((".log", segment["crc32c"]), (".idx", segment["index"][1])):
                path = f"{folder}/{segment['name']}{ending}"
                named.add(path)
                if path not in paths:
                    ledger.accuse(f"{path} is named, and not there")
                elif f"{crc32c(files.open_input_stream(path).read()):08x}" != checksum:
                    ledger.accuse(f"{path} is not what the manifest says")
        inside = {path for path in paths if path.startswith(f"{folder}/")}
        found.append(InBucket(folder[len(root) :], begin, at, len(segments), len(inside - named)))
    return found
