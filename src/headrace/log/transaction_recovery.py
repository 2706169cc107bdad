"""Indexes of aborted transactions that cannot be what was written are made anew from the batches.

What was noted of them decides (side_files.py). Of an earlier release nothing is noted: what still looks like
an index is believed then, as Kafka does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headrace.core.ports import Disk
from headrace.log import files, producer_replay, scan
from headrace.log.producer_state import ProducerStates
from headrace.log.segment import Segment
from headrace.log.side_files import Expected


def repair(
    disk: Disk,
    segments: Sequence[Segment],
    folder: str,
    snapshots: list[int],
    indexed: Collection[int],
    expected: Expected,
    rebuilt: list[str],
) -> set[int]:
    """`indexed`: the base offsets of the segments that have such an index. Returns those where one was made
    anew; `rebuilt` gets their paths, and those of snapshots that were not believed."""
    made: set[int] = set()
    states: ProducerStates | None = None
    """As of the end of the last one that was made anew: the next goes on from there, so that the log is read
    once, however many there are."""
    for place, segment in enumerate(segments):
        base, index = segment.base_offset, segment.transactions
        is_good = base not in indexed or index.is_sane(base)
        if base in indexed or expected.may_lack_index(base):
            is_good = is_good and expected.has_index(disk, index.path, base)
        if is_good:
            if base in indexed:
                index.hold()
            continue
        if states is None:
            states = ProducerStates()
            rebuilt += producer_replay.rebuild(
                disk, states, segments[:place], folder, snapshots, base, expected
            )
        else:
            producer_replay.replay(states, segments[:place], base)
        _rebuild(disk, segment, states)
        made.add(base)
        rebuilt.append(index.path)
    return made


def _rebuild(disk: Disk, segment: Segment, states: ProducerStates) -> None:
    """That of the segment, with what was open when it began; `states` go on to its end."""
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
