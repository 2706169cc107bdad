"""One partition's history in the store, as one replica sees it: what to do next, and what came of it.

`take` gives a job, its `run` is carried out in a thread, and `done` is told the result; one job at a time. In
between, the part that the replica plays may change: a job of an earlier part still ends, and nobody hears of
it. What it wrote was written under a condition, so that it harms nobody.

Nothing here waits, reads a clock or draws a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

from headrace.tier import choosing
from headrace.tier.beginning import Begin, LocalLogStays, Wait, begin, may_begin_at
from headrace.tier.collecting import CollectJob, EmptyJob, PurgeJob, SweepJob
from headrace.tier.forking import ForkJob
from headrace.tier.jobs import (
    Basis,
    ClaimJob,
    FoldJob,
    Job,
    LoadJob,
    MarkDeletedJob,
    PageJob,
    Place,
    SettleJob,
    UploadJob,
)
from headrace.tier.knowledge import (
    UNREAD,
    Failed,
    Known,
    Leadership,
    Overtaken,
    Result,
    Seen,
    Unread,
    Unsettled,
    Unusable,
    Written,
)
from headrace.tier.local import LocalLog, TierSettings
from headrace.tier.manifest import Manifest
from headrace.tier.names import ObjectName
from headrace.tier.retaining import ListedPage, local_until

_COLLECT_AGAIN: Final = 60
"""A deletion that failed is tried again after so many times the backoff: uploads come first then."""
_READ_AGAIN: Final = 10
"""What could not be understood is read again after so many times the backoff: somebody may have restored it,
or something answered that is not the store."""


class PartitionTier:
    """Invariant: while `pending` is there, nothing else is written."""

    def __init__(self, place: Place, settings: TierSettings, draw: Callable[[], UUID]) -> None:
        """`draw` gives numbers that nobody else has: names of objects are made of them."""
        self.place = place
        self.settings = settings
        self.known: Known | Unread = UNREAD
        self.leadership: Leadership | None = None
        self.pending: Unsettled | None = None
        self.stopped: str | None = None
        """Why this replica writes no more in the part that it plays."""
        self._is_unreadable = False
        """`stopped` only until what is in the store can be read."""
        self.has_written = False
        """No leader before this one can write any more."""
        self.is_begun = True
        """False: this leader must not append yet (rule 14)."""
        self._draw = draw
        self.is_purged = False
        """Nothing is left of a deleted topic."""
        self._deleter: UUID | None = None
        self._given_up: set[ObjectName] = set()
        """Names that this leadership has drawn, but for those that a manifest of its own names."""
        self._reused: ObjectName | None = None
        self._seen_ms: dict[ObjectName | None, int] = {}
        """Since when this process has known that an object was given up, or (None) that the topic was: before
        that, the manifest may not have been there, whatever time stands in it by whatever clock."""
        self._page: ListedPage | None = None
        self._job: Job | None = None
        self._read_ms: int | None = None
        self.gives_up_history = False
        """Tiered storage was switched off for the topic: its history goes, and its local log stays."""
        self.must_read = False
        """What is known is too little: the manifest is read next."""
        self._rest_until_ms = 0
        self._collect_from_ms = 0
        self._sweep_from_ms: int | None = None

    # --- the part it plays -----------------------------------------------------------------------------

    def lead(self, epoch: int, writer: UUID, *, may_lack_committed: bool) -> None:
        """`may_lack_committed`: it was not in sync when it was elected, and nobody has led since who was."""
        self.follow()
        self.leadership = Leadership(epoch, writer)
        self.is_begun = not may_lack_committed
        self.must_read = True  # the leader before it may have written since

    def follow(self) -> None:
        """Not lead any more. What was read stays known: manifests do not get shorter at their end."""
        self.leadership = self._job = self.pending = self.stopped = None
        self._deleter = self._reused = self._sweep_from_ms = None
        self._is_unreadable = False
        self.has_written, self.is_begun, self.is_purged = False, True, False
        self._given_up = set()
        self._rest_until_ms = 0

    def delete(self, writer: UUID) -> None:
        """The topic is no more: delete its history."""
        self.follow()
        self._deleter = writer

    def begin(self, local: LocalLog) -> Begin:
        """Rule 14: how a leader that may lack committed records begins. Told again until it need not wait."""
        if self.is_begun:
            return LocalLogStays()
        found = begin(self.known, self.has_written, local, self.place.safeguards)
        self.is_begun = not isinstance(found, Wait)
        return found

    # --- what the log asks -----------------------------------------------------------------------------

    @property
    def start(self) -> int | None:
        """What is before it is deleted, as far as this replica knows."""
        return None if self._manifest is None else self._manifest.start

    def local_until(self, local: LocalLog, now_ms: int) -> int:
        """Sealed segments that end here or before may go from the disk."""
        return local_until(self.known, local, self.settings, now_ms, self.place.safeguards)

    def may_begin_at(self, offset: int, log_start: int, epoch_before: int) -> bool:
        """Whether a follower may begin there, and leave what is before it to the store."""
        return may_begin_at(self.known, offset, log_start, epoch_before)

    @property
    def _manifest(self) -> Manifest | None:
        return self.known.manifest if isinstance(self.known, Known) else None

    # --- jobs ------------------------------------------------------------------------------------------

    def take(self, local: LocalLog, now_ms: int) -> Job | None:
        if self._job is not None or now_ms < self._rest_until_ms:
            return None
        if self.pending is not None:
            self._job = SettleJob(self.place, self.pending)
        elif isinstance(self.known, Unread) or self.must_read:
            self._job = LoadJob(self.place) if self.stopped is None or self._is_unreadable else None
        elif self._deleter is not None:
            self._job = self._take_deletion(self.known, self._deleter, now_ms)
        elif self.leadership is not None:
            self._job = self._take_as_leader(self.known, self.leadership, local, now_ms)
        elif self._is_old(local, now_ms):
            self._job = LoadJob(self.place)
        return self._job

    def _is_old(self, local: LocalLog, now_ms: int) -> bool:
        """Whether a follower knows too little, and long enough ago."""
        assert self._read_ms is not None
        end = -1 if self._manifest is None else self._manifest.next_offset
        waits = any(end < each.next_offset <= local.high_watermark for each in local.sealed)
        return waits and now_ms - self._read_ms >= self.settings.refresh_ms

    def _take_as_leader(
        self, known: Known, leadership: Leadership, local: LocalLog, now_ms: int
    ) -> Job | None:
        self.stopped = self.stopped or choosing.reason_to_stop(
            known, leadership, self.is_begun, local, self.place
        )
        if self.stopped:
            return None
        basis = Basis(self.place, known, leadership, local.start)
        if not self.is_begun:
            return None if self.has_written else self._claim(basis, local)
        job: Job | None = None
        if self.gives_up_history:
            if known.manifest is None:
                return None
            if known.manifest.ranges:
                return EmptyJob(basis, local.local_start, now_ms)
            return self._take_upkeep(basis, known.manifest, now_ms)
        if known.manifest is not None:
            job = choosing.start_job(basis, known.manifest, local, self._page, self.settings, now_ms)
            job = job or self._take_upkeep(basis, known.manifest, now_ms)
        if job is not None:
            return job
        upload = choosing.upload(known.manifest, local, self.place.safeguards)
        if upload is None:
            return None
        name = self._new_name(upload.base_offset, leadership)
        return UploadJob(basis, name, upload.segment, upload.epochs)

    def _claim(self, basis: Basis, local: LocalLog) -> Job:
        """A fork that was never begun is made of its origin, which is its first claim."""
        fork = self.place.fork
        if fork is None or basis.known.manifest is not None or local.end > 0:
            return ClaimJob(basis)
        return ForkJob(self.place, fork, basis.leadership, self._draw().hex)

    def _take_upkeep(self, basis: Basis, manifest: Manifest, now_ms: int) -> Job | None:
        settings = self.settings
        if len(manifest.segments) > settings.fold_above:
            count = len(manifest.segments) - settings.fold_keeps
            name = self._new_name(manifest.segments[0].base_offset, basis.leadership)
            return FoldJob(basis, name, count)
        if now_ms >= self._collect_from_ms:
            grace_ms = settings.grace_ms if self.place.safeguards.grace else 0
            names = [each for each, _ in manifest.removed if self._seen_ms[each] + grace_ms <= now_ms]
            if names:
                return CollectJob(basis, tuple(names), settings.collect_at_once)
        if self._sweep_from_ms is None:
            self._sweep_from_ms = now_ms + settings.sweep_ms
        if now_ms < self._sweep_from_ms:
            return None
        given_up = frozenset(self._given_up)
        return SweepJob(basis, self.has_written, given_up, now_ms, settings.garbage_age_ms)

    def _take_deletion(self, known: Known, writer: UUID, now_ms: int) -> Job | None:
        manifest = known.manifest
        if self.is_purged:
            return None
        if manifest is None or manifest.deleted_ms is None:
            return MarkDeletedJob(self.place, known, writer, now_ms)
        since_ms = now_ms - self._seen_ms[None]
        if since_ms < self.settings.grace_ms or now_ms < self._collect_from_ms:
            return None
        self._collect_from_ms = now_ms + _COLLECT_AGAIN * self.settings.backoff_ms
        return PurgeJob(self.place, known, since_ms >= self.settings.garbage_age_ms)

    def _new_name(self, base_offset: int, leadership: Leadership) -> ObjectName:
        """Rule 9: no name twice."""
        reused = self._reused
        if not self.place.safeguards.new_attempt and reused is not None and reused.base_offset == base_offset:
            return reused
        name = self._reused = ObjectName(base_offset, leadership.epoch, self._draw().hex)
        self._given_up.add(name)
        return name

    # --- what came of them -----------------------------------------------------------------------------

    def is_current(self, job: Job) -> bool:
        """Whether somebody waits for it: it is not of a part that this replica plays no more."""
        return job is self._job

    def done(self, job: Job, result: Result, now_ms: int) -> None:
        if job is not self._job:
            return  # of a part that this replica plays no more
        self._job = None
        if isinstance(job, SweepJob):
            self._sweep_from_ms = now_ms + self.settings.sweep_ms  # however long it took, uploads have a turn
        if isinstance(job, PageJob) and job.listed is not None:
            self._page = job.listed
        match result:
            case Written(known):
                self.pending = None
                self.has_written = True
                assert known.manifest is not None
                self._given_up.difference_update(known.manifest.named)
                self._learn(known, now_ms)
            case Seen(known):
                if isinstance(job, CollectJob):  # forks name all of it
                    self._collect_from_ms = now_ms + _COLLECT_AGAIN * self.settings.backoff_ms
                if self._is_unreadable:
                    if not self._goes_on(known):
                        self._rest_until_ms = now_ms + _READ_AGAIN * self.settings.backoff_ms
                        return
                    self.stopped, self._is_unreadable = None, False
                self.is_purged = isinstance(job, PurgeJob) and known.manifest is None
                self._learn(known, now_ms)
            case Overtaken(known):
                self.pending = None
                self._on_overtaken(known)
                self._learn(known, now_ms)
            case Unsettled():
                self.pending = result
                self._rest_until_ms = now_ms + self.settings.backoff_ms
            case Failed():
                self._rest_until_ms = now_ms + self.settings.backoff_ms
                if isinstance(job, CollectJob):
                    self._collect_from_ms = now_ms + _COLLECT_AGAIN * self.settings.backoff_ms
            case Unusable(reason):
                self.pending = None
                self.stopped = self.stopped or reason
                self._is_unreadable = self.stopped == reason
                self.must_read = True
                self._rest_until_ms = now_ms + _READ_AGAIN * self.settings.backoff_ms

    def _goes_on(self, known: Known) -> bool:
        """Whether it is what was known, or later: an older copy that was restored lacks what is there."""
        if self._manifest is None:
            return True
        return known.manifest is not None and known.manifest.change >= self._manifest.change

    def read_again(self) -> None:
        """What is known is too little: a follower reads the manifest next."""
        self.must_read = True

    def _learn(self, known: Known, now_ms: int) -> None:
        self.must_read = False
        self.known, self._read_ms = known, now_ms
        manifest, seen_ms = known.manifest, self._seen_ms
        gone: list[ObjectName | None] = []
        if manifest is not None:
            gone = [*(each.name for each in manifest.removed), *([None] if manifest.is_deleted else [])]
        self._seen_ms = {each: seen_ms.get(each, now_ms) for each in gone}

    def _on_overtaken(self, known: Known) -> None:
        """Rule 4: whoever writes after this leader has written is its successor, whatever its epoch."""
        if self.leadership is None or not self.place.safeguards.higher_epoch_stops:
            return
        if known.manifest is None:
            self.stopped = "the manifest was there, and is gone"
        elif self.has_written:
            self.stopped = f"a leader of epoch {known.manifest.epoch} writes now"
