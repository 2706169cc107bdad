"""Crashes of a log that moves between two directories meanwhile, a piece at a time, on a disk that loses.

As in test_log_crashes.py: what was synced is there, what is derived agrees with it, whatever happened to the
log between two pieces. A failing seed says how to run it alone.
"""

from __future__ import annotations

import os
from uuid import UUID

import pytest

from headrace.log import files
from headrace.log.directory_identity import DirectoryIdentity
from headrace.log.manager import LogManager
from headrace.log.moving.future import FutureFolder
from headrace.log.moving.plan import take_plan
from headrace.log.moving.swap import ReplicaSwap
from tests.property.seeds import run_all
from tests.property.test_log_crashes import LIVES, PARTITION, Campaign
from tests.unit.log.fused_disk import FusedDisk, PowerLoss
from tests.unit.log.material import NOW

SEEDS = int(os.environ.get("HEADRACE_CRASH_SEEDS", "2000")) // 4
CHUNKS = 4
PATHS = ("/data", "/other")


class Moving(Campaign):
    future: FutureFolder | None = None
    moved = 0
    paths: tuple[str, ...] = PATHS
    """Of the disks that are there. One may be away from a start to the next."""
    only: str | None = None
    """The one of two folders that was opened alone last, until both were there."""
    alone = 0
    """How often only one of two folders of the partition was there to be opened."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.manager.release()
        self.disk = FusedDisk(seed)
        self.manager = self.open_manager()
        self.log = self.manager.create(PARTITION, UUID(int=5), NOW)

    def open_manager(self) -> LogManager:
        manager = LogManager(
            self.disk,
            self.paths,
            DirectoryIdentity("c", 1),
            lambda _: self.config,
            new_uuid=lambda: UUID(int=self.random.getrandbits(128)),
            threads_per_directory=1,
        )
        manager.open_all(NOW, expect_folders=True)
        return manager

    def step(self) -> None:
        if self.random.random() < 0.3 and len(self.paths) > 1:
            self.copy_or_swap()
        else:
            super().step()

    def copy_or_swap(self) -> None:
        if self.future is None:
            target = next(each for each in self.manager.directories if each is not self.log.directory)
            name = self.manager.unique_name(PARTITION, files.FUTURE_DIRECTORY)
            self.future = FutureFolder(target, f"{target.path}/{name}")
        if self.random.random() < 0.7 or not self.future.is_made:
            self.future.copy(take_plan(self.log), self.random.choice((100, 1000, 100_000)))
        elif self.random.random() < 0.1:
            self.future.remove()
            self.future = None
        else:
            self.swap(self.future)
            self.future = None

    def swap(self, future: FutureFolder) -> None:
        job = ReplicaSwap(self.manager, self.log, future, self.end, NOW)
        job.run()
        assert job.switch()
        job.settle()
        job.done()
        assert self.log.recovery_point == self.log.end_offset == self.end
        self.synced = self.promised = self.end
        self.start_on_disk = max(self.start_on_disk, self.log.log_start_offset)
        self.moved += 1

    def crash(self) -> None:
        """As often as not in the middle of a step."""
        assert isinstance(self.disk, FusedDisk)
        if self.future is not None and self.future.is_made and self.random.random() < 0.2:
            ReplicaSwap(self.manager, self.log, self.future, self.end, NOW).run()  # both have the name
        elif self.future is not None and self.random.random() < 0.5:
            self.disk.fuse = self.random.randint(0, 60)
            try:
                self.swap(self.future)
            except PowerLoss:
                pass
            self.disk.fuse = -1
        self.future = None
        self.disk.crash()

    def restart(self) -> bool:
        held = [path for path in PATHS if self.disk.is_dir(f"{path}/{PARTITION}")]
        self.paths = PATHS
        if held and self.random.random() < 0.3:
            # Which disk is away does not change before both are there: nobody could know then which is later.
            self.paths = (self.random.choice(held) if self.only is None else self.only,)
            if len(held) > 1:
                self.only = self.paths[0]
                self.alone += 1
        else:
            self.only = None
        found = super().restart()
        named = [path for path in self.paths if self.disk.is_dir(f"{path}/{PARTITION}")]
        assert len(named) == found, named
        return found


def run_seed(seed: int) -> Moving:
    campaign = Moving(seed)
    for _ in range(LIVES):
        for _ in range(campaign.random.randint(3, 25)):
            campaign.step()
        campaign.crash()
        if not campaign.restart():
            break
        assert campaign.verify()
        campaign.go_on()
    return campaign


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_crash_loses_nothing_of_a_log_that_moves(chunk: int) -> None:
    run_all(run_seed, range(chunk, SEEDS, CHUNKS))


def test_the_seeds_do_move_it() -> None:
    done = [run_seed(seed) for seed in range(100)]
    assert sum(each.moved for each in done) > 100
    assert sum(each.alone for each in done) > 0, "one of two folders was opened alone"
