"""Bringing producer state up to batches that are in the log, whoever wrote them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from headrace.core.errors import ClientError
from headrace.core.ports import Buffer, Disk
from headrace.log import files, producer_snapshot, scan
from headrace.log.producer_state import CompletedTransaction, ProducerStates
from headrace.log.segment import Segment
from headrace.log.side_files import Expected
from headrace.log.transaction_index import AbortedTransaction
from headrace.protocol.batch import BatchHeader
from headrace.protocol.control_records import ControlType, control_type, end_marker_epoch
from headrace.protocol.records import decode_records

NOTHING_NOTED: Final = Expected()


def take_over(
    states: ProducerStates, segment: Segment, header: BatchHeader, load: Callable[[], Buffer]
) -> None:
    """Apply one batch; an aborted transaction is also entered into the segment's transaction index."""
    completed = apply_batch(states, header, load)
    if completed is not None and completed.aborted:
        stable = states.first_undecided_offset
        segment.transactions.append(
            AbortedTransaction(
                completed.producer_id,
                completed.first_offset,
                completed.last_offset,
                completed.last_offset + 1 if stable is None else stable,
            )
        )


def apply_batch(
    states: ProducerStates, header: BatchHeader, load: Callable[[], Buffer]
) -> CompletedTransaction | None:
    """Apply one batch; the transaction that it ended. `load` gives its bytes, if they are needed."""
    completed = None
    if header.producer_id >= 0:
        if header.is_control:
            completed = _apply_marker(states, header, load())
        else:
            states.apply(header, header.base_offset)
    states.end_offset = header.next_offset
    return completed


def _apply_marker(states: ProducerStates, header: BatchHeader, batch: Buffer) -> CompletedTransaction | None:
    try:
        record = next(decode_records(batch), None)
        if record is None:
            return None
        kind = control_type(record)
        if kind not in (ControlType.COMMIT, ControlType.ABORT):
            return None
        epoch = end_marker_epoch(record)
    except ClientError:
        return None  # a marker that says nothing ends nothing; the log stays readable
    return states.apply_marker(
        header, header.base_offset, coordinator_epoch=epoch, commit=kind == ControlType.COMMIT
    )


def rebuild(
    disk: Disk,
    states: ProducerStates,
    segments: Sequence[Segment],
    folder: str,
    snapshot_offsets: list[int],
    until: int,
    expected: Expected = NOTHING_NOTED,
) -> list[str]:
    """The producers as of `until`: the newest snapshot that can be read, and the batches after it.

    Snapshots that cannot be read, or are not what was noted of them, are removed from the disk and from the
    list. Returns their paths.
    """
    refused: list[str] = []
    states.clear(segments[0].base_offset if segments else until)
    for offset in sorted((at for at in snapshot_offsets if at <= until), reverse=True):
        path = f"{folder}/{files.numbered(offset)}{files.SNAPSHOT}"
        try:
            content = files.read_all(disk, path)
            entries = producer_snapshot.decode(content)
            if not expected.believes(offset, content):
                raise producer_snapshot.CorruptSnapshot("it is not the one that was written")
            states.restore(entries, offset)
            break
        except (producer_snapshot.CorruptSnapshot, FileNotFoundError):
            snapshot_offsets.remove(offset)
            if disk.exists(path):
                disk.remove(path)
                refused.append(path)
    replay(states, segments, until)
    return refused


def replay(states: ProducerStates, segments: Sequence[Segment], until: int) -> None:
    """Bring producers that are known as of some offset up to `until`."""
    for place, segment in enumerate(segments):
        ends = segments[place + 1].base_offset if place + 1 < len(segments) else until
        if ends > states.end_offset:
            _replay_segment(states, segment, until)
    states.end_offset = until


def _replay_segment(states: ProducerStates, segment: Segment, until: int) -> None:
    found = segment.locate(states.end_offset)
    if found is None:
        return
    file = segment.unverified()
    for position, header in scan.headers(file, found.position, segment.size):
        if header.base_offset >= until:
            return
        if header.base_offset >= states.end_offset:
            apply_batch(states, header, lambda at=position, size=header.size: file.pread(size, at))  # type: ignore[misc]  # mypy cannot infer a lambda with defaults
