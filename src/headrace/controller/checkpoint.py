"""The image as a file, in the form of Kafka's own snapshots, so that a start need not replay history.

A control batch with a header, the records of the image in batches, a control batch with a footer. The
footer says that nothing is missing. A checkpoint is only ever a shortcut: one that cannot be read whole is
passed over, and the log is replayed from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from headrace.controller.codec import decode_metadata_batch, encode_metadata_batch, pack
from headrace.controller.delta import MetadataDelta
from headrace.controller.image import MetadataImage
from headrace.controller.operations import RecordGroup
from headrace.controller.replay import Replayer
from headrace.controller.snapshot import records_of
from headrace.core.errors import CorruptBatch, CorruptLog, HeadraceError
from headrace.protocol.batch import HEADER_SIZE, check, read_header
from headrace.protocol.control_records import ControlType, control_key, control_type
from headrace.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from headrace.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from headrace.protocol.records import NewRecord, decode_records, encode_batch

_VERSION: Final = 0


class Checkpoint(NamedTuple):
    """The image after every record below `end_offset`; `epoch` is the one of the last of them."""

    end_offset: int
    epoch: int
    content: bytes


class Checkpoints(Protocol):
    async def latest(self) -> Checkpoint | None: ...

    async def save(self, checkpoint: Checkpoint) -> None:
        """Durable on return. Never called with an end offset that is saved already."""
        ...


class CheckpointPlan(NamedTuple):
    """The last checkpoint and the batches behind it: enough to write the next one, anywhere."""

    last: Checkpoint | None
    tail: list[bytes]

    def carry_out(self) -> Checkpoint:
        """Slow, and touches nothing that others hold: for a thread. The same plan gives the same bytes."""
        replayer = Replayer(MetadataImage())
        for group in [] if self.last is None else decode_checkpoint(self.last):
            replayer.replay_all(group, MetadataDelta())
        for batch in self.tail:
            replayer.replay_all(decode_metadata_batch(batch), MetadataDelta())
        header = read_header(self.tail[-1])
        return encode_checkpoint(
            replayer.image,
            end_offset=header.next_offset,
            epoch=header.leader_epoch,
            timestamp_ms=header.max_timestamp,
        )


def encode_checkpoint(image: MetadataImage, *, end_offset: int, epoch: int, timestamp_ms: int) -> Checkpoint:
    header = SnapshotHeaderRecord(version_=_VERSION, last_contained_log_timestamp=timestamp_ms)
    content = _control(ControlType.SNAPSHOT_HEADER, header.to_bytes(_VERSION), 0, epoch, timestamp_ms)
    at = 1
    groups: Iterator[RecordGroup] = ([record] for record in records_of(image))
    for payload in pack(groups):
        content += encode_metadata_batch(
            payload.values, base_offset=at, controller_epoch=epoch, timestamp_ms=timestamp_ms
        )
        at += len(payload.values)
    footer = SnapshotFooterRecord(version_=_VERSION)
    content += _control(ControlType.SNAPSHOT_FOOTER, footer.to_bytes(_VERSION), at, epoch, timestamp_ms)
    return Checkpoint(end_offset, epoch, bytes(content))


def _control(kind: ControlType, value: bytes, at: int, epoch: int, timestamp_ms: int) -> bytearray:
    record = NewRecord(value, control_key(kind), timestamp_ms)
    return encode_batch([record], base_offset=at, leader_epoch=epoch, control=True)


def decode_checkpoint(checkpoint: Checkpoint) -> list[RecordGroup]:
    """The records of each batch. Raises CorruptLog unless all of it is there, from header to footer."""
    try:
        return _decode(checkpoint.content)
    except CorruptLog:
        raise
    except HeadraceError as error:
        raise CorruptLog(f"the metadata checkpoint at {checkpoint.end_offset}: {error}") from error


def _decode(content: bytes) -> list[RecordGroup]:
    groups: list[RecordGroup] = []
    controls: list[int] = []
    at = 0
    while len(content) - at >= HEADER_SIZE:
        header = check(content, at)
        batch = content[at : at + header.size]
        if header.is_control:
            controls += [control_type(record) for record in decode_records(batch)]
        elif controls != [ControlType.SNAPSHOT_HEADER]:
            raise CorruptBatch("records outside of header and footer")
        else:
            groups.append(list(decode_metadata_batch(batch)))
        at += header.size
    if at != len(content) or controls != [ControlType.SNAPSHOT_HEADER, ControlType.SNAPSHOT_FOOTER]:
        raise CorruptBatch("it does not end with its footer")
    return groups
