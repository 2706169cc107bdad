"""The real clock, the real randomness, and what the machine has."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator


class SystemClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


def system_random() -> random.Random:
    """For ids and placement. Nothing here is a secret: those come from `secrets`."""
    return random.SystemRandom()


def boot_id() -> str:
    """Another one after each start of the host; empty where the system does not tell."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def memory_bytes(proc: str = "/proc", cgroups: str = "/sys/fs/cgroup") -> int:
    """Of the machine, or of the container that this process runs in if that may use less."""
    limits = [_machine_bytes(proc)]
    limits += [int(text) for path in _limit_files(proc, cgroups) if (text := _read(path)).isdigit()]
    return min(limits)


def _machine_bytes(proc: str) -> int:
    for line in _read(f"{proc}/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemTotal":
            return int(rest.split()[0]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _limit_files(proc: str, cgroups: str) -> Iterator[str]:
    """Of the groups that this process is in and of those above them, in both versions of control groups."""
    for line in _read(f"{proc}/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, name = (
            (f"{cgroups}/memory", "memory.limit_in_bytes") if controllers else (cgroups, "memory.max")
        )
        parts = [part for part in path.split("/") if part and part != ".."]
        # Inside a container the path is often that of the host, while the container sees its own as the root.
        for depth in range(len(parts) + 1):
            yield "/".join((root, *parts[:depth], name))


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
