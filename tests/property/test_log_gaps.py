"""Crashes of a log that follows a compacted one: its batches lie behind gaps, and what was synced of them is
there after the restart all the same. A process that is killed loses nothing at all.

No bits are flipped in the batches here: in a log with gaps an offset that was changed need not show.
"""

from __future__ import annotations

import os

import pytest

from headrace.log.files import EPOCHS
from headrace.protocol.records import NewRecord, encode_batch
from tests.property.seeds import run_all
from tests.property.test_log_crashes import LIVES, PARTITION, Campaign
from tests.unit.log.material import NOW

SEEDS = int(os.environ.get("HEADRACE_CRASH_SEEDS", "2000")) // 2
CHUNKS = 4


class GappedCampaign(Campaign):
    gapless = False

    def step(self) -> None:
        if self.random.random() < 0.5:
            self.append_run()
        else:
            super().step()

    def append_run(self) -> None:
        """What a fetch brings: some batches, most of them behind a gap."""
        run, end = b"", self.end
        for _ in range(self.random.randint(1, 3)):
            base = end + self.random.choice((0, 1, 7, 30))
            count = self.random.randint(1, 3)
            values = [self.random.randbytes(self.random.randint(1, 60)) for _ in range(count)]
            new = [NewRecord(value, None, NOW + place) for place, value in enumerate(values)]
            run += encode_batch(new, base_offset=base, leader_epoch=self.epoch)
            for offset in range(end, base):
                self.records.pop(offset, None)
            for place, value in enumerate(values):
                self.records[base + place] = (value, NOW + place)
            end = base + count
        assert self.log.append_as_follower(run, now_ms=NOW) == end
        self.end = end

    def flip(self) -> None:
        """In what is derived from the batches only, and not in the epochs, which may begin within a gap."""
        others = [
            path
            for path in self.disk.files(f"/data/{PARTITION}/")
            if not path.endswith((".log", EPOCHS)) and self.disk.size(path)
        ]
        if others:
            path = self.random.choice(others)
            self.disk.flip(path, self.random.randrange(self.disk.size(path) * 8))
            self.flipped_index |= path.endswith(".txnindex")

    def crash(self) -> None:
        if self.random.random() < 0.4:
            self.disk.kill()
            self.synced = self.end  # nothing may be gone
        else:
            super().crash()

    def expected_offsets(self) -> list[int]:
        served = range(self.log.log_start_offset, self.log.end_offset)
        return [offset for offset in served if offset in self.records]


def run_seed(seed: int) -> None:
    campaign = GappedCampaign(seed)
    for _ in range(LIVES):
        for _ in range(campaign.random.randint(3, 18)):
            campaign.step()
        campaign.crash()
        if not campaign.restart():
            return
        assert campaign.verify()
        campaign.go_on()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_crash_loses_nothing_that_was_synced_behind_a_gap(chunk: int) -> None:
    run_all(run_seed, range(chunk, SEEDS, CHUNKS))
