"""The four offset checkpoints of one log directory, and its claims, which are written with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from threading import Lock

from headrace.core.ids import TopicPartition
from headrace.log import checkpoints, files
from headrace.log.claims_file import Claimed
from headrace.log.directory import LogDirectory, Lowered
from headrace.log.directory_claims import DirectoryClaims, claims_of
from headrace.log.partition_log import PartitionLog
from headrace.log.side_files import SideFiles
from headrace.log.wholeness import Claims


class DirectoryCheckpoints:
    """What the files hold, and the only writer of them.

    Invariant: the recovery point of a partition on the disk is never above what has been synced and is still
    there, and nothing below its clean offset is in want of compaction. A job that was taken before a
    truncation may be run after it, so what `lower` and `forget` said since stands above what the job says.

    What writes runs in threads, one at a time (`_writing`). The loop never waits for them: what they share is
    what was said since the last job (`_said`), and nobody holds that while a disk is waited for.
    """

    __slots__ = (
        "_cuts",
        "_lowered",
        "_said",
        "_writing",
        "claims",
        "clean_offsets",
        "directory",
        "high_watermarks",
        "kept",
        "log_start_offsets",
        "recovery_points",
    )

    def __init__(self, directory: LogDirectory) -> None:
        self.directory = directory
        self.claims = DirectoryClaims(directory)
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_start_offsets: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.clean_offsets: dict[TopicPartition, int] = {}
        """Up to where each compacted log is clean."""
        self._cuts: dict[TopicPartition, int] = {}
        """How often `lower` or `forget` was called: a clean offset from before is void."""
        self._lowered: dict[TopicPartition, tuple[int, int, int] | None] = {}
        """Recovery points, log starts and ends since the last job was taken; None: it is gone."""
        self.kept: set[TopicPartition] = set()
        """Quarantined partitions: what was promised of them stays on the disk, or the next start would not
        know that anything is missing and cut what is left."""
        self._said = Lock()
        self._writing = Lock()

    def load(self) -> None:
        disk, path = self.directory.disk, self.directory.path
        self.recovery_points = checkpoints.load_offsets(disk, f"{path}/{checkpoints.RECOVERY_POINTS}")
        self.log_start_offsets = checkpoints.load_offsets(disk, f"{path}/{checkpoints.LOG_START_OFFSETS}")
        self.high_watermarks = checkpoints.load_offsets(disk, f"{path}/{checkpoints.HIGH_WATERMARKS}")
        self.clean_offsets = checkpoints.load_offsets(disk, f"{path}/{checkpoints.CLEAN_OFFSETS}")
        self.claims.load()

    def claims_of(self, partition: TopicPartition, lost_nothing: bool, clean: bool = False) -> Claims:
        recovery_point = self.recovery_points.get(partition, 0)
        if self.claims.logs is None:
            start = self.log_start_offsets.get(partition, 0)
            mark = self.high_watermarks.get(partition, 0)
            return Claims(recovery_point, start, mark, lost_nothing, start_is_proven=False)
        known = self.claims.logs.get(partition, Claimed())
        return Claims(
            recovery_point,
            known.log_start_offset,
            known.high_watermark,
            lost_nothing,
            first_batch=known.first_batch,
            was_closed=clean and partition in self.claims.logs,
            side=known.side if clean else SideFiles(),
            topic_id=known.topic_id,
        )

    def known_watermarks(self) -> dict[TopicPartition, int]:
        if self.claims.logs is None:
            return dict(self.high_watermarks)
        return {partition: each.high_watermark for partition, each in self.claims.logs.items()}

    def take(
        self, logs: Sequence[PartitionLog], high_watermarks: Mapping[TopicPartition, int] | None
    ) -> CheckpointJob:
        recovery: dict[TopicPartition, int] = {}
        starts: dict[TopicPartition, int] = {}
        marks: dict[TopicPartition, int] = {}
        with self._said:
            self._lowered.clear()  # first: what a thread lowers while this looks at the logs has to stand
        for log in logs:
            partition = log.topic_partition
            recovery[partition] = log.recovery_point
            if log.log_start_offset:
                starts[partition] = log.log_start_offset
            if high_watermarks is not None and partition in high_watermarks and log.truncation is None:
                marks[partition] = high_watermarks[partition]
        raised = [log for log in logs if log in self.directory.raised]
        self.directory.raised.clear()
        return CheckpointJob(
            self,
            recovery,
            starts,
            marks if high_watermarks is not None else None,
            raised,
            claims_of(logs, marks),
        )

    def take_claims(
        self, logs: Sequence[PartitionLog], high_watermarks: Mapping[TopicPartition, int]
    ) -> CheckpointJob:
        """The high watermarks, and what else is claimed: that comes more often than the rest."""
        with self._said:
            self._lowered.clear()
        marks = {
            log.topic_partition: high_watermarks[log.topic_partition]
            for log in logs
            if log.topic_partition in high_watermarks and log.truncation is None
        }
        return CheckpointJob(self, None, None, marks, (), claims_of(logs, marks))

    def lower(self, lowered: Mapping[TopicPartition, Lowered]) -> None:
        """Durably, before the logs are cut: each file is written once for all of them. OSError if that cannot
        be done."""
        with self._said:
            self._lowered.update(lowered)
            self._count_cuts(lowered)
        with self._writing:
            if self.claims.logs is not None:
                said_of = {
                    partition: self.claims.logs[partition].lowered(said[1], said[2])
                    for partition, said in lowered.items()
                    if partition in self.claims.logs
                }
                self.claims.write(self.claims.logs | said_of)
            points = {partition: said[0] for partition, said in lowered.items()}
            self._write_clean_offsets(_lowered(self.clean_offsets, points))
            self._write_recovery_points(_lowered(self.recovery_points, points))
            starts = {partition: said[1] for partition, said in lowered.items()}
            self._write_log_starts(_lowered(self.log_start_offsets, starts))
            ends = {partition: said[2] for partition, said in lowered.items()}
            self._write_high_watermarks(_lowered(self.high_watermarks, ends))

    def take_over(self, partition: TopicPartition, recovery_point: int, claimed: Claimed) -> None:
        """A log is about to move here: durably, before its folder has its name. `kept` holds it until the
        directory's own jobs list it. Up to where it is clean is not known here, and found out again."""
        self.forget((partition,))
        with self._writing:
            if self.claims.logs is not None:
                self.claims.write({**self.claims.logs, partition: claimed})
            if claimed.log_start_offset:
                self._write_log_starts({**self.log_start_offsets, partition: claimed.log_start_offset})
            self._write_high_watermarks({**self.high_watermarks, partition: claimed.high_watermark})
            self._write_recovery_points({**self.recovery_points, partition: recovery_point})

    def note_gone(self, partitions: Collection[TopicPartition]) -> None:
        """Logs of these names end: what older jobs say of them no longer holds. `forget` is to follow."""
        with self._said:
            self._lowered.update(dict.fromkeys(partitions))
            self._count_cuts(partitions)

    def knows(self, partition: TopicPartition) -> bool:
        """Whether a file says something of the partition, which holds for no other log of its name."""
        return (
            partition in (self.claims.logs or ())
            or partition in self.clean_offsets
            or partition in self.recovery_points
            or partition in self.log_start_offsets
            or partition in self.high_watermarks
        )

    def expected(self, *, synced_only: bool) -> list[TopicPartition]:
        """Logs of which a file says something, so that they were there; or of which something was synced."""
        if synced_only:
            return [partition for partition, at in self.recovery_points.items() if at > 0]
        return list(dict.fromkeys((*self.recovery_points, *self.log_start_offsets, *self.high_watermarks)))

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Logs of these names begin or end: nothing that was said of others holds for them."""
        self.note_gone(partitions)
        gone = set(partitions)
        with self._writing:
            if self.claims.logs is not None and not self.claims.logs.keys().isdisjoint(gone):
                self.claims.write({each: said for each, said in self.claims.logs.items() if each not in gone})
            for known, write in (
                (self.clean_offsets, self._write_clean_offsets),
                (self.recovery_points, self._write_recovery_points),
                (self.log_start_offsets, self._write_log_starts),
                (self.high_watermarks, self._write_high_watermarks),
            ):
                if not known.keys().isdisjoint(gone):  # it looks at the few, not at all that are known
                    write({partition: at for partition, at in known.items() if partition not in gone})

    def _count_cuts(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self._cuts[partition] = self._cuts.get(partition, 0) + 1

    def write_recovery_points(self, offsets: dict[TopicPartition, int]) -> None:
        with self._writing:
            self._correct(offsets, 0)
            self._keep(offsets, self.recovery_points)
            self._write_recovery_points(offsets)

    def write_log_starts(self, offsets: dict[TopicPartition, int]) -> None:
        with self._writing:
            self._correct(offsets, 1)
            self._keep(offsets, self.log_start_offsets)
            self._write_log_starts(offsets)

    def write_high_watermarks(self, offsets: dict[TopicPartition, int]) -> None:
        with self._writing:
            self._correct(offsets, 2)
            self._keep(offsets, self.high_watermarks)
            self._write_high_watermarks(offsets)

    def write_claims(self, claimed: dict[TopicPartition, Claimed], *, with_marks: bool) -> None:
        """`with_marks` False: what was said of the high watermarks stands."""
        with self._writing:
            known = self.claims.logs or {}
            if not with_marks:
                claimed = {
                    partition: said._replace(high_watermark=known.get(partition, Claimed()).high_watermark)
                    for partition, said in claimed.items()
                }
            with self._said:
                since = list(self._lowered.items())
            for partition, lowered in since:
                if lowered is None:
                    claimed.pop(partition, None)
                elif partition in claimed:
                    claimed[partition] = claimed[partition].lowered(lowered[1], lowered[2])
            for partition in tuple(self.kept):  # the loop may change it meanwhile
                if partition in known:
                    claimed.setdefault(partition, known[partition])
                elif self.claims.logs is None and partition in self.high_watermarks:  # the file was lost
                    claimed.setdefault(partition, Claimed(high_watermark=self.high_watermarks[partition]))
            self.claims.write(claimed)

    def correct_claims(self, logs: Iterable[PartitionLog]) -> None:
        """At the start: what a loss of power took is not claimed any more, as other records may take its
        place before the next checkpoint."""
        if self.claims.logs is None:
            return
        with self._writing:
            found = {
                log.topic_partition: said.shortened(log.end_offset, log.first_batch)
                for log in logs
                if (said := self.claims.logs.get(log.topic_partition)) is not None
            }
            self.claims.write(self.claims.logs | found)

    def take_clean_offset(self, log: PartitionLog, offset: int) -> CleanOffsetJob:
        """Everything below `offset` is compacted. To be run once what the cleaner has swapped is in place."""
        return CleanOffsetJob(self, log, offset, self._cuts.get(log.topic_partition, 0))

    def write_clean_offset(self, partition: TopicPartition, offset: int, cuts: int) -> None:
        with self._writing:
            if cuts == self._cuts.get(partition, 0):
                self._write_clean_offsets({**self.clean_offsets, partition: offset})

    def drop_clean_offsets_beyond(self, logs: Iterable[PartitionLog]) -> None:
        """At the start: a log that has lost its end may come to have other records there."""
        ends = {log.topic_partition: log.end_offset for log in logs}
        with self._writing:
            kept = {known: at for known, at in self.clean_offsets.items() if at <= ends.get(known, at)}
            self._write_clean_offsets(kept)

    def _keep(self, offsets: dict[TopicPartition, int], known: Mapping[TopicPartition, int]) -> None:
        for partition in tuple(self.kept):
            if partition in known:
                offsets.setdefault(partition, known[partition])

    def _correct(self, offsets: dict[TopicPartition, int], which: int) -> None:
        """What was said since the job was taken stands above what it says."""
        with self._said:
            said = list(self._lowered.items())
        for partition, lowered in said:
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


def _lowered(
    known: dict[TopicPartition, int], lowered: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    lower = {partition: at for partition, at in lowered.items() if known.get(partition, 0) > at}
    return {**known, **lower} if lower else known


class CheckpointJob:
    """Offsets as they were on the loop, to be written by a thread: `run`. All else belongs to the loop."""

    __slots__ = ("_claimed", "_owner", "_raised", "_recovery", "_starts", "_watermarks")

    def __init__(
        self,
        owner: DirectoryCheckpoints,
        recovery: dict[TopicPartition, int] | None,
        starts: dict[TopicPartition, int] | None,
        watermarks: dict[TopicPartition, int] | None,
        raised: Sequence[PartitionLog] = (),
        claimed: dict[TopicPartition, Claimed] | None = None,
    ) -> None:
        self._claimed = claimed or {}
        self._raised = [(log, log.log_start_offset, log.truncations) for log in raised]
        self._owner = owner
        self._recovery = recovery
        self._starts = starts
        self._watermarks = watermarks

    def run(self) -> None:
        """Write them. Raises StorageError, with the directory offline, if that fails; DiskFull if there is no
        room: what the disk has stays true."""
        owner = self._owner
        try:
            owner.write_claims(self._claimed, with_marks=self._watermarks is not None)
            if self._starts is not None:  # first: no recovery point without the start of its log
                owner.write_log_starts(self._starts)
            if self._recovery is not None:
                owner.write_recovery_points(self._recovery)
            if self._watermarks is not None:
                owner.write_high_watermarks(self._watermarks)
        except OSError as error:
            raise owner.directory.refuse(error, "write its checkpoint") from error

    def failed(self) -> None:
        """After `run` raised: the higher log starts are for another one."""
        for log, _, _ in self._raised:
            if not log.closed:
                self._owner.directory.raised[log] = None

    def done(self) -> list[PartitionLog]:
        """After `run` returned: the logs with a higher start that is durable now."""
        higher = []
        for log, start, truncations in self._raised:
            if truncations == log.truncations:
                log.note_durable_start(start)
                higher.append(log)
            if log.durable_start < log.log_start_offset and not log.closed:
                self._owner.directory.raised[log] = None
        return higher


class CleanOffsetJob:
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
