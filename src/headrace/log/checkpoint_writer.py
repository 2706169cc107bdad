"""The four offset checkpoints of one log directory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from threading import Lock

from headrace.core.ids import TopicPartition
from headrace.log import checkpoints, files
from headrace.log.directory import LogDirectory
from headrace.log.partition_log import PartitionLog


class DirectoryCheckpoints:
    """What the files hold, and the only writer of them.

    Invariant: the recovery point of a partition on the disk is never above what has been synced and is still
    there, and nothing below its clean offset is in want of compaction. A ticket that was taken before a
    truncation may be run after it, so what `lower` and `forget` said since stands above what the ticket says.
    """

    __slots__ = (
        "_cuts",
        "_lock",
        "_lowered",
        "clean_offsets",
        "directory",
        "high_watermarks",
        "kept",
        "log_start_offsets",
        "recovery_points",
    )

    def __init__(self, directory: LogDirectory) -> None:
        self.directory = directory
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_start_offsets: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.clean_offsets: dict[TopicPartition, int] = {}
        """Up to where each compacted log is clean."""
        self._cuts: dict[TopicPartition, int] = {}
        """How often `lower` or `forget` was called: a clean offset from before is void."""
        self._lowered: dict[TopicPartition, tuple[int, int] | None] = {}
        """Recovery points and log starts, since the last ticket was taken; None: the partition is gone."""
        self.kept: set[TopicPartition] = set()
        """Quarantined partitions: what was promised of them stays on the disk, or the next start would not
        know that anything is missing and cut what is left."""
        self._lock = Lock()

    def load(self) -> None:
        disk, path = self.directory.disk, self.directory.path
        self.recovery_points = checkpoints.load_offsets(disk, f"{path}/{checkpoints.RECOVERY_POINTS}")
        self.log_start_offsets = checkpoints.load_offsets(disk, f"{path}/{checkpoints.LOG_START_OFFSETS}")
        self.high_watermarks = checkpoints.load_offsets(disk, f"{path}/{checkpoints.HIGH_WATERMARKS}")
        self.clean_offsets = checkpoints.load_offsets(disk, f"{path}/{checkpoints.CLEAN_OFFSETS}")

    def take(
        self, logs: Sequence[PartitionLog], high_watermarks: Mapping[TopicPartition, int] | None
    ) -> CheckpointTicket:
        recovery: dict[TopicPartition, int] = {}
        starts: dict[TopicPartition, int] = {}
        marks: dict[TopicPartition, int] = {}
        for log in logs:
            partition = log.topic_partition
            recovery[partition] = log.recovery_point
            if log.log_start_offset:
                starts[partition] = log.log_start_offset
            if high_watermarks is not None and partition in high_watermarks:
                marks[partition] = high_watermarks[partition]
        raised = [log for log in logs if log in self.directory.raised]
        self.directory.raised.clear()
        with self._lock:
            self._lowered.clear()
        return CheckpointTicket(
            self, recovery, starts, marks if high_watermarks is not None else None, raised
        )

    def lower(self, partition: TopicPartition, recovery_point: int, log_start: int) -> None:
        """Durably, before the log is cut. OSError if that cannot be done."""
        with self._lock:
            self._lowered[partition] = recovery_point, log_start
            self._cuts[partition] = self._cuts.get(partition, 0) + 1
            if self.clean_offsets.get(partition, 0) > recovery_point:
                self._write_clean_offsets({**self.clean_offsets, partition: recovery_point})
            if self.recovery_points.get(partition, 0) > recovery_point:
                self._write_recovery_points({**self.recovery_points, partition: recovery_point})
            if self.log_start_offsets.get(partition, 0) > log_start:
                self._write_log_starts({**self.log_start_offsets, partition: log_start})

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Logs of these names begin or end: nothing that was said of others holds for them."""
        gone = set(partitions)
        with self._lock:
            for partition in gone:
                self._lowered[partition] = None
                self._cuts[partition] = self._cuts.get(partition, 0) + 1
            for known, write in (
                (self.clean_offsets, self._write_clean_offsets),
                (self.recovery_points, self._write_recovery_points),
                (self.log_start_offsets, self._write_log_starts),
                (self.high_watermarks, self._write_high_watermarks),
            ):
                if not known.keys().isdisjoint(gone):  # it looks at the few, not at all that are known
                    write({partition: at for partition, at in known.items() if partition not in gone})

    def write_recovery_points(self, offsets: dict[TopicPartition, int]) -> None:
        with self._lock:
            self._correct(offsets, 0)
            self._keep(offsets, self.recovery_points)
            self._write_recovery_points(offsets)

    def write_log_starts(self, offsets: dict[TopicPartition, int]) -> None:
        with self._lock:
            self._correct(offsets, 1)
            self._keep(offsets, self.log_start_offsets)
            self._write_log_starts(offsets)

    def write_high_watermarks(self, offsets: dict[TopicPartition, int]) -> None:
        with self._lock:
            for partition, lowered in self._lowered.items():
                if lowered is None:  # deleted since: its successor has committed nothing yet
                    offsets.pop(partition, None)
            self._write_high_watermarks(offsets)

    def take_clean_offset(self, log: PartitionLog, offset: int) -> CleanOffsetTicket:
        """Everything below `offset` is compacted. To be run once what the cleaner has swapped is in place."""
        return CleanOffsetTicket(self, log, offset, self._cuts.get(log.topic_partition, 0))

    def write_clean_offset(self, partition: TopicPartition, offset: int, cuts: int) -> None:
        with self._lock:
            if cuts == self._cuts.get(partition, 0):
                self._write_clean_offsets({**self.clean_offsets, partition: offset})

    def drop_clean_offsets_beyond(self, logs: Iterable[PartitionLog]) -> None:
        """At the start: a log that has lost its end may come to have other records there."""
        ends = {log.topic_partition: log.end_offset for log in logs}
        with self._lock:
            kept = {known: at for known, at in self.clean_offsets.items() if at <= ends.get(known, at)}
            self._write_clean_offsets(kept)

    def _keep(self, offsets: dict[TopicPartition, int], known: Mapping[TopicPartition, int]) -> None:
        for partition in self.kept:
            if partition in known:
                offsets.setdefault(partition, known[partition])

    def _correct(self, offsets: dict[TopicPartition, int], which: int) -> None:
        """What was said since the ticket was taken stands above what it says."""
        for partition, lowered in self._lowered.items():
            if lowered is None:
                offsets.pop(partition, None)
            elif partition in offsets:
                offsets[partition] = min(lowered[which], offsets[partition])

    def _write_recovery_points(self, offsets: dict[TopicPartition, int]) -> None:
        if offsets != self.recovery_points:
            self._write(checkpoints.RECOVERY_POINTS, offsets)
            self.recovery_points = offsets

    def _write_log_starts(self, offsets: dict[TopicPartition, int]) -> None:
        if offsets != self.log_start_offsets:
            self._write(checkpoints.LOG_START_OFFSETS, offsets)
            self.log_start_offsets = offsets

    def _write_high_watermarks(self, offsets: dict[TopicPartition, int]) -> None:
        if offsets != self.high_watermarks:
            self._write(checkpoints.HIGH_WATERMARKS, offsets)
            self.high_watermarks = offsets

    def _write_clean_offsets(self, offsets: dict[TopicPartition, int]) -> None:
        if offsets != self.clean_offsets:
            self._write(checkpoints.CLEAN_OFFSETS, offsets)
            self.clean_offsets = offsets

    def _write(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        path = f"{self.directory.path}/{name}"
        files.replace(self.directory.disk, path, checkpoints.format_offsets(offsets), sync=True)


class CheckpointTicket:
    """Offsets as they were on the loop, to be written by a thread: `run`. All else belongs to the loop."""

    __slots__ = ("_owner", "_raised", "_recovery", "_starts", "_watermarks")

    def __init__(
        self,
        owner: DirectoryCheckpoints,
        recovery: dict[TopicPartition, int],
        starts: dict[TopicPartition, int],
        watermarks: dict[TopicPartition, int] | None,
        raised: Sequence[PartitionLog] = (),
    ) -> None:
        self._raised = [(log, log.log_start_offset, log.truncations) for log in raised]
        self._owner = owner
        self._recovery = recovery
        self._starts = starts
        self._watermarks = watermarks

    def run(self) -> None:
        """Write them. Raises StorageError, with the directory offline, if that fails."""
        owner = self._owner
        try:
            owner.write_recovery_points(self._recovery)
            owner.write_log_starts(self._starts)
            if self._watermarks is not None:
                owner.write_high_watermarks(self._watermarks)
        except OSError as error:
            raise owner.directory.fail(error, "write its checkpoint") from error

    def done(self) -> list[PartitionLog]:
        """After `run` returned: the logs with a higher start that is durable now."""
        higher = []
        for log, start, truncations in self._raised:
            if truncations == log.truncations:
                log.durable_start = max(log.durable_start, start)
                higher.append(log)
            if log.durable_start < log.log_start_offset and not log.closed:
                self._owner.directory.raised[log] = None
        return higher


class CleanOffsetTicket:
    """Up to where a log is clean, to be written by a thread."""

    __slots__ = ("_cuts", "_log", "_offset", "_owner")

    def __init__(self, owner: DirectoryCheckpoints, log: PartitionLog, offset: int, cuts: int) -> None:
        self._owner = owner
        self._log = log
        self._offset = offset
        self._cuts = cuts

    def run(self) -> None:
        """The folder first: if the swaps were lost, what they removed would be back, and count as clean."""
        directory, log = self._owner.directory, self._log
        try:
            directory.disk.sync_dir(log.path)
            self._owner.write_clean_offset(log.topic_partition, self._offset, self._cuts)
        except FileNotFoundError:
            return  # the partition was deleted meanwhile
        except OSError as error:
            raise directory.fail(error, "write its checkpoint") from error
