"""What is dirty, whether it is worth a pass, and where the dirty part ends."""

from __future__ import annotations

from headrace.log.cleaner.plan import Dirt, find_dirt
from headrace.log.partition_log import PartitionLog
from tests.unit.log.cleaner.material import new_log, put
from tests.unit.log.material import NOW

FAR = 1 << 40


def filled(segments: int = 4, **changes: object) -> PartitionLog:
    """So many sealed segments of two records, and an active one of one."""
    log = new_log(None, **changes)
    for number in range(segments):
        put(log, (b"a", bytes(50)), (b"b", bytes(50)), timestamp=NOW + 1000 * number)
        log.roll(NOW)
    put(log, (b"c", b""), timestamp=NOW + 1000 * segments)
    return log


def dirt(
    log: PartitionLog, clean_until: int = 0, *, stable: int = FAR, durable: int = FAR, now: int = 0
) -> Dirt:
    return find_dirt(log, clean_until, stable, durable, NOW + now)


def test_the_active_segment_is_never_touched() -> None:
    log = filled()
    found = dirt(log)
    assert (found.first_dirty, found.end) == (0, 8)
    assert found.ratio == 1.0
    assert found.dirty_bytes == log.size_bytes - log.active_segment.size


def test_clean_segments_count_against_dirty_ones() -> None:
    found = dirt(filled(), 6)
    assert (found.first_dirty, found.end) == (6, 8)
    assert found.ratio == 0.25


def test_it_ends_with_what_is_stable_and_durable_in_whole_segments() -> None:
    log = filled()
    assert dirt(log, stable=5).end == 4
    assert dirt(log, stable=6).end == 6
    assert dirt(log, durable=3).end == 2
    assert dirt(log, stable=0).dirty_bytes == 0


def test_a_checkpoint_that_cannot_be_is_not_believed() -> None:
    log = filled()
    assert dirt(log, 100).first_dirty == 0
    log.delete_records_before(4)
    assert dirt(log, 2).first_dirty == 4


def test_young_segments_wait() -> None:
    log = filled(min_compaction_lag_ms=1500)
    assert dirt(log, now=3000).end == 4
    assert dirt(log, now=100_000).end == 8


def test_a_log_is_worth_a_pass_above_its_ratio_or_when_it_is_overdue() -> None:
    log = filled(min_cleanable_dirty_ratio=0.25)
    assert not dirt(log, 6).is_worth_a_pass(log)
    assert dirt(log, 4).is_worth_a_pass(log)
    late = filled(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1500)
    assert not dirt(late, 6, now=4000).is_worth_a_pass(late)
    assert dirt(late, 6, now=4600).is_worth_a_pass(late)
    assert not dirt(late, 8, now=100_000).is_worth_a_pass(late)


def test_a_segment_closes_in_time_for_the_largest_lag() -> None:
    log = new_log(None, max_compaction_lag_ms=1000)
    for later in (0, 900, 1001):
        put(log, (b"a", b""), timestamp=NOW + later)
    assert [segment.base_offset for segment in log.segments] == [0, 2]
