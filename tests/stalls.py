"""A command on a machine that stalls: `python -m tests.stalls pytest -n 2 tests/unit`.

A shared host takes the processors away whenever it likes, for a tenth of a second at a time. Who tests with
a wall clock sees nothing of it until the one build in a hundred that counts. Here everything that the command
starts is frozen for half of the time, at random moments, so that such a test fails on the day it is written.
Needs root, and a kernel with control groups of version 2.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

RUNNING_SECONDS: Final = 0.08
FROZEN_SECONDS: Final = 0.08
LONGEST_SECONDS: Final = 0.4
"""Less than half of the least time within which anything is called dead."""


def control_groups() -> Path:
    for line in Path("/proc/mounts").read_text().splitlines():
        _, where, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(where)
    sys.exit("nothing of type cgroup2 is mounted: mount -t cgroup2 none /sys/fs/cgroup")


@contextmanager
def control_group() -> Generator[Path]:
    directory = control_groups() / f"headrace-stalls-{os.getpid()}"
    directory.mkdir()
    try:
        yield directory
    finally:
        (directory / "cgroup.freeze").write_text("0")
        (directory / "cgroup.kill").write_text("1")
        while "populated 1" in (directory / "cgroup.events").read_text():
            time.sleep(0.01)
        directory.rmdir()


def stall(process: subprocess.Popen[bytes], group: Path, chance: random.Random, length: float) -> float:
    """Until the command ends, `length` times as long as usual at a time. Gives the seconds taken away."""
    frozen = 0.0
    while process.poll() is None:
        time.sleep(length * chance.expovariate(1 / RUNNING_SECONDS))
        began = time.monotonic()
        (group / "cgroup.freeze").write_text("1")
        time.sleep(length * min(chance.expovariate(1 / FROZEN_SECONDS), LONGEST_SECONDS))
        (group / "cgroup.freeze").write_text("0")
        frozen += time.monotonic() - began
    return frozen


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stalls", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="of the moments; by chance if not given")
    parser.add_argument("--length", type=float, default=1.0, help="5 stalls for up to two seconds at a time")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    began = time.monotonic()
    with control_group() as group:
        join = 'echo $$ > "$0" && exec "$@"'
        process = subprocess.Popen(["sh", "-c", join, str(group / "cgroup.procs"), *given.command])
        frozen = stall(process, group, random.Random(seed), given.length)
    share = frozen / (time.monotonic() - began)
    print(f"stalls: frozen for {share:.0%} of {(time.monotonic() - began) / 60:.1f} min, seed {seed}")
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
