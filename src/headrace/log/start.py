"""The start: every log of a broker is opened, and recovered where need be, with threads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from headrace.core.errors import CorruptLog, StorageError
from headrace.core.ids import TopicPartition
from headrace.log import checkpoints, files
from headrace.log.checkpoint_writer import DirectoryCheckpoints
from headrace.log.directory import LogDirectory, online_among, require_one_online
from headrace.log.moving import start as moves
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import open_log
from headrace.log.removals import Removals
from headrace.log.wholeness import Claims

if TYPE_CHECKING:
    from headrace.config.topic import TopicConfig


ConfigOf = Callable[[str], "TopicConfig"]
"""The effective configuration of a topic, by its name."""
Progress = Callable[[int, int], None]
"""Told how many logs are open, and of how many."""


class Start:
    """Fills what its owner keeps: `logs`, `quarantined` and `rebuilt`, from several threads."""

    __slots__ = (
        "_checkpoints",
        "_config_of",
        "_directories",
        "_logs",
        "_quarantined",
        "_rebuilt",
        "_removals",
        "broker_epoch_at_stop",
        "interrupted_moves",
    )

    def __init__(
        self,
        directories: Sequence[LogDirectory],
        saved: Mapping[str, DirectoryCheckpoints],
        removals: Removals,
        config_of: ConfigOf,
        logs: dict[TopicPartition, PartitionLog],
        quarantined: dict[TopicPartition, CorruptLog],
        rebuilt: list[str],
    ) -> None:
        self._directories = directories
        self._checkpoints = saved
        self._removals = removals
        self._config_of = config_of
        self._logs = logs
        self._quarantined = quarantined
        self._rebuilt = rebuilt
        self.broker_epoch_at_stop = -1
        """From the clean-shutdown files; -1 when the last stop was not clean everywhere."""
        self.interrupted_moves: dict[TopicPartition, LogDirectory] = {}
        """Where replicas were on their way to."""

    def open_all(
        self,
        now_ms: int,
        progress: Progress | None,
        threads_per_directory: int,
        host_stayed_up: Callable[[str], bool],
        *,
        expect_folders: bool,
    ) -> dict[TopicPartition, int]:
        """As `LogManager.open_all`."""
        jobs, clean_epochs, expected = [], [], []
        stops: dict[LogDirectory, checkpoints.CleanStop | None] = {}
        named: dict[LogDirectory, Sequence[str]] = {}
        for directory in online_among(self._directories):
            try:
                stops[directory] = self._begin(directory)
                named[directory] = directory.disk.list(directory.path)
            except OSError as error:
                directory.fail(error, "read it", half_done=True)
        older = moves.superseded(named)
        present = {directory.uuid for directory in named}
        for directory in online_among(list(named)):
            clean = stops[directory]
            clean_epochs.append(None if clean is None else clean.broker_epoch)
            lost_nothing = clean is not None or host_stayed_up(directory.path)
            not_here = {str(partition) for each, partition in older if each is directory}
            names = [name for name in named[directory] if name not in not_here]
            jobs += self._jobs(directory, names, clean, lost_nothing, now_ms, present)
            expected.append((self._checkpoints[directory.path], lost_nothing))
        if clean_epochs and all(epoch is not None for epoch in clean_epochs):
            self.broker_epoch_at_stop = max(epoch for epoch in clean_epochs if epoch is not None)
        self._run(jobs, progress, threads_per_directory)
        require_one_online(self._directories)
        if expect_folders and len(expected) == len(self._directories):
            for saved, lost_nothing in expected:
                if saved.directory.is_online:  # else its folders are there, and were not opened
                    self._quarantine_missing(saved, lost_nothing)
        self._end_moves(older, named, now_ms)
        watermarks: dict[TopicPartition, int] = {}
        for directory in online_among(self._directories):
            saved = self._checkpoints[directory.path]
            logs = [log for log in self._logs.values() if log.directory is directory]
            elsewhere = self._logs.keys() - {log.topic_partition for log in logs}
            known = saved.known_watermarks()
            watermarks.update({name: mark for name, mark in known.items() if name not in elsewhere})
            try:
                saved.write_recovery_points({log.topic_partition: log.recovery_point for log in logs})
                saved.drop_clean_offsets_beyond(logs)
                saved.correct_claims(logs)
                directory.disk.sync_dir(directory.path)
            except OSError as error:
                directory.fail(error, "write its checkpoint", half_done=True)
        return watermarks

    def _end_moves(
        self,
        older: Sequence[tuple[LogDirectory, TopicPartition]],
        named: Mapping[LogDirectory, Sequence[str]],
        now_ms: int,
    ) -> None:
        """What moves have left that were interrupted. What may be the last copy of something stays."""
        for directory, partition in older:
            try:
                self._removals.set_folder_aside(directory, partition)
            except StorageError:
                continue  # it is offline, and said so
            log = self._logs.get(partition)
            if log is not None:
                moves.forget(log.directory, log.path)
        for partition, directory, path in moves.future_replicas(named):
            if partition in self._logs:
                self._removals.found(directory, path, now_ms)
                if self._logs[partition].directory is not directory:
                    self.interrupted_moves[partition] = directory

    def _quarantine_missing(self, saved: DirectoryCheckpoints, lost_nothing: bool) -> None:
        """Not all that a checkpoint knows was made durable before a loss of power: what was synced was."""
        for partition in saved.expected(synced_only=not lost_nothing):
            if partition not in self._logs and partition not in self._quarantined:
                path = f"{saved.directory.path}/{partition}"
                self._quarantine(
                    partition, CorruptLog(f"{path} is missing; restore it from a replica or a backup"), saved
                )

    def _begin(self, directory: LogDirectory) -> checkpoints.CleanStop | None:
        """Read the checkpoints. What a clean stop said, or None; its file goes at once."""
        self._checkpoints[directory.path].load()
        path = f"{directory.path}/{checkpoints.CLEAN_SHUTDOWN}"
        try:
            stop = checkpoints.parse_clean_shutdown(files.read_all(directory.disk, path))
        except FileNotFoundError:
            return None
        directory.disk.remove(path)
        directory.disk.sync_dir(directory.path)
        return stop

    def _jobs(
        self,
        directory: LogDirectory,
        names: Iterable[str],
        clean: checkpoints.CleanStop | None,
        lost_nothing: bool,
        now_ms: int,
        present: Collection[UUID],
    ) -> list[Callable[[], None]]:
        jobs: list[Callable[[], None]] = []
        saved = self._checkpoints[directory.path]
        for name in names:
            path = f"{directory.path}/{name}"
            if name.endswith(files.DELETED_DIRECTORY):
                if directory.disk.is_dir(path):
                    self._removals.found(directory, path, now_ms)
                continue
            partition = files.parse_directory(name)
            if partition is None or not directory.disk.is_dir(path):
                continue
            # What was damaged at a clean stop is looked at again: it may have been mended meanwhile.
            is_clean = clean is not None and partition not in clean.quarantined
            claims = saved.claims_of(partition, lost_nothing, is_clean)
            jobs.append(
                partial(self._open_one, directory, path, partition, claims, is_clean, now_ms, present)
            )
        return jobs

    def _open_one(
        self,
        directory: LogDirectory,
        path: str,
        partition: TopicPartition,
        claims: Claims,
        clean: bool,
        now_ms: int,
        present: Collection[UUID],
    ) -> None:
        config = self._config_of(partition.topic)
        try:
            moves.open_alone(directory, path, present)
            log = open_log(
                directory,
                path,
                partition,
                config,
                claims,
                clean=clean,
                now_ms=now_ms,
                on_rebuilt=self._rebuilt.append,
            )
        except CorruptLog as error:
            self._quarantine(partition, error, self._checkpoints[directory.path])
            return
        except StorageError:
            return  # the directory is offline, and said so
        if partition in self._logs or partition in self._quarantined:
            other = self._logs[partition].path if partition in self._logs else "another directory"
            twice = f"{partition} is in {path} and in {other}: move one of them away, then restart the broker"
            self._quarantine(partition, CorruptLog(twice), *self._checkpoints.values())
            self._logs.pop(partition, None)
            return
        self._logs[partition] = log

    def _quarantine(self, partition: TopicPartition, error: CorruptLog, *saved: DirectoryCheckpoints) -> None:
        self._quarantined[partition] = error
        for checkpoint in saved:
            checkpoint.kept.add(partition)

    def _run(
        self, jobs: Sequence[Callable[[], None]], progress: Progress | None, threads_per_directory: int
    ) -> None:
        threads = threads_per_directory * max(len(online_among(self._directories)), 1)
        if threads <= 1 or len(jobs) <= 1:
            for count, job in enumerate(jobs, 1):
                job()
                if progress is not None:
                    progress(count, len(jobs))
            return
        with ThreadPoolExecutor(threads, thread_name_prefix="log-recovery") as pool:
            for count, future in enumerate([pool.submit(job) for job in jobs], 1):
                future.result()
                if progress is not None:
                    progress(count, len(jobs))
