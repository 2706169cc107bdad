"""A disk in memory that can lose, tear and flip, the same way every time for the same seed.

What a program writes is in the cache at once. Only `File.sync` makes bytes durable, and only `Disk.sync_dir`
makes names durable. At `crash`, each sector that was not synced may be lost or kept, a file may have any
length between its synced and its last one, and the names in a folder are those after some of the operations
that were not synced, in their order. Files that were open before a crash cannot be used after it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Final, NamedTuple

from headrace.core.ports import Buffer, SyncFailed
from headrace.testing.disk_nodes import SECTOR_BYTES, Content, Folder, resize

_NO_LIMIT: Final = 1 << 60


class Fault(NamedTuple):
    """Every matching call raises this error: `operation` is a method of the ports, `path` a beginning."""

    operation: str
    path: str
    error: int


class SimulatedFile:
    __slots__ = ("_content", "_disk", "_generation", "_path")

    def __init__(self, disk: SimulatedDisk, path: str, content: Content) -> None:
        self._disk = disk
        self._path = path
        self._content = content
        self._generation = disk.generation

    def _use(self, operation: str) -> Content:
        if self._generation != self._disk.generation:
            raise OSError(errno.EBADF, "the file was closed, or open before the crash", self._path)
        self._disk.meet_faults(operation, self._path)
        return self._content

    def pread(self, length: int, position: int) -> bytes:
        content = self._use("pread")
        content.is_resident = True
        return bytes(content.cached[position : position + length])

    def pread_resident(self, length: int, position: int) -> bytes | None:
        if not self.is_resident(position, length):
            return None
        data = self.pread(length, position)
        return data if len(data) == length else None

    def pread_passing(self, length: int, position: int) -> bytes:
        return self.pread(length, position)

    def is_resident(self, position: int, length: int) -> bool:  # noqa: ARG002 - the port's signature
        if self._disk.is_unseen:
            return True
        if not self._content.is_resident:
            return False
        return not any(self._path.startswith(cold) for cold in self._disk.cold)

    def pwrite(self, data: Buffer, position: int) -> None:
        content = self._use("pwrite")
        end = position + len(data)
        room = self._disk.take_space(max(0, end - len(content.cached)))
        if end - room > position:
            if len(content.cached) < position:
                content.touch(len(content.cached), position)
                resize(content.cached, position)
            content.cached[position : end - room] = bytes(data)[: len(data) - room]
            content.touch(position, end - room)
            content.modified_ms = self._disk.now_ms
        if room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)

    def size(self) -> int:
        return len(self._use("size").cached)

    def truncate(self, size: int) -> None:
        content = self._use("truncate")
        content.touch(min(size, len(content.cached)), max(size, len(content.cached)))
        resize(content.cached, size)
        content.dirty = {sector for sector in content.dirty if sector * SECTOR_BYTES < size}
        content.modified_ms = self._disk.now_ms

    def sync(self) -> None:
        try:
            content = self._use("sync")
        except OSError as error:
            raise SyncFailed.of(error) from error
        content.sync()

    def close(self) -> None:
        self._generation = -1

    def fileno(self) -> int:
        raise OSError(errno.EBADF, "a simulated file has no descriptor", self._path)


class SimulatedDisk:
    """Implements `core.ports.Disk`. `now_ms` is the time that files are modified at; tests move it."""

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)
        self.now_ms = 0
        self.generation = 0
        self.faults: list[Fault] = []
        self.cold: set[str] = set()
        """Beginnings of paths of which nothing is in memory."""
        self.is_unseen = False
        """Whoever reads is not of the program: it is told of nothing that has left memory."""
        self._changed: dict[Content, None] = {}
        self.failed_syncs: dict[str, None] = {}
        """Files that a fault kept from being synced."""
        self.free = _NO_LIMIT
        self._root = Folder()

    # --- what tests do to it ---

    def crash(self, keep: float | None = None) -> None:
        """Lose power. `keep`: how likely unsynced sectors survive, drawn if not given; 1.0: only killed."""
        self.generation += 1
        drawn = self.random.choice((0.0, 0.5, 0.5, 0.9, 1.0)) if keep is None else keep
        self._root.crash(self.random, drawn)

    def kill(self) -> None:
        """End the process only: the cache stays, and is written in the end."""
        self.crash(keep=1.0)

    @property
    def refuses_to_sync(self) -> bool:
        return any(fault.operation == "sync" for fault in self.faults)

    def lose_unsynced(self) -> None:
        """What a failed sync leaves in the end: the pages count as clean, and are not what was written.

        So files that could not be synced go back to what was synced of them. Their names stay. Whoever opens
        the disk after the process that met the failure finds it so; later, what others wrote would go too.
        """
        for path in self.failed_syncs:
            if self.exists(path):
                self._content(path).crash(self.random, 0.0)
        self.failed_syncs.clear()

    def flip(self, path: str, bit: int) -> None:
        """Change one bit of a file, in the cache and on the disk."""
        content = self._content(path)
        for data in (content.cached, content.durable):
            if bit // 8 < len(data):
                data[bit // 8] ^= 1 << bit % 8

    def content(self, path: str) -> bytes:
        """As the program would see it, whatever faults there are."""
        return bytes(self._content(path).cached)

    def put(self, path: str, data: bytes) -> None:
        """What a hand from outside leaves behind: other bytes under a name, there for good. Whoever has the
        file open sees them when it reads them from the disk."""
        self.make_dirs(path.rpartition("/")[0])
        folder, name = self._parent(path)
        node = folder.names.get(name)
        if not isinstance(node, Content):
            node = Content(self.now_ms)
            folder.put(name, node)
            folder.durable[name] = node
        node.cached[:] = data
        node.is_resident = False
        self._changed[node] = None
        node.durable[:] = data
        node.dirty.clear()

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """What is read meanwhile stays as far from memory as it was."""
        far = [node for node in self._changed if not node.is_resident]
        self.is_unseen = True
        try:
            yield
        finally:  # also where damage ends the reading
            self.is_unseen = False
            for node in far:
                node.is_resident = False

    def lose(self, path: str) -> None:
        """A file or folder is gone for good. Whoever has it open keeps it."""
        folder, name = self._parent(path)
        folder.drop(name)
        folder.durable.pop(name, None)

    def files(self, under: str = "") -> list[str]:
        """Every file, by its path."""
        return sorted(path for path in self._walk(self._root, "") if path.startswith(under))

    def meet_faults(self, operation: str, path: str) -> None:
        for fault in self.faults:
            if fault.operation == operation and path.startswith(fault.path):
                if operation == "sync":
                    self.failed_syncs[path] = None
                raise OSError(fault.error, os.strerror(fault.error), path)

    def take_space(self, length: int) -> int:
        """Use up free space; how much of `length` there was no room for."""
        taken = min(length, self.free)
        self.free -= taken
        return length - taken

    # --- the port ---

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        self.meet_faults("open", path)
        folder, name = self._parent(path)
        node = folder.names.get(name)
        if node is None:
            if not create:
                raise _missing(path)
            node = Content(self.now_ms)
            folder.put(name, node)
        if isinstance(node, Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return SimulatedFile(self, path, node)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_dir(self, path: str) -> bool:
        return isinstance(self._find(path), Folder)

    def list(self, path: str) -> Sequence[str]:
        self.meet_faults("list", path)
        return sorted(self._folder(path).names)

    def make_dirs(self, path: str) -> None:
        self.meet_faults("make_dirs", path)
        folder = self._root
        for name in _parts(path):
            node = folder.names.get(name)
            if node is None:
                node = Folder()
                folder.put(name, node)
            if not isinstance(node, Folder):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            folder = node

    def rename(self, old: str, new: str) -> None:
        self.meet_faults("rename", old)
        source, old_name = self._parent(old)
        target, new_name = self._parent(new)
        if old_name not in source.names:
            raise _missing(old)
        if source is target:
            source.rename(old_name, new_name)
        else:
            target.put(new_name, source.names[old_name])
            source.drop(old_name)

    def remove(self, path: str) -> None:
        self.meet_faults("remove", path)
        folder, name = self._parent(path)
        if name not in folder.names:
            raise _missing(path)
        folder.drop(name)

    def remove_tree(self, path: str) -> None:
        self.meet_faults("remove_tree", path)
        self._folder(path)
        folder, name = self._parent(path)
        folder.drop(name)

    def sync_dir(self, path: str) -> None:
        try:
            self.meet_faults("sync_dir", path)
        except OSError as error:
            raise SyncFailed.of(error) from error
        self._folder(path).sync()

    def size(self, path: str) -> int:
        self.meet_faults("size", path)
        return len(self._content(path).cached)

    def modified_ms(self, path: str) -> int:
        return self._content(path).modified_ms

    def free_bytes(self, path: str) -> int:
        self._folder(path)
        return self.free

    def total_bytes(self, path: str) -> int:
        self._folder(path)
        return _NO_LIMIT

    # --- finding things ---

    def _find(self, path: str) -> Content | Folder | None:
        node: Content | Folder | None = self._root
        for name in _parts(path):
            node = node.names.get(name) if isinstance(node, Folder) else None
        return node

    def _folder(self, path: str) -> Folder:
        node = self._find(path)
        if node is None:
            raise _missing(path)
        if not isinstance(node, Folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return node

    def _content(self, path: str) -> Content:
        node = self._find(path)
        if not isinstance(node, Content):
            raise _missing(path)
        return node

    def _parent(self, path: str) -> tuple[Folder, str]:
        above, _, name = path.rstrip("/").rpartition("/")
        return self._folder(above), name

    def _walk(self, folder: Folder, path: str) -> Iterator[str]:
        for name, node in folder.names.items():
            if isinstance(node, Folder):
                yield from self._walk(node, f"{path}/{name}")
            else:
                yield f"{path}/{name}"


def _parts(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
