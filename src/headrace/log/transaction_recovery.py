"""Indexes of aborted transactions that cannot be what was written are made anew from the batches.

They have no checksum, as with Kafka: what still looks like an index is believed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headrace.core.ports import Disk
from headrace.log import files, producer_replay, scan
from headrace.log.producer_state import ProducerStates
from headrace.log.segment import Segment


def repair(
    disk: Disk, segments: Sequence[Segment], folder: str, snapshots: list[int], indexed: Collection[int]
) -> None:
    """`indexed`: the base offsets of the segments that have such an index at all."""
    for place, segment in enumerate(segments):
        if segment.base_offset in indexed and not segment.transactions.is_sane(segment.base_offset):
            _rebuild(disk, segments[: place + 1], folder, snapshots)


def _rebuild(disk: Disk, segments: Sequence[Segment], folder: str, snapshots: list[int]) -> None:
    """That of the last of the segments, with what was open when it began."""
    segment = segments[-1]
    states = ProducerStates()
    producer_replay.rebuild(disk, states, segments[:-1], folder, snapshots, segment.base_offset)
    segment.transactions.reset()
    file = segment.file()
    for position, header in scan.headers(file, 0, segment.size):
        producer_replay.take_over(
            states,
            segment,
            header,
            lambda at=position, size=header.size: file.pread(size, at),  # type: ignore[misc]  # mypy cannot infer a lambda with defaults
        )
    files.sync_path(disk, segment.transactions.path)
    segment.release()
