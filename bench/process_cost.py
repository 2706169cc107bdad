"""What a process and its children cost: CPU seconds and memory, read from /proc.

CPU seconds are trusted more than wall clock: a busy neighbour on the same cores stretches the clock, and
moves the CPU time of a process far less.
"""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from types import TracebackType
from typing import Self

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

# Positions in /proc/<pid>/stat after the command name in parentheses.
STAT_PARENT = 1
STAT_UTIME = 11
STAT_CSTIME_END = 15
# Positions in the first line of /proc/stat: user nice system idle iowait irq softirq steal.
HOST_FIELDS = 8
HOST_IDLE = 3
HOST_IOWAIT = 4


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def family(pid: int) -> list[int]:
    """The process and all its living descendants."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents[int(entry)] = int(_stat(int(entry))[STAT_PARENT])
            except (FileNotFoundError, ProcessLookupError):
                continue
    members = [pid]
    for member in members:
        members.extend(child for child, parent in parents.items() if parent == member)
    return members


def cpu_seconds(pid: int) -> float:
    """User and system time of the process, of its living descendants, and of children that have ended."""
    ticks = 0
    for member in family(pid):
        try:
            ticks += sum(map(int, _stat(member)[STAT_UTIME:STAT_CSTIME_END]))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return ticks / TICKS_PER_SECOND


def resident_bytes(pid: int) -> int:
    """Resident memory of the process and its descendants.

    smaps_rollup walks the page tables, so unlike VmRSS it is exact to the page.
    """
    total = 0
    for member in family(pid):
        try:
            lines = Path(f"/proc/{member}/smaps_rollup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended since
        for line in lines:
            if line.startswith("Rss:"):
                total += int(line.split()[1]) * 1024
    return total


def host_busy_seconds() -> float:
    """CPU seconds that the whole machine has spent on anything."""
    first = Path("/proc/stat").read_text().partition("\n")[0]
    ticks = list(map(int, first.split()[1 : 1 + HOST_FIELDS]))
    return (sum(ticks) - ticks[HOST_IDLE] - ticks[HOST_IOWAIT]) / TICKS_PER_SECOND


def own_seconds() -> float:
    """CPU seconds of this process and of the load generators that it has waited for."""
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class Meter:
    """Broker CPU over a `with` block, and how many cores others used meanwhile."""

    def __init__(self, *pids: int) -> None:
        self._pids = pids
        self.each: list[float] = []
        """CPU seconds of each process, in the order in which they were named."""
        self.cpu_s = 0.0
        self.wall_s = 0.0
        self.noise_cores = 0.0

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._cpu = list(map(cpu_seconds, self._pids))
        self._own = own_seconds()
        self._busy = host_busy_seconds()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        busy = host_busy_seconds() - self._busy
        self.each = [cpu_seconds(pid) - before for pid, before in zip(self._pids, self._cpu, strict=True)]
        self.cpu_s = sum(self.each)
        self.wall_s = time.monotonic() - self._began
        others = busy - self.cpu_s - (own_seconds() - self._own)
        self.noise_cores = max(0.0, others) / self.wall_s


def wait_until_quiet(*pids: int, at_most_s: float = 10.0, below_cores: float = 0.1) -> None:
    """Wait for the aftermath of one load to end, so that the next case does not pay for it."""
    give_up = time.monotonic() + at_most_s
    while time.monotonic() < give_up:
        with Meter(*pids) as meter:
            time.sleep(0.4)
        if meter.cpu_s / meter.wall_s < below_cores:
            return
