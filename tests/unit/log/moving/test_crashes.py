"""Power is lost, or the process killed, at every step of a move: all that was synced is there, once."""

from __future__ import annotations

import pytest

from headrace.log.manager import LogManager
from tests.unit.log.fused_disk import FusedDisk, PowerLoss
from tests.unit.log.invariants import check_invariants
from tests.unit.log.material import read_records
from tests.unit.log.moving.world import PARTITION, PATHS, begin, copy_all, fill, new_log, open_manager, swap

BEFORE, AFTER = 9, 3
"""Records that are in the log when the move begins, and that are appended and synced after it."""


NO_FUSE = 1_000_000


class Run:
    """A move on a disk that ends after so many changes; what was synced by then."""

    def __init__(self, fuse: int) -> None:
        self.disk = FusedDisk(seed=fuse)
        self.synced = BEFORE
        self.written = BEFORE
        manager = open_manager(self.disk)
        log = new_log(manager)
        fill(log, 0, BEFORE)
        log.flush()
        for job in manager.take_checkpoint({PARTITION: BEFORE}):
            job.run()
        self.disk.fuse = fuse
        try:
            self._live(manager)
            self.is_over = True
        except PowerLoss:
            self.is_over = False
        self.changes = fuse - self.disk.fuse
        """How many it came to."""
        self.disk.fuse = -1

    def _live(self, manager: LogManager) -> None:
        log = manager.get(PARTITION)
        future = begin(manager, manager.directories[1])
        copy_all(log, future)
        assert swap(manager, log, future)
        self.written = BEFORE + AFTER
        fill(log, BEFORE, self.written)
        log.flush()
        self.synced = self.written
        for job in manager.take_checkpoint({PARTITION: self.synced}):
            job.run()


@pytest.mark.parametrize("killed", [False, True], ids=["power", "kill"])
def test_nothing_that_was_synced_is_lost_whenever_it_ends(killed: bool) -> None:
    moved = stayed = 0
    for fuse in range(Run(NO_FUSE).changes + 1):
        run = Run(fuse)
        if killed:
            run.disk.kill()
        else:
            run.disk.crash()
        manager = open_manager(run.disk, lost_nothing=killed)
        assert not manager.quarantined, (fuse, manager.quarantined)
        log = manager.get(PARTITION)
        values = [record.value for record in read_records(log)]
        assert values == [b"%04d" % number * 10 for number in range(len(values))], fuse
        assert len(values) >= (run.written if killed and run.is_over else run.synced), fuse
        check_invariants(log)
        named = [path for path in PATHS if run.disk.is_dir(f"{path}/{PARTITION}")]
        assert named == [log.directory.path], fuse
        moved, stayed = moved + (named == ["/b"]), stayed + (named == ["/a"])
        _goes_on(manager, fuse)
    assert run.is_over
    assert moved > 10
    assert stayed > 10


def _goes_on(manager: LogManager, fuse: int) -> None:
    """It takes records, can be moved again, and is whole after another kill."""
    log = manager.get(PARTITION)
    end = log.end_offset
    fill(log, end, end + 3)
    target = next(each for each in manager.directories if each is not log.directory)
    future = begin(manager, target)
    copy_all(log, future)
    assert swap(manager, log, future), fuse
    assert log.directory is target
    fill(log, end + 3, end + 5)
    disk = target.disk
    assert isinstance(disk, FusedDisk)
    disk.kill()
    again = open_manager(disk, lost_nothing=True)
    assert not again.quarantined, (fuse, again.quarantined)
    assert again.get(PARTITION).end_offset == end + 5
    assert again.get(PARTITION).directory.path == target.path
