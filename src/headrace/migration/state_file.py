"""The file of a migration: replaced as a whole, and held by one command at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.client.errors import ClientFailure
from headrace.client.private_files import READABLE, write_file
from headrace.migration.state import Migration, decoded, encoded


def read(path: Path) -> Migration:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ClientFailure(
            f"there is no {path}",
            "`headrace migrate plan` makes it; --state names the file of another migration",
        ) from None
    return decoded(data, str(path))


def write(path: Path, migration: Migration) -> None:
    write_file(path, encoded(migration), READABLE)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """The kernel lets go of it when the command ends, however it ends."""
    beside = path.with_name(path.name + ".lock")
    descriptor = os.open(beside, os.O_RDWR | os.O_CREAT, READABLE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClientFailure(
                f"another command works on {path}: process {os.read(descriptor, 20).decode().strip()}",
                "wait for it, or end it and run this one again: it goes on where that one was",
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
