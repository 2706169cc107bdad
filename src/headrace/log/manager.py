"""All logs of a broker, over several directories.

The manager decides which directory a new partition goes to, opens everything at start (start.py), writes
the checkpoints, and keeps the others going when one directory fails. A directory belongs to one process: it
holds a lock on its `.lock` file.

Synchronous. The slow parts (`open_all`, `shut_down`, `run` of every job) may run in a thread; everything
else belongs to the loop. `on_failure` and `on_loss` may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from headrace.core.errors import CorruptLog, StorageError, UnknownTopicOrPartition
from headrace.core.ids import NO_TOPIC_ID, TopicPartition
from headrace.core.ports import Disk
from headrace.log import checkpoints, files
from headrace.log.checkpoint_writer import CheckpointJob, DirectoryCheckpoints
from headrace.log.directory import MAX_OPEN_SEGMENTS, LogDirectory, online_among, require_one_online
from headrace.log.directory_identity import DirectoryIdentity, adopt_directory
from headrace.log.empty_log import empty_log
from headrace.log.os_disk import descriptor_limit
from headrace.log.partition_log import PartitionLog
from headrace.log.removals import Removals
from headrace.log.start import ConfigOf, Start
from headrace.log.wholeness import ALL_ON, Wholeness

MOST_PREFERRED = 10_000
"""Directories that were asked for ahead of their partitions. The oldest is forgotten: its partition goes
where the fewest are."""


class LogManager:
    __slots__ = (
        "_checkpoints",
        "_config_of",
        "_new_uuid",
        "_preferred",
        "broker_epoch_at_stop",
        "directories",
        "disk",
        "identity",
        "interrupted_moves",
        "logs",
        "quarantined",
        "quarantined_ends",
        "rebuilt",
        "removals",
        "swapping",
        "threads_per_directory",
    )

    def __init__(
        self,
        disk: Disk,
        paths: Sequence[str],
        identity: DirectoryIdentity,
        config_of: ConfigOf,
        *,
        new_uuid: Callable[[], UUID],
        threads_per_directory: int = 2,
        on_failure: Callable[[LogDirectory, StorageError], None] | None = None,
        on_loss: Callable[[LogDirectory], None] | None = None,
        max_open_segments: int | None = None,
        wholeness: Wholeness = ALL_ON,
    ) -> None:
        """Takes every directory: makes it if need be, locks it, checks whose it is (ConfigError if not ours).

        A directory that cannot be used at all is offline from the start; StorageError if all are.
        """
        self.disk = disk
        self.identity = identity
        self.threads_per_directory = threads_per_directory
        self._config_of = config_of
        self._new_uuid = new_uuid
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        """Where partitions shall be that are not here yet, as they were asked for. A restart forgets it."""
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.quarantined: dict[TopicPartition, CorruptLog] = {}
        """Partitions whose synced data is damaged. They are not served, and their files are not touched."""
        self.quarantined_ends: dict[TopicPartition, tuple[int, int]] = {}
        """The last epoch and the end of those that were served until then. The next start may open them."""
        self.rebuilt: list[str] = []
        """Files beside the batches that were not what had been written, when their log was opened."""
        self.interrupted_moves: dict[TopicPartition, LogDirectory] = {}
        """Where replicas were on their way to when the last process ended."""
        self.swapping: set[TopicPartition] = set()
        """Replicas that change their directory just now: no other log may take their names."""
        self.broker_epoch_at_stop = -1
        """From the clean-shutdown files; -1 when the last stop was not clean everywhere."""
        self.directories = [
            adopt_directory(disk, path, identity, new_uuid, on_failure, on_loss) for path in paths
        ]
        self._checkpoints = {
            directory.path: DirectoryCheckpoints(directory) for directory in self.directories
        }
        share = (max_open_segments or min(descriptor_limit() // 2, MAX_OPEN_SEGMENTS)) // len(paths)
        for directory in self.directories:
            directory.max_open = max(share, 1)
            directory.index_blocks = self.directories[0].index_blocks
            directory.wholeness = wholeness
            directory.lower_checkpoints = self._checkpoints[directory.path].lower
            directory.on_rebuilt = self.rebuilt.append
        self.removals = Removals(disk, new_uuid, self._checkpoints)
        require_one_online(self.directories)

    # --- start ---

    def open_all(
        self,
        now_ms: int,
        progress: Callable[[int, int], None] | None = None,
        *,
        host_stayed_up: Callable[[str], bool] = lambda _: False,
        expect_folders: bool = False,
    ) -> dict[TopicPartition, int]:
        """Open, and where need be recover, every log; the high watermarks that were checkpointed.

        `host_stayed_up` says of the path of a directory that nothing can be lost that was written there.
        `expect_folders`: a log that a checkpoint knows, and that has no folder, is damaged like any other.
        """
        start = Start(
            self.directories,
            self._checkpoints,
            self.removals,
            self._config_of,
            self.logs,
            self.quarantined,
            self.rebuilt,
        )
        watermarks = start.open_all(
            now_ms, progress, self.threads_per_directory, host_stayed_up, expect_folders=expect_folders
        )
        self.broker_epoch_at_stop = start.broker_epoch_at_stop
        self.interrupted_moves = start.interrupted_moves
        return watermarks

    # --- directories ---

    def online(self) -> list[LogDirectory]:
        return online_among(self.directories)

    def _place(self) -> LogDirectory:
        """The working directory with the fewest partitions; the first of them, if there are several."""
        require_one_online(self.directories)
        if len(self.online()) == 1:
            return self.online()[0]
        counts = {directory.path: 0 for directory in self.online()}
        for log in self.logs.values():
            if log.directory.path in counts:
                counts[log.directory.path] += 1
        return min(self.online(), key=lambda directory: counts[directory.path])

    def prefer(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """Create the partition there, if that works when it is created."""
        self._preferred.pop(partition, None)
        self._preferred[partition] = directory
        if len(self._preferred) > MOST_PREFERRED:
            del self._preferred[next(iter(self._preferred))]

    def _preferred_for(self, partition: TopicPartition) -> LogDirectory | None:
        directory = self._preferred.pop(partition, None)
        return directory if directory is not None and directory.is_online else None

    # --- partitions ---

    def get(self, partition: TopicPartition) -> PartitionLog:
        """The log of a partition. StorageError: it cannot be served. UnknownTopicOrPartition: not here."""
        log = self.logs.get(partition)
        if log is None:
            if partition in self.quarantined:
                raise StorageError(str(self.quarantined[partition]))
            raise UnknownTopicOrPartition(f"no log of {partition} is here")
        if log.directory.failure is not None:
            log.directory.require_online()
        return log

    def create(
        self,
        partition: TopicPartition,
        topic_id: UUID,
        now_ms: int,
        *,
        directory: LogDirectory | None = None,
    ) -> PartitionLog:
        """A new, empty log. Durable with its first flush: until then the metadata alone knows of it."""
        if partition in self.logs or partition in self.quarantined or self.is_leaving(partition):
            raise StorageError(f"the log of {partition} is here already")
        chosen = directory or self._preferred_for(partition) or self._place()
        chosen.require_online()
        path = f"{chosen.path}/{partition}"
        try:
            saved = self._checkpoints[chosen.path]
            if saved.knows(partition):
                saved.forget((partition,))
            self.disk.make_dirs(path)
            if topic_id != NO_TOPIC_ID:
                files.replace(
                    self.disk,
                    f"{path}/{files.PARTITION_METADATA}",
                    checkpoints.format_partition_metadata(topic_id),
                    sync=False,
                )
            log = empty_log(chosen, path, partition, self._config_of(partition.topic), topic_id, now_ms)
        except OSError as error:
            # What is there of it holds nothing, and is begun anew when it is created again.
            raise chosen.refuse(error, f"create {partition}") from error
        self.logs[partition] = log
        return log

    def is_leaving(self, partition: TopicPartition) -> bool:
        """Whether a log of this name was here a moment ago: the disk may not know yet that it is gone."""
        return partition in self.removals.leaving or partition in self.swapping

    def unique_name(self, partition: TopicPartition, suffix: str) -> str:
        return files.set_aside_name(partition, self._new_uuid(), suffix)

    def delete(self, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Rename the partitions' folders at once; their files go after file.delete.delay.ms."""
        self.removals.doom(self._take(partitions), now_ms)

    def quarantine(self, partition: TopicPartition, error: CorruptLog) -> None:
        """Serve a partition no longer, because it is damaged, and leave its files as they are."""
        log = self.logs.pop(partition)
        self.quarantined_ends[partition] = log.latest_epoch, log.end_offset
        log.abandon()
        self.quarantined[partition] = error
        self._checkpoints[log.directory.path].kept.add(partition)

    def set_quarantined_aside(self, partition: TopicPartition) -> str:
        """Make room for a new log of a damaged partition: its files stay, under another name.

        Raises StorageError if they are found in several working directories. An empty path: there are none.
        """
        places = [each for each in self.online() if self.disk.is_dir(f"{each.path}/{partition}")]
        if not places:
            self._forget_missing(partition)
            return ""
        if len(places) != 1:
            raise StorageError(f"{partition} is in {len(places)} working directories: move it away by hand")
        path = self.removals.set_folder_aside(places[0], partition)
        self._checkpoints[places[0].path].kept.discard(partition)
        self._forget_quarantine(partition)
        return path

    def _forget_missing(self, partition: TopicPartition) -> None:
        for directory in self.online():
            saved = self._checkpoints[directory.path]
            saved.kept.discard(partition)
            if saved.knows(partition):
                self.removals.forget(directory, partition)
        self._forget_quarantine(partition)

    def _forget_quarantine(self, partition: TopicPartition) -> None:
        del self.quarantined[partition]
        self.quarantined_ends.pop(partition, None)

    def set_aside(self, partitions: Iterable[TopicPartition]) -> list[tuple[TopicPartition, str]]:
        """Stop serving partitions that nobody should have here, and keep their files: where they are now."""
        return self.removals.set_aside(self._take(partitions))

    def _take(self, partitions: Iterable[TopicPartition]) -> list[PartitionLog]:
        return [self.logs.pop(partition) for partition in partitions if partition in self.logs]

    def take_expired_files(self, now_ms: int) -> list[tuple[LogDirectory, str]]:
        """Renamed segments whose delay is over, for `Removals.remove_files`, which may run in a thread."""
        online = [log for log in self.logs.values() if log.directory.is_online]
        return [(log.directory, path) for log in online for path in log.folder.take_expired_files(now_ms)]

    def due_flushes(self, now_ms: int) -> list[PartitionLog]:
        """Logs whose flush settings, or a sealed segment, ask for a flush now."""
        return [
            log
            for directory in self.online()
            for log in list(directory.dirty)
            if isinstance(log, PartitionLog) and log.flush_is_due(now_ms)
        ]

    # --- checkpoints and the end ---

    def checkpoints_of(self, log: PartitionLog) -> DirectoryCheckpoints:
        return self._checkpoints[log.directory.path]

    def checkpoints_in(self, directory: LogDirectory) -> DirectoryCheckpoints:
        return self._checkpoints[directory.path]

    def take_checkpoint(
        self, high_watermarks: Mapping[TopicPartition, int] | None = None
    ) -> list[CheckpointJob]:
        """What to write into the checkpoint files now, one job per directory; `run` may go to a thread."""
        jobs = []
        for directory in self.online():
            logs = [log for log in self.logs.values() if log.directory is directory]
            jobs.append(self._checkpoints[directory.path].take(logs, high_watermarks))
        return jobs

    def take_claims(self, high_watermarks: Mapping[TopicPartition, int]) -> list[CheckpointJob]:
        """The same of the high watermarks alone, which are written more often."""
        jobs = []
        for directory in self.online():
            logs = [log for log in self.logs.values() if log.directory is directory]
            jobs.append(self._checkpoints[directory.path].take_claims(logs, high_watermarks))
        return jobs

    def take_claims_again(self) -> list[CheckpointJob]:
        """Of the logs as they were opened, before anybody uses them."""
        marks = {
            partition: min(mark, self.logs[partition].end_offset)
            for directory in self.online()
            for partition, mark in self._checkpoints[directory.path].known_watermarks().items()
            if partition in self.logs
        }
        return self.take_claims(marks)

    @property
    def have_claims(self) -> bool:
        """Whether each working directory said at the start, with a checksum, what it holds."""
        return all(self._checkpoints[each.path].claims.logs is not None for each in self.online())

    def versions(self) -> dict[UUID, int]:
        """Of what each working directory claims, as it is on its disk."""
        return {each.uuid: self._checkpoints[each.path].claims.written for each in self.online()}

    def raise_versions(self, known: Mapping[UUID, int]) -> list[LogDirectory]:
        """The directories that had an older version at the start than is known. Their next one is above
        that."""
        return [
            directory
            for directory in self.online()
            if self._checkpoints[directory.path].claims.raise_version(known.get(directory.uuid, 0))
        ]

    def shut_down(
        self, broker_epoch: int, high_watermarks: Mapping[TopicPartition, int] | None = None
    ) -> None:
        """Close every log and say so on the disk, in each directory that still works."""
        for directory in self.online():
            logs = [log for log in self.logs.values() if log.directory is directory]
            try:
                self._close(logs)
                saved = self._checkpoints[directory.path]
                saved.take(logs, high_watermarks).run()
                path = f"{directory.path}/{checkpoints.CLEAN_SHUTDOWN}"
                doubtful = {log.topic_partition for log in logs if log.doubtful is not None}
                said = checkpoints.format_clean_shutdown(broker_epoch, saved.kept | doubtful)
                files.replace(self.disk, path, said, sync=True)
            except StorageError:
                continue  # offline, and said so; without the file the next start recovers it
            except OSError as error:
                directory.fail(error, "write its clean-shutdown file")
        self.release()

    def _close(self, logs: Sequence[PartitionLog]) -> None:
        """In threads: each log waits for several syncs, which the file system carries out together."""
        if self.threads_per_directory <= 1:
            for log in logs:
                log.close()
            return
        with ThreadPoolExecutor(self.threads_per_directory, thread_name_prefix="log-close") as pool:
            for future in [pool.submit(log.close) for log in logs]:
                future.result()

    def release(self) -> None:
        """Let go of every descriptor and lock, as a process that ends would."""
        for log in self.logs.values():
            log.abandon()
        for directory in self.directories:
            directory.unlock()
