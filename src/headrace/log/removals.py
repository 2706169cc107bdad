"""Partitions on their way out: renamed at once, removed later, or kept aside under another name.

Renaming is what counts, and is done at once. A folder with its new name is found by a start whatever happens
in between. A thread then syncs the names, and the checkpoints that forget them: `RemovalJob`. Until that
is done nothing new may have the old name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from uuid import UUID

from headrace.core.ids import TopicPartition
from headrace.core.ports import Disk
from headrace.log import files
from headrace.log.checkpoint_writer import DirectoryCheckpoints
from headrace.log.directory import LogDirectory
from headrace.log.partition_log import PartitionLog

Folder = tuple[LogDirectory, str]


class RemovalJob:
    """Partitions of one directory whose folders have other names now. `run` is for a thread."""

    __slots__ = ("_owner", "directory", "partitions")

    def __init__(self, owner: Removals, directory: LogDirectory, partitions: list[TopicPartition]) -> None:
        self._owner = owner
        self.directory = directory
        self.partitions = partitions

    def join(self, other: RemovalJob) -> None:
        """Of the same directory, and neither has run."""
        self.partitions += other.partitions

    def run(self) -> None:
        """All of a directory together, so that a thousand partitions take a few syncs, not thousands."""
        directory = self.directory
        try:
            directory.disk.sync_dir(directory.path)
            self._owner.checkpoints[directory.path].forget(self.partitions)
        except OSError as error:
            directory.refuse(error, "rename partitions")  # what is removed next makes room

    def done(self) -> None:
        self._owner.leaving.difference_update(self.partitions)


class Removals:
    __slots__ = ("_disk", "_doomed", "_new_uuid", "checkpoints", "leaving", "on_removal")

    def __init__(
        self, disk: Disk, new_uuid: Callable[[], UUID], checkpoints: Mapping[str, DirectoryCheckpoints]
    ) -> None:
        self._disk = disk
        self._new_uuid = new_uuid
        self.checkpoints = checkpoints
        self._doomed: list[tuple[int, Folder]] = []
        """When, and what."""
        self.leaving: set[TopicPartition] = set()
        """Renamed, and not yet forgotten on the disk: no other log may take their names."""
        self.on_removal: Callable[[RemovalJob], None] = _run_at_once
        """Has a thread run it, then calls `done`."""

    def doom(self, logs: Iterable[PartitionLog], now_ms: int) -> None:
        for log, path in self._rename(logs, files.DELETED_DIRECTORY):
            self._doomed.append((now_ms + log.config.file_delete_delay_ms, (log.directory, path)))

    def found(self, directory: LogDirectory, path: str, now_ms: int) -> None:
        """A folder that an earlier life has renamed and not removed."""
        self._doomed.append((now_ms, (directory, path)))

    def set_aside(self, logs: Iterable[PartitionLog]) -> list[tuple[TopicPartition, str]]:
        return [(log.topic_partition, path) for log, path in self._rename(logs, files.STRAY_DIRECTORY)]

    def set_folder_aside(self, directory: LogDirectory, partition: TopicPartition) -> str:
        """For a folder that no log was opened from."""
        path = f"{directory.path}/{files.set_aside_name(partition, self._new_uuid(), files.STRAY_DIRECTORY)}"
        try:
            self._disk.rename(f"{directory.path}/{partition}", path)
        except OSError as error:
            raise directory.fail(error, f"rename {partition}") from error
        self._make_durable(directory, [partition])
        return path

    def forget(self, directory: LogDirectory, partition: TopicPartition) -> None:
        """What was said of a log whose folder is not there any more."""
        self._make_durable(directory, [partition])

    def _rename(self, logs: Iterable[PartitionLog], suffix: str) -> list[tuple[PartitionLog, str]]:
        moved: dict[LogDirectory, list[tuple[PartitionLog, str]]] = {}
        for log in logs:
            directory = log.directory
            name = files.set_aside_name(log.topic_partition, self._new_uuid(), suffix)
            path = f"{directory.path}/{name}"
            with nullcontext() if log.truncation is None else log.truncation.lock:
                log.abandon()
                if not directory.is_online:
                    continue
                try:
                    self._disk.rename(log.path, path)
                except OSError as error:
                    directory.fail(error, f"rename {log.topic_partition}")
                    continue
            moved.setdefault(directory, []).append((log, path))
        for directory, items in moved.items():
            self._make_durable(directory, [log.topic_partition for log, _ in items])
        return [item for items in moved.values() for item in items]

    def _make_durable(self, directory: LogDirectory, partitions: list[TopicPartition]) -> None:
        self.checkpoints[directory.path].note_gone(partitions)
        self.leaving.update(partitions)
        self.on_removal(RemovalJob(self, directory, partitions))

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


def _run_at_once(job: RemovalJob) -> None:
    """For logs without a broker: whoever deletes one waits for it."""
    job.run()
    job.done()
