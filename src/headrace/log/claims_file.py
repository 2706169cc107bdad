"""What the logs of a directory claim, with a checksum: `headrace.claims`, beside Kafka's checkpoints.

Kafka's checkpoints have no checksum. A digit that changes in one of them raised a log start, and what lies
before it was deleted. So what decides whether a log is whole is written here as well, and believed from here:

    headrace claims 2
    written 217
    orders 0 2iVQ5RtPSQyR7kOPc9YBcg 1200 57311 52004 9f2b11c0
    crc32c 5d3e0a77

For each partition: the topic's id, log start, high watermark, and the segment that was active with a checksum
of the header of its first batch, which never changes once it is written. So a segment that belongs to another
log is told from it, also if it is as long. Version 1 had no ids: then `partition.metadata` tells, which has
no checksum. A clean stop adds checksums of what stands beside that segment
(side_files.py). `written` counts the versions of this file: the cluster is told of it, and
knows a directory that was put back from an older copy (ADR 15). Kafka ignores the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from crc32c import crc32c

from headrace.core.ids import NO_TOPIC_ID, TopicPartition
from headrace.core.ports import Disk
from headrace.log import checkpoints, files, side_files
from headrace.log.side_files import SideFiles
from headrace.protocol.batch import HEADER_SIZE

NAME: Final = "headrace.claims"
_TITLE: Final = "headrace claims 2"
_TITLE_WITHOUT_IDS: Final = "headrace claims 1"
UNKNOWN: Final = -1


class FirstBatch(NamedTuple):
    """Of the segment that was active."""

    base_offset: int
    checksum: int


class Claimed(NamedTuple):
    log_start_offset: int = 0
    high_watermark: int = 0
    first_batch: FirstBatch | None = None
    """None: nothing was written to it yet, or it was cut since."""
    side: SideFiles = SideFiles()
    """Beside the last segment, if the log was closed."""
    topic_id: UUID = NO_TOPIC_ID

    def shortened(self, end: int, first_batch: FirstBatch | None) -> Claimed:
        """After a loss of power: the log was found to end at `end`."""
        return Claimed(
            self.log_start_offset, min(self.high_watermark, end), first_batch, topic_id=self.topic_id
        )

    def lowered(self, start: int, end: int) -> Claimed:
        """Before the log is cut to `end`: what its segment begins with then, the next version says."""
        start, end = min(self.log_start_offset, start), min(self.high_watermark, end)
        return Claimed(start, end, topic_id=self.topic_id)


class ClaimsFile(NamedTuple):
    written: int
    logs: Mapping[TopicPartition, Claimed]


def first_checksum(batch: bytes | bytearray | memoryview) -> int:
    return int(crc32c(bytes(batch[:HEADER_SIZE])))


def encode(said: ClaimsFile) -> bytes:
    lines = [_TITLE, f"written {said.written}"]
    for (topic, index), claimed in sorted(said.logs.items()):
        base, checksum = claimed.first_batch or (UNKNOWN, 0)
        offsets = f"{claimed.log_start_offset} {claimed.high_watermark} {base}"
        name = f"{topic} {index} {checkpoints.encode_uuid(claimed.topic_id)}"
        lines.append(" ".join((name, offsets, f"{checksum:08x}", *side_files.to_words(claimed.side))))
    body = "".join(f"{line}\n" for line in lines).encode()
    return body + b"crc32c %08x\n" % crc32c(body)


def decode(content: bytes) -> ClaimsFile | None:
    """None if it cannot be what was written."""
    body, separator, checksum = content.rpartition(b"crc32c ")
    if not separator or checksum != b"%08x\n" % crc32c(body):
        return None
    try:
        title, written, *rest = body.decode("ascii").splitlines()
        if title not in (_TITLE, _TITLE_WITHOUT_IDS):
            return None
        logs = dict(_parse(line, has_id=title == _TITLE) for line in rest)
        return ClaimsFile(int(written.removeprefix("written ")), logs)
    except (ValueError, TypeError, checkpoints.CorruptCheckpoint):
        return None


def _parse(line: str, *, has_id: bool) -> tuple[TopicPartition, Claimed]:
    topic, index, *words = line.split(" ")
    topic_id = checkpoints.decode_uuid(words.pop(0)) if has_id else NO_TOPIC_ID
    start, high_watermark, base, checksum, *side = words
    first = None if int(base) == UNKNOWN else FirstBatch(int(base), int(checksum, 16))
    beside = side_files.from_words(side)
    claimed = Claimed(int(start), int(high_watermark), first, beside, topic_id)
    return TopicPartition(topic, int(index)), claimed


def load(disk: Disk, directory: str) -> ClaimsFile | None:
    """None if there is none, as an earlier release leaves it, or if it is broken. OSError: a broken disk."""
    try:
        return decode(files.read_all(disk, f"{directory}/{NAME}"))
    except FileNotFoundError:
        return None
