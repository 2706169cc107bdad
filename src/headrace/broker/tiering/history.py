"""One partition's history, on one broker: the machine of the tier, beside the log.

The log on the disk knows only itself. Its log start is the local log start, which local retention raises, and
the log start that clients are told is the manifest's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from headrace.broker.tiering.local_view import LocalView
from headrace.config.tiering import local_retention_bytes, local_retention_ms
from headrace.core.errors import HistoryUnavailable
from headrace.log.producer_snapshot import SnapshotEntry
from headrace.log.retention import RetentionJob
from headrace.replication.replica import Role
from headrace.tier.beginning import BeginAt, Wait
from headrace.tier.knowledge import Known
from headrace.tier.local import TierSettings
from headrace.tier.machine import PartitionTier

if TYPE_CHECKING:
    from headrace.config.broker import BrokerConfig
    from headrace.replication.partition import Partition
    from headrace.tier.jobs import Place
    from headrace.tier.manifest import Manifest

NOTHING: Final = -1


class CopyLag(NamedTuple):
    size: int
    segments: int
    age_seconds: float


class Beginning(NamedTuple):
    """Where a log begins whose past is in the store, and what it has to know of that."""

    offset: int
    log_start: int
    epoch: int
    """Of the last record before it."""
    producers: list[SnapshotEntry]


class PartitionHistory:
    """A `replication.history.History`."""

    def __init__(
        self,
        partition: Partition,
        place: Place,
        config: BrokerConfig,
        draw: Callable[[], UUID],
        on_progress: Callable[[PartitionHistory], None],
    ) -> None:
        self.partition = partition
        self.on_progress = on_progress
        """Told when a job of the machine has come to an end, and another may follow."""
        self._draw = draw
        self.machine = PartitionTier(place, settings_of(partition, config), draw)
        self._requested_start = 0
        """By DeleteRecords: answered once the manifest says it."""
        self._led_epoch = NOTHING
        self.is_busy = False
        """A job of the machine is on its way."""
        self._waiting_since: dict[int, float] = {}
        """When a sealed segment that is not in the store was first found, by its base offset."""
        self.claims_epoch = NOTHING
        """The leader epoch in which it is to lead, and cannot yet: it may lack committed records."""
        self.fit_epoch = NOTHING
        """The last one for which it was made fit."""
        self.begin_at_end: BeginAt | None = None
        """What its log has to become before it leads."""
        self.wants_begin = False
        """A follower that has to begin where the store ends."""
        self._beginning: Beginning | None = None
        """What its log is to begin with, once it was emptied."""
        self.failure = ""
        """Why the last job failed; empty if it did not."""

    # --- the part that the replica plays ---

    def claim(self, leader_epoch: int) -> bool:
        """Rule 14: to lead though it may lack what is committed. True once it has what is in the store."""
        if self.fit_epoch == leader_epoch:
            return True
        if self.claims_epoch != leader_epoch:
            self.claims_epoch = self._led_epoch = leader_epoch
            self.begin_at_end = None
            self.machine.lead(leader_epoch, self._draw(), may_lack_committed=True)
            self.is_busy = False
        return False

    def become_fit(self) -> bool:
        """Whether it has become fit to lead, now that the machine has got on."""
        found = self.machine.begin(self.local())
        if isinstance(found, Wait):
            return False
        if isinstance(found, BeginAt):
            self.begin_at_end = found
        if self.begin_at_end is not None:
            return False
        self.fit_epoch, self.claims_epoch = self.claims_epoch, NOTHING
        return True

    def follow_role(self) -> None:
        """A new leader epoch is a new leadership of the machine; whoever does not lead writes nothing."""
        partition, machine = self.partition, self.machine
        if partition.leader_epoch < self.claims_epoch:
            return  # its row waits for the store
        self.claims_epoch, self.begin_at_end = NOTHING, None
        if partition.is_leader:
            if partition.leader_epoch != self._led_epoch:
                self._led_epoch = partition.leader_epoch
                machine.lead(partition.leader_epoch, self._draw(), may_lack_committed=False)
                self.is_busy = False
        elif self._led_epoch != NOTHING:
            self._led_epoch = NOTHING
            machine.follow()
            self.is_busy = False

    @property
    def leads(self) -> bool:
        return self._led_epoch != NOTHING

    @property
    def led_epoch(self) -> int:
        """In which it leads; below 0 if it does not."""
        return self._led_epoch

    def delete(self) -> None:
        """The topic is no more."""
        self.machine.delete(self._draw())
        self.is_busy = False

    def update_settings(self, config: BrokerConfig) -> None:
        self.machine.gives_up_history = not self.partition.log.config.remote_storage_enable
        self.machine.settings = settings_of(self.partition, config)

    # --- where it begins and ends ---

    @property
    def manifest(self) -> Manifest | None:
        """As this replica has read it; None if there is none, or it does not know."""
        known = self.machine.known
        if not isinstance(known, Known) or known.manifest is None or known.manifest.is_deleted:
            return None
        return known.manifest

    @property
    def continued(self) -> Manifest | None:
        """The manifest, if the local log goes on from what it names: what lies before a gap is not read."""
        manifest = self.manifest
        if manifest is None or not manifest.ranges:
            return None
        return manifest if manifest.next_offset >= self.partition.log.log_start_offset else None

    @property
    def is_known(self) -> bool:
        return isinstance(self.machine.known, Known)

    @property
    def log_start_offset(self) -> int | None:
        if not self.is_known:
            return None
        manifest = self.continued
        if manifest is None:
            return self.partition.log.log_start_offset
        return max(manifest.start, self._requested_start)

    @property
    def durable_log_start(self) -> int:
        if not self.is_known:
            return NOTHING
        manifest = self.continued
        return self.partition.log.log_start_offset if manifest is None else manifest.start

    @property
    def tiered_end(self) -> int:
        """Where the store ends; -1 if nothing is there."""
        manifest = self.manifest
        return NOTHING if manifest is None or not manifest.ranges else manifest.next_offset

    def epoch_of(self, offset: int) -> int:
        local = self.partition.log.epochs.epoch_of(offset)
        if local >= 0 or self.manifest is None:
            return local
        before = [each.epoch for each in self.manifest.epochs if each.offset <= offset]
        return before[-1] if before else NOTHING

    def end_of_epoch(self, epoch: int) -> tuple[int, int] | None:
        """HistoryUnavailable before the manifest was read: whoever is compared with it has to come again."""
        if not self.is_known:
            raise HistoryUnavailable(f"{self.partition.topic_partition}: the manifest was not read yet")
        starts = self.local().epochs
        place = bisect_right(starts, epoch, key=lambda each: each.epoch)
        if place == len(starts):
            return None
        return (epoch if place == 0 else starts[place - 1].epoch), starts[place].offset

    def request_log_start(self, offset: int) -> None:
        self._requested_start = max(self._requested_start, offset)

    # --- a follower that begins behind the store ---

    def begin_behind_store(self) -> None:
        if not self.wants_begin:
            self.wants_begin = True
            self.machine.read_again()
            self.on_progress(self)

    def begin_at(self, beginning: Beginning) -> bool:
        """Empty the log, to go on behind the store. False if that is no more to be done."""
        partition, log = self.partition, self.partition.log
        self.wants_begin = False
        if self.begin_at_end is not None:
            if log.truncation is not None or not log.is_open or self.begin_at_end.offset != beginning.offset:
                return False
            self._beginning = beginning
            log.take_truncation(beginning.offset, fully=True)
            return True
        if partition.role != Role.FOLLOWER or log.truncation is not None or not log.is_open:
            return False
        if (
            log.log_start_offset <= beginning.offset <= log.end_offset
            and log.end_offset > log.log_start_offset
        ):
            return False  # it has come so far in the meantime
        if not self.machine.may_begin_at(beginning.offset, beginning.log_start, beginning.epoch):
            return False
        self._beginning = beginning
        log.take_truncation(beginning.offset, fully=True)
        return True

    def on_truncated(self) -> None:
        beginning, self._beginning = self._beginning, None
        log = self.partition.log
        if (
            beginning is not None
            and log.is_open
            and log.log_start_offset == log.end_offset == beginning.offset
        ):
            log.begin_with(beginning.producers, beginning.epoch)
            self.begin_at_end = None
            self.on_progress(self)

    # --- the local log ---

    def local(self) -> LocalView:
        log_start = self.partition.log.log_start_offset
        manifest = self.manifest
        if manifest is not None:
            if self.continued is not None:
                log_start = max(manifest.start, self._requested_start)
            else:
                log_start = max(manifest.start, log_start)
        topic = self.partition.log.config
        copies = topic.remote_storage_enable and not topic.remote_log_copy_disable
        return LocalView(self.partition, manifest, log_start, copies=copies)

    def take_local_retention(self, now_ms: int) -> RetentionJob | None:
        """Rule 5: what goes from the disk, this process has read in a manifest."""
        log = self.partition.log
        start = self.log_start_offset
        if start is not None and log.log_start_offset < start <= self.partition.high_watermark:
            log.delete_records_before(start)
        view = LocalView(self.partition, self.manifest, self.local().start)
        until = self.machine.local_until(view, now_ms)
        return log.take_removal(min(until, self.partition.high_watermark))

    # --- what people ask ---

    def lag(self, now: float) -> CopyLag:
        """Of what is sealed and not in the store. Rule 10: its age is told, so that a store that never
        answers is seen."""
        end = max(self.tiered_end, 0)
        waiting = [each for each in self.local().sealed if each.next_offset > end]
        for base_offset in list(self._waiting_since):
            if base_offset < end:
                del self._waiting_since[base_offset]
        for each in waiting:
            self._waiting_since.setdefault(each.base_offset, now)
        oldest = min((self._waiting_since[each.base_offset] for each in waiting), default=now)
        return CopyLag(sum(each.size for each in waiting), len(waiting), now - oldest)


def settings_of(partition: Partition, config: BrokerConfig) -> TierSettings:
    topic = partition.log.config
    return TierSettings(
        retention_ms=topic.retention_ms,
        retention_bytes=topic.retention_bytes,
        local_retention_ms=local_retention_ms(topic),
        local_retention_bytes=local_retention_bytes(topic),
        grace_ms=config.headrace_tier_delete_delay_ms,
        refresh_ms=2 * config.remote_log_manager_task_interval_ms,
    )
