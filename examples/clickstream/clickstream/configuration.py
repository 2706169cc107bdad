"""The configurations beside this file, with the address of today's brokers."""

from __future__ import annotations

from pathlib import Path


def write(name: str, bootstrap: str, directory: Path) -> Path:
    """A copy in the directory of the run. Paths in it are relative to it."""
    template = Path(__file__).with_name(name).read_text()
    copy = directory / name
    copy.write_text(template.replace("BOOTSTRAP", bootstrap))
    return copy
