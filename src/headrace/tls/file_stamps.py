"""Whether the files of a certificate are still the ones that were loaded."""

from __future__ import annotations

import os

from headrace.config.tls_properties import TlsProperties

Stamp = tuple[tuple[int, int, int] | None, ...]
"""Of each file: when it was written, its inode, its size. None for one that is not there."""


def stamp_of(properties: TlsProperties) -> Stamp:
    return tuple(_stamp(path) for path in properties.files)


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
