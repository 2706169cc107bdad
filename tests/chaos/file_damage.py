"""Damage to the files of one broker that is down: it must come back whole, and nobody may miss anything.

Always the same broker in a run. What nobody has read is not known to be whole again, so damage to another one
could meet the same records, and no whole replica be left.
"""

from __future__ import annotations

import contextlib
import random
import subprocess
from pathlib import Path

from tests.chaos.nemesis import Nemesis
from tests.chaos.testbed import Testbed
from tests.chaos.workload import TOPIC
from tests.damage import ALONE, SWAPPED, harm

SUFFIXES = (".log", ".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint", "partition.metadata")
PATIENCE_SECONDS = 10.0
BESIDE = ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint")


class FileDamage(Nemesis):
    name, domain = "file damage", "disk"

    def __init__(self, bed: Testbed, source: random.Random) -> None:
        super().__init__(bed, source)
        self.damaged = bed.damaged or self.random.choice(bed.numbers)

    @classmethod
    def possible(cls, bed: Testbed) -> bool:
        return bed.target == "headrace"

    def begin(self) -> str:
        cluster, number = self.bed.cluster, self.damaged
        if not self._is_whole():
            return "no file is damaged, while a replica is behind"
        self.bed.damaged = number
        how = "kill -9"
        if cluster.brokers[number].running and self.random.random() < 0.5:
            how = "SIGTERM"
            cluster.terminate(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                cluster.wait_ended(number, PATIENCE_SECONDS)
        cluster.kill(number)
        done = [self._damage() for _ in range(self.random.choice((1, 1, 2)))]
        return f"{how} of broker {number}, then " + "; ".join(done)

    def end(self) -> None:
        self.bed.restart_ended()

    def _is_whole(self) -> bool:
        """Everybody is in sync."""
        try:
            views = list(self.bed.cluster.view(TOPIC).partitions.values())
        except (OSError, EOFError):
            return False
        return all(sorted(view.isr) == sorted(view.replicas) for view in views)

    def _damage(self) -> str:
        kind = self.random.choice((".log", ".log", ".log", *SUFFIXES, *BESIDE))
        below = self.bed.log_dir(self.damaged)
        found = sorted(path for path in below.rglob(f"*{kind}") if _counts(path.relative_to(below)))
        if not found:
            return f"there is no {kind}"
        path, way = self.random.choice(found), self.random.choice((*ALONE, SWAPPED))
        others = [each for each in found if each.parent != path.parent]
        if way == SWAPPED and others:
            other = self.random.choice(others)
            mine, theirs = path.read_bytes(), other.read_bytes()
            path.write_bytes(theirs)
            other.write_bytes(mine)
            return f"{_short(path)} and {_short(other)} are swapped"
        way = "missing" if way == SWAPPED else way
        left = harm(path.read_bytes(), way, self.random)
        if left is None:
            path.unlink()
        else:
            path.write_bytes(left)
        return f"{_short(path)} is {way}"


def _counts(path: Path) -> bool:
    """Not what was set aside before."""
    return not any(part.endswith(("-stray", "-delete")) for part in path.parts)


def _short(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"
