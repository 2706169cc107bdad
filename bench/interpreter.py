"""Which Python the compiled broker runs on: the fastest of this minor version that PATH knows.

    python -m bench.interpreter          the path of its executable

The same release can differ by half in what a step costs: with or without profile-guided optimisation, inside
the executable or in a shared library. What a build says of itself is not to be relied on (Debian's hides it),
so it is measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PATIENCE_S = 60.0
WORTH_IT = 0.9
"""Another build than the project's own is taken if its steps take at most this part of the time."""
PROBE = """
import json, struct, sys, time

class Row:
    __slots__ = ("index", "offset")
    def __init__(self, *, index=0, offset=0):
        self.index = index
        self.offset = offset
    def write(self, pack, buffer):
        buffer += pack(self.index, self.offset)

def once(rows=10_000):
    pack, kept = struct.Struct(">iq").pack, {}
    began = time.process_time()
    for number in range(rows):
        row = Row(index=number & 7, offset=number)
        row.write(pack, bytearray())
        kept[str(row.index)] = (row, number)
    return (time.process_time() - began) / rows * 1e9

print(json.dumps({
    "executable": getattr(sys, "_base_executable", sys.executable),
    "implementation": sys.implementation.name,
    "version": ".".join(map(str, sys.version_info[:3])),
    "probe_ns": round(min(once() for _ in range(15))),
    "in_shared_library": "libpython" in open("/proc/self/maps").read(),
}))
"""


@dataclass(frozen=True)
class Build:
    """A Python as it is on this machine."""

    executable: str
    implementation: str
    version: str
    probe_ns: int
    """CPU time to make, write and keep a small object, the least of some runs. It tells an optimised build
    from another one."""
    in_shared_library: bool

    def __str__(self) -> str:
        where = "in a shared library" if self.in_shared_library else "in its executable"
        return f"{self.implementation} {self.version}, {where}, {self.probe_ns} ns for a small object"

    def described(self) -> dict[str, Any]:
        """For others: where it lies is this machine's own affair."""
        return {name: value for name, value in asdict(self).items() if name != "executable"}

    @property
    def minor(self) -> str:
        return self.version.rpartition(".")[0]


def examine(executable: Path) -> Build | None:
    """None if it does not run: a link that leads nowhere, or another system's."""
    try:
        done = subprocess.run(
            [str(executable), "-I", "-c", PROBE], capture_output=True, text=True, timeout=PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return Build(**json.loads(done.stdout)) if done.returncode == 0 else None


def candidates(search_path: str, name: str) -> list[Path]:
    """Every file of that name on the path, but each only once, whatever the links that lead to it."""
    found: dict[str, Path] = {}
    for directory in search_path.split(os.pathsep):
        file = Path(directory or ".") / name
        if os.access(file, os.X_OK):
            found.setdefault(os.path.realpath(file), file)
    return list(found.values())


def fastest(own: Build, others: Iterable[Build]) -> Build:
    """The project's own, unless another of the same kind is clearly faster."""
    same = [one for one in others if (one.implementation, one.minor) == (own.implementation, own.minor)]
    best = min(same, key=lambda one: one.probe_ns, default=own)
    return best if best.probe_ns <= WORTH_IT * own.probe_ns else own


def main() -> int:
    own = examine(Path(sys.executable))
    if own is None:
        print(f"{sys.executable} does not run", file=sys.stderr)
        return 1
    found = map(examine, candidates(os.environ.get("PATH", ""), f"python{own.minor}"))
    chosen = fastest(own, [build for build in found if build is not None])
    print(f"Python for the compiled broker: {chosen}", file=sys.stderr)
    print(chosen.executable)
    return 0


if __name__ == "__main__":
    sys.exit(main())
