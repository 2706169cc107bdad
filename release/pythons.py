"""The Pythons that a release is made for, as they are here: installed ones, and those of a Debian root.

A Debian root is a folder that `mmdebstrap` has made, for a Python that the machine itself does not have:

    mmdebstrap --variant=apt --include=python3-dev,python3-venv,gcc,libc6-dev,ca-certificates SUITE FOLDER

Its commands run in it by chroot, with the folders that they need mounted at their own paths, in a mount
namespace that ends with the command. That needs root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MINORS: Final = ("3.11", "3.12", "3.13", "3.14")
_PROBE: Final = "import sys; print('%d.%d %d.%d.%d' % (*sys.version_info[:2], *sys.version_info[:3]))"
_ENTER: Final = """
set -e
root=$1; shift
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
while [ "$1" != -- ]; do mkdir -p "$root$1"; mount --bind "$1" "$root$1"; shift; done
shift
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
exec chroot "$root" "$@"
"""


class Failed(Exception):
    """A command did not do what a release needs; the text says which and what it said."""


@dataclass(frozen=True)
class Python:
    minor: str
    version: str
    executable: str
    root: Path | None = None
    """The Debian root that it is in; None if it is the machine's own."""

    def run(
        self, command: Sequence[str], *, shared: Sequence[Path], environment: Mapping[str, str] | None = None
    ) -> str:
        """What the command says on its standard output. `shared` are the folders that it needs."""
        if self.root is not None:
            folders = [str(folder.resolve()) for folder in (*shared, _uv().parent, _uv_cache())]
            command = [*_entering(self.root), *folders, "--", *command]
        return run(command, environment)


def run(
    command: Sequence[str], environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
        cwd=folder,
    )
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-6000:]
        raise Failed(f"{' '.join(command)}\nended with {done.returncode}:\n{said}")
    return done.stdout


def find(executables: Sequence[str], roots: Sequence[Path]) -> list[Python]:
    """One for each minor version: the given ones first, then those that uv finds here."""
    found: dict[str, Python] = {}
    for executable in executables:
        _keep(found, _probed([executable], executable, None))
    for root in roots:
        _keep(found, _probed(["chroot", str(root), "python3"], "/usr/bin/python3", root))
    for minor in MINORS:
        if minor not in found:
            for executable in _installed(minor):
                _keep(found, _probed([executable], executable, None))
    return [found[minor] for minor in MINORS if minor in found]


def _keep(found: dict[str, Python], python: Python) -> None:
    if python.minor not in MINORS:
        raise Failed(f"{python.executable} is Python {python.version}: a release is for {', '.join(MINORS)}")
    found.setdefault(python.minor, python)


def _probed(command: Sequence[str], executable: str, root: Path | None) -> Python:
    minor, version = run([*command, "-c", _PROBE]).split()
    return Python(minor, version, executable, root)


def _installed(minor: str) -> list[str]:
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    of_pyenv = sorted(pyenv.glob(f"{minor}.*/bin/python{minor}"), reverse=True)
    if of_pyenv:
        return [str(of_pyenv[0])]
    on_path = shutil.which(f"python{minor}")
    return [] if on_path is None else [on_path]


def _entering(root: Path) -> list[str]:
    return ["unshare", "--mount", "sh", "-c", _ENTER, "sh", str(root.resolve())]


def uv() -> str:
    return str(_uv())


def _uv() -> Path:
    found = os.environ.get("UV") or shutil.which("uv")  # `uv run` says where it is; a path may lead to a shim
    if found is None:
        raise Failed("uv is not on the path")
    return Path(found).resolve()


def _uv_cache() -> Path:
    return Path(run([uv(), "cache", "dir"]).strip())
