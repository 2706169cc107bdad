"""Clocks that jump; disks that are slow, full, or cannot sync."""

from __future__ import annotations

import errno
from typing import Final

from headrace.testing.disk import Fault
from tests.simulation.cluster import DATA, SimulatedHost
from tests.simulation.fault_scene import SLOW, FaultScene

_EVERYTHING: Final = (
    *("open", "list", "make_dirs", "rename", "remove", "remove_tree", "sync_dir", "size"),
    *("pread", "pwrite", "truncate", "sync"),
)
"""What a disk can be asked for."""


class DiskFaults:
    def __init__(self, scene: FaultScene) -> None:
        self._scene = scene
        self._cluster = scene.cluster
        self._random = scene.random

    def jump_clock(self) -> str | None:
        host = self._random.choice(self._cluster.hosts)
        milliseconds = self._random.choice((-3_600_000, -5_000, 5_000, 3_600_000, 86_400_000))
        host.jump_clock(milliseconds)
        return f"clock of {host.name} jumps by {milliseconds} ms"

    def slow_disk(self) -> str | None:
        host = self._scene.victim()
        if host is None or host.process is None:
            return None
        loop = host.process.loop
        loop.thread_slowness = self._random.choice((20.0, 200.0, 1000.0))
        self._scene.later(SLOW, lambda: setattr(loop, "thread_slowness", 1.0))
        return f"slow disk at {host.name}"

    def fail_syncs(self) -> str | None:
        """The disk refuses to sync, and what it was given since the last sync may be gone from the cache.

        Whoever meets that ends, and its supervisor starts it again, on a host that has not been down.
        """
        host = self._scene.victim()
        if host is None or not self._scene.may_lose_disk(host):
            return None
        disk = host.disk
        fault = Fault("sync", DATA, errno.EIO)
        disk.faults.append(fault)
        self._scene.later(SLOW, lambda: disk.faults.remove(fault) if fault in disk.faults else None)
        host.is_suspect = host.is_emptied = True
        return f"{host.name} cannot sync"

    def fill_disk(self) -> str | None:
        host = self._scene.victim()
        if host is None:
            return None
        disk, free = host.disk, host.disk.free
        disk.free = self._random.choice((0, 100, 1000))
        self._scene.later(SLOW, lambda: setattr(disk, "free", free))
        return f"disk of {host.name} is full"

    def lose_directory(self, host: SimulatedHost) -> None:
        """Only while nothing runs: one of its disks is dead, and empty when it is there again."""
        if not self._scene.may_lose_disk(host):
            return
        disk, path = host.disk, self._random.choice(self._cluster.directories)
        if disk.exists(path):
            disk.remove_tree(path)
            disk.sync_dir("/")
        dead = [Fault(operation, path, errno.EIO) for operation in _EVERYTHING]
        disk.faults += dead
        self._scene.later(SLOW, lambda: disk.faults.clear())
        host.is_suspect = host.is_emptied = True
        self._cluster.tell(f"{path} of {host.name} is dead")
