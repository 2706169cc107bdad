"""The proof that a log is whole, when it is opened: what it claims, compared with the files that are there.

Nothing here changes a segment. Each `require_...` raises CorruptLog if the files are less than was promised.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headrace.core.errors import CorruptLog
from headrace.core.ids import NO_TOPIC_ID, TopicPartition
from headrace.core.ports import Disk
from headrace.log import checkpoints, files, leftovers, manifest_recovery, scan, sealed_segments, wholeness
from headrace.log.claims_file import FirstBatch, first_checksum
from headrace.log.first_batch import first_batch_fault
from headrace.log.manifest import Contents, Manifest, Sealed
from headrace.log.segment import Segment
from headrace.log.side_files import UNKNOWN, Expected, SideFiles
from headrace.log.wholeness import Claims, FileFault, Wholeness
from headrace.protocol.batch import HEADER_SIZE

Epochs = Sequence[tuple[int, int]]
"""(epoch, first offset) of each."""


class Proof:
    """`recovery_point` and `log_start_offset` are the highest that checkpoint or manifest have promised."""

    def __init__(
        self, disk: Disk, path: str, partition: TopicPartition, claims: Claims, rules: Wholeness
    ) -> None:
        self._disk = disk
        self._path = path
        self._partition = partition
        self._claims = claims
        self._rules = rules
        self.topic_id = checkpoints.load_topic_id(disk, path)
        self._told_topic_id = self.topic_id
        self.recovery_point = claims.recovery_point
        is_proven = claims.start_is_proven or not rules.proven_start
        self.log_start_offset = claims.log_start_offset if is_proven else 0
        self._known = manifest_recovery.load(disk, path, partition) if rules.manifest else None
        self._listed: dict[int, Sealed] = {}
        self.lost_beginning = False
        """A loss of power took the first segments: what is behind them follows nothing."""
        if claims.proven_topic_id != NO_TOPIC_ID:
            self.topic_id = claims.proven_topic_id  # it has a checksum, partition.metadata has none
        known = self._known
        self._lacks_manifest = False
        """It was there at a clean stop."""
        self.was_emptied = known is not None and known.emptied
        """A truncation that was to drop everything was interrupted. Now it is done."""
        if known is not None:
            if known.topic_id != NO_TOPIC_ID:
                self.topic_id = known.topic_id  # it is beside the files, and has a checksum too
            self.log_start_offset = max(self.log_start_offset, known.log_start_offset)
            if known.sealed:  # it was synced before it was listed
                self.recovery_point = max(self.recovery_point, known.sealed[-1].next_offset)
            if known.emptied:
                manifest_recovery.finish_emptying(disk, path)

    def mend_topic_id(self) -> list[str]:
        """Write `partition.metadata` as it should be; its path, if it was not."""
        if self.topic_id == self._told_topic_id:
            return []
        path = f"{self._path}/{files.PARTITION_METADATA}"
        files.replace(self._disk, path, checkpoints.format_partition_metadata(self.topic_id), sync=False)
        return [path]

    def require_files(self, names: Sequence[str], epochs: Epochs | None) -> None:
        """By their names and sizes. `epochs`: as they were read; None if they could not be."""
        bases = leftovers.offsets_of(names, files.LOG)
        stated = self._claims.log_start_offset
        if stated > self.log_start_offset and epochs and stated <= epochs[0][1]:
            self.log_start_offset = stated  # whoever raised it cut the epochs too: two files say the same
        if self._rules.first_batch and not self.was_emptied:
            fault = first_batch_fault(self._disk, self._path, self._claims, self._known, bases)
            if fault is not None:
                raise wholeness.changed(fault)
            if self._claims.first_batch is None and self._claims.was_closed and bases:
                path = f"{self._path}/{files.numbered(bases[-1])}{files.LOG}"
                if self._disk.size(path):
                    raise wholeness.changed(FileFault(path, "nothing was written to it"))
        if bases and bases[0] > self.log_start_offset and self._rules.first_segment:
            self._require_first(bases, epochs)
        if self._known is not None:
            known = self._known._replace(log_start_offset=self.log_start_offset)
            self._listed = sealed_segments.require_listed(self._disk, self._path, known, bases)

    def _require_first(self, bases: Sequence[int], epochs: Epochs | None) -> None:
        """The log begins after its start. Without a manifest the epochs may know better: retention cuts them
        before it removes a file."""
        if self._known is None:
            if epochs and bases[0] <= epochs[0][1]:
                return
            start = max(self.log_start_offset, self._claims.log_start_offset)
            if epochs == [] and len(bases) == 1 and self.recovery_point <= start:
                return  # cut to nothing, to go on there
            if not self._claims.lost_nothing and not epochs:
                return  # nobody knows what lay before
            if not self._claims.lost_nothing and self.recovery_point <= start:
                self.lost_beginning = True  # the epochs do, and nothing of it was promised
                return
        raise wholeness.missing_first(self._path, bases[0], self.log_start_offset)

    def require_sealed(self, segments: Sequence[Segment], count: int) -> None:
        """The first `count` segments are what was sealed, and the next one follows each of them."""
        sealed_segments.require_whole(self._path, segments, count, self._rules, self._listed)

    def require_nothing_promised(self, epochs: Epochs) -> None:
        """There is no segment at all."""
        if self.recovery_point > self.log_start_offset and self._rules.checkpoint_ahead:
            raise CorruptLog(
                f"{self._path} has no segment, but everything below offset {self.recovery_point} had been "
                "synced; restore the files from a replica or a backup"
            )
        self.require_end(self.log_start_offset)
        if self._claims.lost_nothing and epochs and self._rules.first_segment:
            raise wholeness.missing_all(self._path)

    def require_end(self, end: int) -> bool:
        """After a stop that loses nothing, no checkpoint lies beyond the end. False: the recovery point lies
        before it, because it is lost, or not of this log."""
        if not self._rules.checkpoint_ahead:
            return True
        if self._claims.lost_nothing:
            for what, promised in (
                ("the recovery point", self.recovery_point),
                ("the high watermark", self._claims.high_watermark),
                ("the log start offset", self.log_start_offset),
            ):
                if promised > end:
                    raise wholeness.missing_end(self._path, end, promised, what)
        return self.recovery_point == end

    def require_torn(self, segment: Segment, fault: scan.Fault, end: int, is_last: bool) -> None:
        """Before what cannot be right is cut off: a process that is killed may leave half of its last batch
        behind. It leaves no damage before that."""
        if self._claims.lost_nothing and self._rules.gaps and not is_last:
            raise CorruptLog(
                f"{segment.path(files.LOG)}: position {fault.position}: {fault.reason}, and other segments "
                "follow. The files are left as they are; restore them from a replica or a backup"
            )
        if self._claims.lost_nothing and self._rules.torn_only and not fault.is_torn:
            raise CorruptLog(
                f"{segment.path(files.LOG)}: position {fault.position}: {fault.reason}. A process that is "
                "killed does not leave that; restore the file from a replica or a backup"
            )
        self.require_end(end)

    def require_loss_of_power(self, end: int, following: int) -> None:
        """Before segments are dropped that lie behind a gap: nothing else leaves one."""
        if self._claims.lost_nothing and self._rules.gaps:
            raise wholeness.missing_between(self._path, end, following)

    def side_files(self, segments: Sequence[Segment], end: int, *, is_all: bool) -> Expected:
        """What was noted of the files beside the segments, which reach to `end`. `is_all`: there are no
        others, after a clean stop; else the log goes on."""
        if not self._rules.side_files:
            return Expected()
        if self._known is None and (len(segments) > 1 or (not is_all and segments)):
            return Expected(is_lost=True)
        known = [each for each in self._listed.values() if each.side.is_known]
        aborted = {each.base_offset: each.side.aborted for each in known}
        producers = {each.next_offset: each.side.producers for each in known}
        unnoted = UNKNOWN
        if is_all and segments:
            if self._claims.side.is_known:
                aborted[segments[-1].base_offset] = self._claims.side.aborted
                producers[end] = self._claims.side.producers
            else:
                unnoted = end
        bases = [segment.base_offset for segment in segments]
        sealed = zip(bases, bases[1:] if is_all else [*bases[1:], end], strict=False)
        return Expected(
            aborted,
            {at: noted for at, noted in producers.items() if noted != UNKNOWN},
            unnoted,
            unlisted={base: following for base, following in sealed if base not in self._listed},
        )

    def doubt(self, segments: Sequence[Segment], is_clean: bool) -> None:
        """Mark the segments that neither manifest nor claims know: with offsets and epochs that fit, a file
        of another log is not told from one of this log. An earlier release wrote no manifest, so that
        only its last segment is doubted. After a clean stop all of them are known, if the manifest is."""
        # A log of one segment needs none.
        self._lacks_manifest = (
            is_clean and self._claims.was_closed and self._known is None and len(segments) > 1
        )
        if is_clean and not (self._claims.has_doubts or self._lacks_manifest):
            return
        is_earlier = self._known is None and not self._claims.start_is_proven
        for segment in segments[-1:] if is_earlier else segments:
            if segment.size and segment.base_offset not in self._listed:
                segment.first_checksum = first_checksum(segment.file().pread(HEADER_SIZE, 0))
                found = FirstBatch(segment.base_offset, segment.first_checksum)
                segment.is_vouched = found == self._claims.first_batch

    @property
    def beside_last(self) -> SideFiles:
        return self._claims.side

    def save_manifest(self, segments: Sequence[Segment], start: int, made_anew: Collection[int]) -> Manifest:
        """As the log is now. It is written if that is news: an earlier release wrote none."""
        sealed = manifest_recovery.sealed_of(self._disk, self._path, segments, self._listed, start, made_anew)
        contents = Contents(self._partition, self.topic_id, start, sealed)
        made = Manifest(self._disk, self._path, contents, self._known)
        made.replaces_lost = self._lacks_manifest
        if sealed or start or self._known is not None:
            made.save()
        return made
