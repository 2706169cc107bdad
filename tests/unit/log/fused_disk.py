"""A simulated disk that loses power in the middle of something."""

from __future__ import annotations

from headrace.testing.disk import SimulatedDisk

_CHANGES = ("open", "pwrite", "truncate", "sync", "rename", "remove", "sync_dir")


class PowerLoss(Exception):
    """The disk stops in the middle of something."""


class FusedDisk(SimulatedDisk):
    """Loses power after as many changes as its fuse is long."""

    fuse = -1

    def meet_faults(self, operation: str, path: str) -> None:
        if self.fuse >= 0 and operation in _CHANGES:
            if self.fuse == 0:
                raise PowerLoss
            self.fuse -= 1
        super().meet_faults(operation, path)
