"""What must hold, after each call that reaches the store and each step of a replica.

The checks know what no broker knows: all that was committed, what every object held, when it was last named.
They read the store behind its faults. Numbers are those of docs/invariants/tier.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from uuid import UUID

from headrace.core.ports_objects import Found, ObjectStore
from headrace.tier.calls import Call, Delete, List, Put, PutIf
from headrace.tier.local import TierSettings, epochs_within
from headrace.tier.manifest import Manifest
from headrace.tier.manifest_format import decode, decode_page, stored
from headrace.tier.names import Folder, ObjectName, TieredPartition
from headrace.tier.segments import Misfit, RemoteSegment
from tests.simulation.tier.logs import Record, ReplicaLog, common, encode, epochs_of, last_stable


class InvariantBroken(AssertionError):
    def __init__(self, number: int, detail: str) -> None:
        super().__init__(f"invariant {number}: {detail}")
        self.number = number


def require(holds: bool, number: int, detail: str) -> None:
    if not holds:
        raise InvariantBroken(number, detail)


@dataclass(slots=True)
class Truth:
    """What was committed, by every leader that could. An unclean election may take its end away, but nothing
    that is in the store."""

    records: list[Record] = field(default_factory=list)
    since_epoch: int = 0
    """A leader of an earlier epoch commits nothing that counts."""
    deleted_until: int = 0
    """By DeleteRecords, as clients were told."""

    def commit(self, epoch: int, log: ReplicaLog) -> None:
        if epoch < self.since_epoch:
            return
        until = log.high_watermark
        known = min(until, len(self.records))
        require(
            log.records[:known] == self.records[:known],
            14,
            f"the leader of epoch {epoch} has other records below {known} than were committed",
        )
        self.records += log.records[len(self.records) : until]

    def begin_line(self, epoch: int, log: ReplicaLog, start: int, tier_end: int) -> None:
        """A leader begins that may lack committed records. One that was frozen since it wrote the manifest,
        and has a successor that began meanwhile, commits nothing that counts. What lies before `start` was
        deleted by retention or by a client: of that a leader may have another version. Nobody can read it."""
        if epoch < self.since_epoch:
            return
        kept = start + common(self.records[start:], log.records[start:])
        require(kept >= tier_end, 14, f"a leader begins with {kept} committed records, {tier_end} are stored")
        self.records = log.records[:start] + self.records[start:kept]
        self.since_epoch = epoch


class StoreChecks:
    """One partition of one topic."""

    def __init__(
        self, store: ObjectStore, folder: Folder, partition: TieredPartition, settings: TierSettings
    ) -> None:
        self.folder = folder
        self.partition = partition
        self.truth = Truth()
        self.manifest: Manifest | None = None
        self.segments: tuple[RemoteSegment, ...] = ()
        """All that it names, also by its pages."""
        self.approved: dict[UUID, int] = {}
        """By writer, how far it may move the start."""
        self.counts: dict[str, int] = {}
        self._store = store
        self._settings = settings
        self._named: set[ObjectName] = set()
        self._dropped_ms: dict[ObjectName, int] = {}
        self._created_ms: dict[ObjectName, int] = {}
        self._puts: set[str] = set()
        self._deleted_at_ms: int | None = None

    def count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1

    @property
    def start(self) -> int:
        return 0 if self.manifest is None else self.manifest.start

    @property
    def next_offset(self) -> int:
        return 0 if self.manifest is None else self.manifest.next_offset

    # --- calls -----------------------------------------------------------------------------------------

    def on_submitted(self, call: Call) -> None:
        key = call.prefix if isinstance(call, List) else call.key
        require(key.startswith(self.folder.prefix), 16, f"{key} is none of this topic's objects")
        if isinstance(call, Put):
            require(key not in self._puts, 9, f"{key} is written a second time")
            self._puts.add(key)

    def before(self, call: Call, now_ms: int) -> None:
        """It has reached the store, and is about to take effect."""
        if isinstance(call, Delete):
            self._on_delete(call.key, now_ms)

    def after(self, call: Call, now_ms: int, *, is_done: bool) -> None:
        if isinstance(call, Put):
            name = self.folder.name_of(call.key)
            assert name is not None
            self._created_ms.setdefault(name, now_ms)
        elif isinstance(call, PutIf) and is_done:
            self._on_manifest(call.data, now_ms)
        elif isinstance(call, Delete) and call.key == self.folder.manifest:
            self.manifest, self.segments, self._named = None, (), set()

    def _on_delete(self, key: str, now_ms: int) -> None:
        name = self.folder.name_of(key)
        if name is None:
            deleted_ms = None if self.manifest is None else self.manifest.deleted_ms
            require(self.manifest is None or deleted_ms is not None, 16, "a living manifest is deleted")
            return
        if self.manifest is not None and self._is_deleted_ms(now_ms) >= self._settings.grace_ms:
            return
        require(name not in self._named, 8, f"{key} is deleted, and is named")
        if name in self._dropped_ms:
            age_ms = now_ms - self._dropped_ms[name]
            require(age_ms >= self._settings.grace_ms, 16, f"{key} goes {age_ms} ms after it was named")
        elif self._get(key) is not None and self.manifest is not None:
            age_ms = now_ms - self._created_ms[name]
            require(
                age_ms >= self._settings.garbage_age_ms, 8, f"{key} was never named, and is {age_ms} ms old"
            )
            self.count("garbage")

    def _is_deleted_ms(self, now_ms: int) -> int:
        """For how long the manifest has said that the topic is deleted; -1 if it does not."""
        return -1 if self._deleted_at_ms is None else now_ms - self._deleted_at_ms

    def _get(self, key: str) -> bytes | None:
        found = self._store.get(key, deadline_seconds=0)
        return found.data if isinstance(found, Found) else None

    # --- manifests -------------------------------------------------------------------------------------

    def _on_manifest(self, data: bytes, now_ms: int) -> None:
        self.count("manifests")
        if self._deleted_at_ms is None and b'"deleted":null' not in data:
            self._deleted_at_ms = now_ms
        before, known = self.manifest, self.segments
        manifest = decode(data, self.partition)
        segments = self._expanded(manifest)
        if before is not None:
            require(
                manifest.epoch >= before.epoch, 3, f"the epoch fell from {before.epoch} to {manifest.epoch}"
            )
            require(manifest.change == before.change + 1, 3, f"change {before.change} is lost")
            require(manifest.start >= before.start, 16, "the start moved back")
        self._check_start(manifest)
        kept = [each for each in known if each.next_offset > manifest.start]
        require(list(segments[: len(kept)]) == kept, 1, f"what was named is not, from {manifest.start} on")
        added = segments[len(kept) :]
        if added and before is not None and before.ranges:
            require(
                added[0].base_offset == before.next_offset, 3, f"{added[0].name} after {before.next_offset}"
            )
        if not manifest.is_deleted:
            for each in added:
                self._check_segment(each)
        self._note_names(manifest, segments, now_ms)
        self.manifest, self.segments = manifest, segments

    def _expanded(self, manifest: Manifest) -> tuple[RemoteSegment, ...]:
        segments = [*manifest.oldest]
        for page in manifest.pages:
            data = self._get(self.folder.page(page.name))
            require(data is not None, 1, f"{page.name} is named and is not there")
            assert data is not None
            segments += decode_page(data, self.partition, page)
        segments += manifest.segments
        for earlier, later in pairwise(segments):
            require(earlier.next_offset == later.base_offset, 1, f"{earlier.name} and {later.name}")
        try:
            manifest.check()
        except Misfit as error:
            raise InvariantBroken(1, str(error)) from None
        return tuple(segments)

    def _check_start(self, manifest: Manifest) -> None:
        allowed = max(self.start, self.approved.get(manifest.writer, 0), self.truth.deleted_until)
        require(manifest.start <= allowed, 6, f"the start is {manifest.start}, and may be {allowed}")

    def _check_segment(self, each: RemoteSegment) -> None:
        self.count("segments")
        base, until, records = each.base_offset, each.next_offset, self.truth.records
        require(until <= len(records), 2, f"{each.name} to {until}; {len(records)} are committed")
        stable = last_stable(records, len(records))
        require(until <= stable, 2, f"{each.name} to {until}; a transaction is open at {stable}")
        data = self._get(self.folder.records(each.name))
        require(data is not None, 1, f"{each.name} is named, and is not there")
        assert data is not None
        require(data == encode(records, base, until), 14, f"{each.name} does not hold what was committed")
        require(stored(data) == each.records, 9, f"{each.name} is not what the manifest says")
        indexes = self._get(self.folder.indexes(each.name))
        require(indexes is not None and stored(indexes) == each.indexes, 9, f"{each.name}: its indexes")
        require(
            each.epochs == epochs_within(epochs_of(records), base, until), 3, f"{each.name} has other epochs"
        )

    def _note_names(self, manifest: Manifest, segments: Sequence[RemoteSegment], now_ms: int) -> None:
        named = {each.name for each in segments} | {each.name for each in manifest.pages}
        for name in named - self._named:
            self._dropped_ms.pop(name, None)
        for name in self._named - named:
            self._dropped_ms[name] = now_ms
        if manifest.pages:
            self.count("with pages")
        if len(self._named - named):
            self.count("starts moved")
        self._named = named

    # --- replicas --------------------------------------------------------------------------------------

    def check_covered(self, log: ReplicaLog, where: str) -> None:
        """Rule 1: what is not on the disk, and not deleted, is in the store."""
        first = max(log.start, self.start)
        if log.local_start > first and not (self.manifest is not None and self.manifest.is_deleted):
            require(
                self.next_offset >= log.local_start,
                1,
                f"{where}: nobody has {max(first, self.next_offset)} to {log.local_start}",
            )

    def check_start_job(self, log: ReplicaLog, start: int, now_ms: int, where: str) -> None:
        """Rule 7: it deletes what a log without a store would delete. The sum is over all records, once."""
        settings = self._settings
        for offset in range(self.start, start):
            if offset < max(log.start, self.truth.deleted_until):
                continue
            is_old = 0 <= settings.retention_ms < now_ms - log.records[offset].time_ms
            is_over = 0 <= settings.retention_bytes <= log.all_bytes_from(offset + 1)
            require(is_old or is_over, 7, f"{where}: {offset} is neither old nor too much")
