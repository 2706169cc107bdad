"""Partitions on their way out: renamed at once, removed later, or kept aside under another name.

Renaming is what counts. A folder with its new name is found by a start whatever happens in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from headrace.core.ids import TopicPartition
from headrace.core.ports import Disk
from headrace.log import files
from headrace.log.checkpoint_writer import DirectoryCheckpoints
from headrace.log.directory import LogDirectory
from headrace.log.partition_log import PartitionLog

Folder = tuple[LogDirectory, str]


class Removals:
    __slots__ = ("_checkpoints", "_disk", "_doomed", "_new_uuid")

    def __init__(
        self, disk: Disk, new_uuid: Callable[[], UUID], checkpoints: Mapping[str, DirectoryCheckpoints]
    ) -> None:
        self._disk = disk
        self._new_uuid = new_uuid
        self._checkpoints = checkpoints
        self._doomed: list[tuple[int, Folder]] = []
        """When, and what."""

    def doom(self, logs: Iterable[PartitionLog], now_ms: int) -> None:
        for log, path in self._rename(logs, files.DELETED_DIRECTORY):
            self._doomed.append((now_ms + log.config.file_delete_delay_ms, (log.directory, path)))

    def found(self, directory: LogDirectory, path: str, now_ms: int) -> None:
        """A folder that an earlier life has renamed and not removed."""
        self._doomed.append((now_ms, (directory, path)))

    def set_aside(self, logs: Iterable[PartitionLog]) -> list[str]:
        return [path for _, path in self._rename(logs, files.STRAY_DIRECTORY)]

    def set_folder_aside(self, directory: LogDirectory, partition: TopicPartition) -> str:
        """For a folder that no log was opened from."""
        path = f"{directory.path}/{files.set_aside_name(partition, self._new_uuid(), files.STRAY_DIRECTORY)}"
        try:
            self._disk.rename(f"{directory.path}/{partition}", path)
            self._disk.sync_dir(directory.path)
            self._checkpoints[directory.path].forget([partition])
        except OSError as error:
            raise directory.fail(error, f"rename {partition}") from error
        return path

    def _rename(self, logs: Iterable[PartitionLog], suffix: str) -> list[tuple[PartitionLog, str]]:
        """All of a directory together, so that a thousand partitions take a few syncs, not thousands."""
        moved: dict[LogDirectory, list[tuple[PartitionLog, str]]] = {}
        for log in logs:
            log.abandon()
            directory = log.directory
            if not directory.is_online:
                continue
            name = files.set_aside_name(log.topic_partition, self._new_uuid(), suffix)
            path = f"{directory.path}/{name}"
            try:
                self._disk.rename(log.path, path)
            except OSError as error:
                directory.fail(error, f"rename {log.topic_partition}")
                continue
            moved.setdefault(directory, []).append((log, path))
        for directory, items in moved.items():
            try:
                self._disk.sync_dir(directory.path)
                self._checkpoints[directory.path].forget([log.topic_partition for log, _ in items])
            except OSError as error:
                directory.fail(error, "rename partitions")
        return [item for items in moved.values() for item in items]

    def take_due(self, now_ms: int) -> list[Folder]:
        """Folders whose delay is over, for `remove`, which may run in a thread."""
        due = [folder for when, folder in self._doomed if when <= now_ms]
        self._doomed = [item for item in self._doomed if item[0] > now_ms]
        return due

    def remove(self, folders: Iterable[Folder]) -> None:
        for directory, path in folders:
            if not directory.is_online:
                continue  # the next start finds it by its name
            try:
                self._disk.remove_tree(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                directory.fail(error, f"delete {path}")

    def remove_files(self, files: Iterable[tuple[LogDirectory, str]]) -> None:
        """Files of segments that are gone. A large one takes a file system long: not on the loop."""
        for directory, path in files:
            if not directory.is_online:
                continue  # the next start finds it by its name
            try:
                self._disk.remove(path)
            except FileNotFoundError:
                continue  # its folder was renamed, or it was taken twice
            except OSError as error:
                directory.fail(error, f"delete {path}")
