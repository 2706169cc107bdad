"""What is true of every log at every moment, derived again from its files."""

from __future__ import annotations

from headrace.log import scan
from headrace.log.partition_log import PartitionLog
from headrace.log.segment_times import largest_timestamp


def check_invariants(log: PartitionLog) -> None:
    assert log.log_start_offset <= log.end_offset
    assert log.recovery_point <= log.end_offset
    bases = [segment.base_offset for segment in log.segments]
    assert bases == sorted(set(bases))
    assert bases[0] <= log.log_start_offset
    assert log.active_segment is log.segments[-1]
    expected = bases[0]
    for segment, ends in zip(log.segments, [*bases[1:], log.end_offset], strict=True):
        positions = {}
        largest = -1
        for position, header in scan.headers(segment.file(), 0, segment.size) if segment.size else ():
            assert header.base_offset >= expected
            expected = header.next_offset
            positions[header.last_offset] = position
            largest = max(largest, header.max_timestamp)
        assert expected <= ends
        assert segment.size == 0 or largest_timestamp(segment) == largest
        for place in range(segment.index.count):
            relative, position = segment.index.entry(place)
            assert positions[segment.base_offset + relative] == position
        entries = [segment.times.entry(place) for place in range(segment.times.count)]
        assert entries == sorted(set(entries))
        assert all(segment.base_offset + relative in positions for _, relative in entries)
    epochs = log.epochs.entries
    assert [epoch for epoch, _ in epochs] == sorted({epoch for epoch, _ in epochs})
    assert [start for _, start in epochs] == sorted({start for _, start in epochs})
    assert log.latest_epoch == log.epochs.latest
    assert log.producers.end_offset <= log.end_offset
