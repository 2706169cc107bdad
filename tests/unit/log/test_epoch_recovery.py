"""The file of leader epochs has no checksum: at a start the batches say whether it is true."""

from __future__ import annotations

import pytest

from headrace.log.partition_log import PartitionLog
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import append, open_at

TRUE = [(1, 0), (2, 2), (4, 3), (5, 5)]


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def log(disk: SimulatedDisk) -> PartitionLog:
    """One segment with four epochs."""
    found = open_at(disk, "/data")
    for epoch, count in ((1, 2), (2, 1), (4, 2), (5, 1)):
        for _ in range(count):
            append(found, b"v", leader_epoch=epoch)
    assert found.epochs.entries == TRUE
    return found


@pytest.mark.parametrize(
    "entries",
    [
        [(1, 0), (4, 3), (5, 5)],
        [(1, 0), (5, 5)],
        [(2, 2), (4, 3), (5, 5)],
        [(1, 0), (2, 2), (4, 3)],
        [(1, 0), (2, 3), (4, 4), (5, 5)],
        [(1, 0), (4, 3), (5, 5), (9, 6)],
        [(1, 0), (2, 2), (4, 3), (5, 5), (9, 7)],
        [],
    ],
    ids=["one left out", "two", "the first", "the last", "moved", "and one begun", "beyond the end", "none"],
)
def test_what_the_batches_do_not_say_is_told_anew(
    disk: SimulatedDisk, log: PartitionLog, entries: list[tuple[int, int]]
) -> None:
    """A controller with the file of another log told a broker that its metadata was not the cluster's."""
    log.epochs.replace(entries)
    log.close()
    assert open_at(disk, "/data", clean=True, recovery_point=6).epochs.entries == TRUE


def test_an_epoch_that_no_batch_has_is_forgotten(disk: SimulatedDisk, log: PartitionLog) -> None:
    """The file may be another log's. Whoever leads notes its epoch again."""
    log.epochs.replace([*TRUE, (9, 6)])
    log.close()
    assert open_at(disk, "/data", clean=True, recovery_point=6).epochs.entries == TRUE
