"""Reads a log from end to end and says what is wrong with it. Changes nothing, and needs no broker.

Every batch is checked with its checksum, its offsets and its neighbours; the manifest, the checkpoints and
the indexes are compared with what was read. What is derived from the batches is no damage when it is broken:
the broker makes it again at its next start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from headrace.core.errors import HeadraceError
from headrace.core.ids import NO_TOPIC_ID, TopicPartition
from headrace.core.ports import Disk, File
from headrace.log import (
    checkpoints,
    claims_file,
    files,
    leftovers,
    manifest,
    producer_snapshot,
    scan,
    sealed_segments,
    side_files,
)
from headrace.log.epoch_recovery import agree
from headrace.log.first_batch import first_batch_fault
from headrace.log.index_verification import Indexed, index_faults
from headrace.log.leader_epochs import NO_EPOCH, LeaderEpochs
from headrace.log.manifest import Contents, CorruptManifest
from headrace.log.segment import MAX_RELATIVE_OFFSET
from headrace.log.segment_walk import SegmentFile, checked_walk
from headrace.log.wholeness import Claims

FETCH_ANEW: Final = (
    "in a cluster start the broker: it fetches from another replica what is damaged here; a lone broker has"
    " no other copy: restore the partition's folder from a backup, or give the records up with"
    " `headrace topic trim`"
)
AT_START: Final = "nothing to do: the broker puts it right at its next start"
NOT_READ: Final = "nothing to do: the broker does not need it, and deletes it with its segment"

ID_IS_KNOWN: Final = "nothing to do: the broker believes what has a checksum, and writes the file again"


class Finding(NamedTuple):
    path: str
    problem: str
    next_step: str
    is_damage: bool


class Verdict(NamedTuple):
    partition: TopicPartition
    path: str
    log_start_offset: int
    end_offset: int
    segments: int
    size: int
    findings: tuple[Finding, ...]

    @property
    def is_whole(self) -> bool:
        return not any(found.is_damage for found in self.findings)


class _Walked(NamedTuple):
    """What a walk over one segment has found."""

    end_offset: int
    fault: scan.Fault | None
    batches: Mapping[int, Indexed]
    """By their positions."""
    is_compacted: bool


def verify_partition(
    disk: Disk,
    folder: str,
    partition: TopicPartition,
    claims: Claims,
    on_read: Callable[[int], None] = lambda _: None,
) -> Verdict:
    """`on_read` is told how many bytes were read since it was told last."""
    check = _Check(disk, folder, partition, claims, on_read)
    findings = tuple(check.run())
    return Verdict(
        partition, folder, check.log_start, check.end, len(check.bases), sum(check.sizes.values()), findings
    )


class _Check:
    def __init__(
        self,
        disk: Disk,
        folder: str,
        partition: TopicPartition,
        claims: Claims,
        on_read: Callable[[int], None],
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._partition = partition
        self._claims = claims
        self._on_read = on_read
        self._names = disk.list(folder)
        self.bases = leftovers.offsets_of(self._names, files.LOG)
        self.sizes = {base: disk.size(self._path(base)) for base in self.bases}
        self.log_start = claims.log_start_offset
        self.end = claims.log_start_offset
        self._recovery_point = claims.recovery_point
        self._jumps = [jump for _, jump in leftovers.jumps_in(self._names)]
        self._epochs = LeaderEpochs(disk, f"{folder}/{files.EPOCHS}")
        self._has_epochs = self._epochs.load()
        self._is_whole = True
        self._topic_id = claims.proven_topic_id
        """As the manifest has it, or else `headrace.claims`."""
        self._names_it = claims_file.NAME
        self._last_epoch = NO_EPOCH
        """Of the last batch that was walked over."""

    def _path(self, base: int, suffix: str = files.LOG) -> str:
        return f"{self._folder}/{files.numbered(base)}{suffix}"

    def run(self) -> Iterator[Finding]:
        known, broken = self._manifest()
        if broken is not None:
            yield broken
        fault = first_batch_fault(self._disk, self._folder, self._claims, known, self.bases)
        if fault is not None:
            yield _damage(fault.path, fault.problem)
        elif self._claims.was_closed and self._claims.first_batch is None and self.bases:
            last = self._path(self.bases[-1])
            if self.sizes[self.bases[-1]]:
                yield _damage(last, "nothing was written to it when the broker stopped: it came here since")
        if leftovers.has_swap(self._names):
            yield _note(self._folder, "a compaction was interrupted")
            known = None  # until that is finished other files may be there than it lists
        if known is not None:
            if known.topic_id != NO_TOPIC_ID:
                self._topic_id, self._names_it = known.topic_id, "the manifest"
            yield from self._compare(known)
        yield from self._segments(known)
        yield from self._ends()
        yield from self._small_files()

    def _manifest(self) -> tuple[Contents | None, Finding | None]:
        path = f"{self._folder}/{manifest.NAME}"
        try:
            known = manifest.load(self._disk, self._folder)
        except CorruptManifest as error:
            return None, _note(path, f"the manifest is damaged: {error}")
        if known is None and len(self.bases) > 1:
            return None, _note(self._folder, "there is no manifest, as an earlier release leaves it")
        return known, None

    def _compare(self, known: Contents) -> Iterator[Finding]:
        if known.partition != self._partition:
            yield _damage(self._folder, f"the files are those of {known.partition}")
        self.log_start = max(self.log_start, known.log_start_offset)
        if known.sealed:
            self._recovery_point = max(self._recovery_point, known.sealed[-1].next_offset)
        if known.emptied:
            yield _note(self._folder, "a truncation of the whole log was interrupted")
            return
        known = known._replace(log_start_offset=self.log_start)
        for fault in sealed_segments.faults_of_listed(self._disk, self._folder, known, self.bases):
            yield _damage(fault.path, fault.problem)

    def _segments(self, known: Contents | None) -> Iterator[Finding]:
        if self.bases and self.bases[0] > self.log_start:
            yield _damage(
                self._folder,
                f"the first segment begins at offset {self.bases[0]}, the log at {self.log_start}: a segment"
                " file is missing",
            )
        prints = {} if known is None else sealed_segments.listed(self._disk, self._folder, known, self.bases)
        for place, base in enumerate(self.bases):
            path, following = self._path(base), self.bases[place + 1 : place + 2]
            sealed = prints.get(base)
            highest = following[0] - 1 if following else base + MAX_RELATIVE_OFFSET
            walked = self._walk(base, highest, following[0] if following else None)
            self.end = walked.end_offset
            self._is_whole &= walked.fault is None
            if walked.fault is not None:
                is_deleted = bool(following) and following[0] <= self.log_start
                yield self._fault(path, walked, is_last=not following, is_deleted=is_deleted)
            elif following and walked.end_offset != following[0] and not walked.is_compacted:
                yield _damage(
                    path, f"it ends at offset {walked.end_offset}, the next begins at {following[0]}"
                )
            elif (
                sealed is not None and sealed.size == self.sizes[base] and not self._is_the_file(base, sealed)
            ):
                yield _damage(path, "its content is not what was sealed")
            if sealed is not None:
                yield from self._beside(base, sealed.next_offset, sealed.side)
            elif not following:
                yield from self._beside(base, self.end, self._claims.side, is_last=True)
            # Behind damage the walk knows of no batches, and a log without batches has no index yet.
            if walked.fault is None and (walked.batches or self._has_index(base)):
                for problem in index_faults(self._disk, self._folder, base, walked.batches):
                    yield _note(problem.path, problem.problem)

    def _has_index(self, base: int) -> bool:
        return self._disk.exists(self._path(base, files.INDEX))

    def _beside(
        self, base: int, end: int, written: side_files.SideFiles, *, is_last: bool = False
    ) -> Iterator[Finding]:
        found = side_files.look(self._disk, self._folder, base, end)
        for noted, now, path in (
            (written.aborted, found.aborted, self._path(base, files.TXN_INDEX)),
            (written.producers, found.producers, self._path(end, files.SNAPSHOT)),
        ):
            if noted in (side_files.UNKNOWN, now):
                continue
            if self._disk.exists(path):
                yield _note(path, "it is not the one that was written")
            elif now != side_files.UNKNOWN or is_last:  # older snapshots are removed when nobody needs them
                yield _note(path, "it is missing")

    def _is_the_file(self, base: int, sealed: manifest.Sealed) -> bool:
        file = self._disk.open(self._path(base))
        try:
            return manifest.fingerprint(file, sealed.size) == sealed.fingerprint
        finally:
            file.close()

    def _walk(self, base: int, highest: int, following: int | None) -> _Walked:
        """As recovery walks: what that would refuse is damage here too."""
        file = self._disk.open(self._path(base))
        behind = None if following is None else self._disk.open(self._path(following))
        batches: dict[int, Indexed] = {}
        is_compacted = False
        try:
            walk = checked_walk(
                SegmentFile(file, self.sizes[base], base, highest),
                None
                if behind is None or following is None
                else SegmentFile(behind, self.sizes[following], following, following + MAX_RELATIVE_OFFSET),
                recovery_point=self._recovery_point,
                epochs=self._epochs,
                jumps=self._jumps,
                least_epoch=self._last_epoch,
            )
            expected = base
            for position, header, _ in walk:
                batches[position] = Indexed(header.last_offset, header.max_timestamp)
                self._last_epoch = header.leader_epoch
                if not self._claims.was_closed and header.next_offset > self._recovery_point:
                    self._epochs.note(header.leader_epoch, header.base_offset)
                spans = header.next_offset - header.base_offset
                is_compacted |= header.base_offset != expected or header.record_count != spans
                expected = header.next_offset
                self._on_read(header.size)
        finally:
            file.close()
            if behind is not None:
                behind.close()
        return _Walked(walk.next_offset, walk.fault, batches, is_compacted)

    def _fault(self, path: str, walked: _Walked, *, is_last: bool, is_deleted: bool) -> Finding:
        assert walked.fault is not None
        where = f"position {walked.fault.position} (offset {walked.end_offset}): {walked.fault.reason}"
        promised = max(self._claims.recovery_point, self._claims.high_watermark)
        may_be_left = walked.fault.is_torn or not self._claims.lost_nothing
        if is_last and walked.end_offset >= promised and may_be_left:
            return _note(
                path, f"{where}; it was never promised, as a stop in the middle of a write leaves it"
            )
        if is_deleted:
            return Finding(path, f"{where}; its records are deleted", NOT_READ, is_damage=False)
        return _damage(path, where)

    def _epochs_agree(self) -> bool:
        """As recovery compares them."""
        files_of = [self._disk.open(self._path(base)) for base in self.bases]
        try:
            segments = [
                _ReadOnly(base, self.sizes[base], file)
                for base, file in zip(self.bases, files_of, strict=True)
            ]
            self._epochs.forget_from(self.end + 1)
            start = max(self.log_start, self.bases[0]) if self.bases else self.log_start
            return not segments or start > self.end or agree(self._epochs, segments, start, self.end)
        finally:
            for file in files_of:
                file.close()

    def _ends(self) -> Iterator[Finding]:
        for what, promised in (
            ("recovery point", self._claims.recovery_point),
            ("high watermark", self._claims.high_watermark),
            ("log start offset", self.log_start),
        ):
            if promised > self.end:
                problem = f"the {what} is {promised}, but the log ends at offset {self.end}"
                yield _damage(self._folder, problem)

    def _small_files(self) -> Iterator[Finding]:
        epochs = self._epochs
        if self._disk.exists(epochs.path) and not self._has_epochs:
            yield _note(epochs.path, "it cannot be read")
        elif self._is_whole and self._has_epochs and not self._epochs_agree():
            yield _note(epochs.path, "it does not say what the batches say")
        metadata = f"{self._folder}/{files.PARTITION_METADATA}"
        if self._disk.exists(metadata):
            try:
                topic_id = checkpoints.parse_partition_metadata(files.read_all(self._disk, metadata))
                if self._topic_id not in (NO_TOPIC_ID, topic_id):
                    told = checkpoints.encode_uuid(self._topic_id)
                    problem = f"it names another topic id than {self._names_it}, which says {told}"
                    yield Finding(metadata, problem, ID_IS_KNOWN, is_damage=False)
            except checkpoints.CorruptCheckpoint as error:
                is_known = self._topic_id != NO_TOPIC_ID
                yield Finding(metadata, str(error), ID_IS_KNOWN if is_known else AT_START, is_damage=False)
        elif self._topic_id != NO_TOPIC_ID:
            yield Finding(metadata, "it is missing", ID_IS_KNOWN, is_damage=False)
        snapshots = leftovers.offsets_of(self._names, files.SNAPSHOT)
        for offset in snapshots:
            path = self._path(offset, files.SNAPSHOT)
            try:
                list(producer_snapshot.decode(files.read_all(self._disk, path)))
            except HeadraceError as error:
                # A start reads the newest one alone, unless that is damaged.
                next_step = AT_START if offset == snapshots[-1] else NOT_READ
                yield Finding(path, str(error), next_step, is_damage=False)


class _ReadOnly:
    """A segment without its indexes."""

    def __init__(self, base_offset: int, size: int, file: File) -> None:
        self.base_offset = base_offset
        self.size = size
        self._file = file

    def locate(self, offset: int) -> scan.FoundBatch | None:
        return scan.find_batch(self._file, 0, self.size, offset, self.base_offset)

    def file(self) -> File:
        return self._file


def _damage(path: str, problem: str) -> Finding:
    return Finding(path, problem, FETCH_ANEW, is_damage=True)


def _note(path: str, problem: str) -> Finding:
    return Finding(path, problem, AT_START, is_damage=False)
