"""What must hold after every step of a simulated cluster.

The committed log of a partition is what any of its leaders ever had below its high watermark. It is kept
here, outside the brokers, and everything else is compared with it. A step is one callback of one process, so
only that process can have changed: the others are looked at when something of the partition did.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from headrace.broker.broker import Broker
from headrace.controller.image import MetadataImage
from headrace.core.errors import CorruptBatch, HeadraceError
from headrace.core.ports import Buffer
from headrace.protocol.batch import HEADER_SIZE, check, read_header
from headrace.testing.simulation.virtual_loop import ProcessLoop
from tests.simulation.cluster import SimulatedCluster, SimulatedHost
from tests.simulation.metadata import compare_metadata
from tests.simulation.mirror import Entry, holds, leads_to, place_of
from tests.simulation.replicas import CommittedLog, InvariantBroken, Key, Replica, holds_all
from tests.simulation.retention import NO_RETENTION, Retention

METADATA: Final = ("__cluster_metadata", 0)


class Invariants:
    def __init__(
        self, cluster: SimulatedCluster, min_in_sync: int, retention: Retention = NO_RETENTION
    ) -> None:
        self._cluster = cluster
        self._min_in_sync = min_in_sync
        self._retention = retention
        self.committed: dict[Key, CommittedLog] = {}
        self._replicas: dict[SimulatedHost, dict[Key, Replica]] = {host: {} for host in cluster.hosts}
        self._left: dict[tuple[SimulatedHost, Key], tuple[int, list[Entry]]] = {}
        self._host_of: dict[ProcessLoop, SimulatedHost] = {}
        self._metadata_end: dict[ProcessLoop, int] = {}
        self._newest = -1
        self._registered: dict[int, int] = {}
        """Broker epochs, as the newest metadata has them."""
        self.checks = 0
        self.counts: dict[str, int] = {}
        cluster.scheduler.after_callback = self.after_step
        cluster.on_process_ended = self._on_process_ended

    def _on_process_ended(self, host: SimulatedHost) -> None:
        """What it wrote stays in its host's cache, until power is lost."""
        for key, replica in self._replicas[host].items():
            self._left[host, key] = (host.boot, replica.mirror.entries)
        self._replicas[host] = {}

    # --- after each step ---

    def after_step(self, loop: ProcessLoop) -> None:
        host = self._host_of.get(loop)
        if host is None:
            host = self._find(loop)
            if host is None:
                return
        process = host.process
        if process is None or process.loop is not loop or process.broker is None:
            return
        broker = process.broker
        if broker.metadata.store.end != self._metadata_end.get(loop, -1):
            self._on_metadata(loop, broker)
            self._find_replicas(host, broker)
        elif len(broker.partitions) != len(self._replicas[host]):
            self._find_replicas(host, broker)  # one was given up, or is hosted again
        for key, replica in self._replicas[host].items():
            partition = replica.partition
            log = partition.log
            seen = (
                log.end_offset,
                partition.high_watermark,
                partition.leader_epoch,
                partition.is_leader,
                log.truncations,
                log.log_start_offset,
                log.is_open,
            )
            if seen != replica.seen:
                replica.seen = seen
                if replica.is_readable:
                    self._on_partition(loop, host, key, replica)

    def _find_replicas(self, host: SimulatedHost, broker: Broker) -> None:
        """The metadata says what is hosted. One that was quarantined is hosted again when its leader has
        answered, in a later step than it was given up in."""
        known = self._replicas[host]
        found = self._replicas[host] = {}
        for partition in broker.partitions:
            if partition.log.directory.failure is not None:
                continue  # it failed in this very step; nothing can be read of it any more
            key = partition.topic_partition
            replica = known.get(key)
            if not partition.log.is_open and (replica is None or replica.partition is not partition):
                continue
            found[key] = (
                replica if replica is not None and replica.partition is partition else Replica(partition)
            )

    def _find(self, loop: ProcessLoop) -> SimulatedHost | None:
        for host in self._cluster.hosts:
            if host.process is not None and host.process.loop is loop:
                self._host_of[loop] = host
                return host
        return None

    # --- the metadata ---

    def _on_metadata(self, loop: ProcessLoop, broker: Broker) -> None:
        """MetadataLogMatching; the applied prefix is the committed prefix; LeaderInIsr."""
        end, before = broker.metadata.store.end, self._metadata_end.get(loop, 0)
        self._metadata_end[loop] = end
        ensemble = self._cluster.ensemble
        self._require(end <= ensemble.end, "AppliedIsCommitted", f"{loop.name} applied up to {end}")
        self._require(end >= before, "AppliedIsCommitted", f"{loop.name} went back from {before} to {end}")
        copy = broker.metadata.partition.log
        self._require(copy.end_offset >= end, "MetadataLogMatching", f"the copy of {loop.name} is shorter")
        if METADATA not in self._cluster.hosts[broker.runtime.broker_id - 1].damaged:
            compare_metadata(loop.name, broker, before, ensemble.ever)
        if end > self._newest:
            self._newest = end
            self._registered = {each.broker_id: each.epoch for each in broker.metadata.image.brokers.values()}
            self._on_newest(broker.metadata.image)

    def _on_newest(self, image: MetadataImage) -> None:
        """The newest committed rows: who may lead, and whether they could."""
        fenced = {each.broker_id for each in image.brokers.values() if each.fenced}
        for name in image.topic_names():
            topic = image.topics_by_name[name]
            for index in range(len(topic)):
                row = topic.state(index)
                committed = self._committed((name, index))
                self._require(not fenced & set(row.isr), "FencedIsNotInSync", f"{name}-{index} {row}")
                if committed.row == row:
                    continue
                committed.row = row
                where = f"{name}-{index} {row}"
                self._require(row.leader < 0 or row.leader in row.isr, "LeaderInIsr", where)
                self._require(set(row.isr) <= set(row.replicas), "IsrIsAssigned", where)
                self._require(not set(row.isr) & set(row.exceptional.elr), "IsrAndEligibleAreApart", where)
                self._check_candidates((name, index), committed)

    # --- the data ---

    def _committed(self, key: Key) -> CommittedLog:
        found = self.committed.get(key)
        if found is None:
            found = self.committed[key] = CommittedLog()
        return found

    def _on_partition(self, loop: ProcessLoop, host: SimulatedHost, key: Key, replica: Replica) -> None:
        self.checks += 1
        partition, mirror = replica.partition, replica.mirror
        committed = self._committed(key)
        where = f"{key[0]}-{key[1]} at {loop.name}"
        replica.is_damaged = key in host.damaged
        if not self._follow(replica, committed, where):
            if partition.is_leader:
                committed.unread = max(committed.unread, partition.high_watermark)
            return
        high_watermark, log_start = partition.high_watermark, partition.log.log_start_offset
        self._require(
            high_watermark >= replica.high_watermark or replica.is_damaged,
            "HighWatermarkNeverMovesBack",
            f"{where}: from {replica.high_watermark} to {high_watermark}",
        )
        self._require(log_start >= replica.log_start, "LogStartNeverMovesBack", where)
        self._require(high_watermark <= mirror.end or replica.is_damaged, "HighWatermarkInsideLog", where)
        replica.high_watermark, replica.log_start = high_watermark, log_start
        self._check_log_start(replica, committed, where)
        if partition.is_leader:
            self._on_leader(loop, key, replica, committed, where)
        elif high_watermark > committed.end and (replica.was_leader or high_watermark <= committed.unread):
            # It applied several rows in one step: it committed something, and then was deposed. Or the leader
            # that did is damaged, and could not be read.
            self._commit(key, replica, committed, where)
        elif high_watermark > committed.end:
            raise InvariantBroken(
                "FollowerBehindLeader", f"{where}: {high_watermark}, and no leader is above {committed.end}"
            )
        replica.was_leader = partition.is_leader
        self._compare(replica, committed, min(high_watermark, committed.end), "LogMatching", where)
        self._check_candidates(key, committed)

    def _follow(self, replica: Replica, committed: CommittedLog, where: str) -> bool:
        """See what is new in a log. Only of a damaged one some of it may be beyond reading."""
        mirror = replica.mirror
        try:
            if mirror.update():
                replica.compared = 0
        except (HeadraceError, OSError) as error:
            self._require(replica.is_damaged, "CommittedRecordsStay", f"{where}: {error}")
            with suppress(HeadraceError, OSError):
                mirror.begin_at(min(committed.end, mirror.log.end_offset))
                return True
            return False
        return True

    def _check_log_start(self, replica: Replica, committed: CommittedLog, where: str) -> None:
        """RetentionAlone: nothing else raises the log start of any replica, damaged or not."""
        start = replica.log_start
        if start <= committed.condemned:
            return
        gone = committed.entries[place_of(committed.entries, committed.condemned) :]
        gone = gone[: place_of(gone, start)]
        left = self._left_from(replica, committed)
        self._require(
            self._retention.condemns(gone, left, self._cluster.scheduler.now),
            "RetentionAlone",
            f"{where} begins at {start}; nobody has condemned anything from {committed.condemned} on",
        )
        committed.condemned = start

    def _left_from(self, replica: Replica, committed: CommittedLog) -> list[Entry]:
        """What a log holds from its start on. The mirror of a damaged one may have passed over damage, or was
        led astray by an offset, which has no checksum: what is missing in it is what is committed."""
        entries, end = replica.mirror.entries, replica.partition.log.end_offset
        left = entries[place_of(entries, replica.log_start) :]
        if not replica.is_damaged or leads_to(left, replica.log_start, end):
            return left
        known = committed.entries[place_of(committed.entries, replica.log_start) :]
        newer = [entry for entry in entries if entry.base_offset >= committed.end]
        return [entry for entry in (*known, *newer) if entry.next_offset <= end]

    def _on_leader(
        self, loop: ProcessLoop, key: Key, replica: Replica, committed: CommittedLog, where: str
    ) -> None:
        partition = replica.partition
        epoch = partition.leader_epoch
        holder = committed.leaders.setdefault(epoch, loop.name)
        self._require(
            holder == loop.name, "OneLeaderPerEpoch", f"{where} leads in epoch {epoch}, which was {holder}'s"
        )
        if epoch != replica.leader_epoch:
            replica.leader_epoch = epoch
            self._count("leaderships")
            # A leader that is deposed already, and has not heard of it, may lack what came after it.
            if committed.row is None or committed.row.leader_epoch <= epoch:
                self._require_complete(replica, committed, "LeaderCompleteness", where)
        if partition.high_watermark > committed.end:
            self._commit(key, replica, committed, where)

    def _commit(self, key: Key, replica: Replica, committed: CommittedLog, where: str) -> None:
        """A leader's high watermark is above everything before: what lies below it is committed now."""
        if replica.is_damaged:  # what lies before may have been read wrong: offsets have no checksum
            try:
                replica.mirror.begin_at(committed.end)
            except (HeadraceError, OSError):
                committed.unread = max(committed.unread, replica.partition.high_watermark)
                return
        until = replica.partition.high_watermark
        if replica.partition.log.log_start_offset >= until:  # committed and deleted since anybody looked
            committed.unread = max(committed.unread, until)
            return
        entries = replica.mirror.entries
        self._compare(replica, committed, committed.end, "StrongIsr", where)
        last_place = place_of(entries, until)
        added = entries[place_of(entries, committed.end) : last_place]
        self._require(
            bool(added) and added[0].base_offset == committed.end and added[-1].next_offset == until,
            "HighWatermarkBetweenBatches",
            f"{where}: {until} after {committed.end}, with {added}",
        )
        committed.entries += added
        committed.end = until
        replica.compared = last_place
        last = committed.entries[-1]
        holders = self._holders(key, last)
        self._require(
            len(holders) >= min(self._min_in_sync, len(replica.partition.replicas)),
            "MinIsrRecoveryQuorum",
            f"{where}: offset {last.base_offset} is committed and held by {holders} only",
        )

    def _holders(self, key: Key, entry: Entry) -> list[str]:
        """Whose log holds it. One who lost power, or was damaged, since it had said so is not to blame."""
        found = []
        for host in self._cluster.hosts:
            if host.is_in_doubt(key):
                found.append(host.name)
                continue
            replica = self._replicas[host].get(key)
            if replica is not None:
                if replica.is_readable:
                    replica.mirror.update()
                entries = replica.mirror.entries
            else:
                boot, entries = self._left.get((host, key), (-1, []))
                if boot != host.boot:
                    entries = []
            if holds(entries, entry):
                found.append(host.name)
        return found

    def _compare(self, replica: Replica, committed: CommittedLog, until: int, name: str, where: str) -> None:
        """The log agrees with what is committed, below `until`. What was compared before is not again."""
        entries, known = replica.mirror.entries, committed.entries
        if replica.is_damaged or not entries:
            return
        at = replica.compared
        before = place_of(known, entries[0].base_offset)
        if at == 0 and before > place_of(known, replica.mirror.begin):
            raise InvariantBroken("CommittedRecordsStay", f"{where} begins with {entries[0]}")
        # What lies before the log start is nobody's: its segments go when that start is on the disk.
        at = max(at, place_of(entries, replica.partition.log.log_start_offset))
        while at < len(entries) and at + before < len(known) and entries[at].next_offset <= until:
            if entries[at] != known[at + before]:
                raise InvariantBroken(name, f"{where}: {entries[at]} instead of {known[at + before]}")
            at += 1
        replica.compared = at

    def _require_complete(self, replica: Replica, committed: CommittedLog, name: str, where: str) -> None:
        if replica.is_damaged or not self._follow(replica, committed, where):
            return
        end = replica.mirror.end
        self._require(end >= committed.end, name, f"{where} ends at {end}, and {committed.end} is committed")
        self._compare(replica, committed, committed.end, name, where)

    def _check_candidates(self, key: Key, committed: CommittedLog) -> None:
        """LeaderCandidateCompleteness: every running member of ISR or ELR has all that is committed."""
        row = committed.row
        if row is None:
            return
        for member in (*row.isr, *row.exceptional.elr):
            host = self._cluster.hosts[member - 1]
            replica = self._replicas[host].get(key)
            broker = host.broker
            if replica is None or not replica.is_readable or key in host.damaged:
                continue
            if broker is None or not self.is_registered(broker):
                continue
            self._require_complete(
                replica,
                committed,
                "LeaderCandidateCompleteness",
                f"{key[0]}-{key[1]} at {host.name}, a member of {row.isr} + {row.exceptional.elr},",
            )

    def is_registered(self, broker: Broker) -> bool:
        """The newest row speaks of this incarnation, and not of one before it."""
        return self._registered.get(broker.runtime.broker_id) == broker.node.broker_epoch

    def is_whole(self, host: SimulatedHost, key: Key) -> bool:
        """Whether a replica that was damaged holds everything again, read from its files just now."""
        broker, row = host.broker, self._committed(key).row
        if broker is None or row is None or not self.is_registered(broker):
            return False
        replica = self._replicas[host].get(key)
        if broker.runtime.broker_id not in row.replicas:
            return replica is None
        if replica is None or not replica.is_readable or broker.runtime.broker_id not in row.isr:
            return False
        if not holds_all(host.disk, replica.partition.log, self._committed(key)):
            return False
        replica.begin_anew()
        return True

    def condemn(self, key: Key, offset: int) -> None:
        """Somebody asks for records before `offset` to be deleted."""
        committed = self._committed(key)
        committed.condemned = max(committed.condemned, offset)

    def condemned(self) -> dict[str, int]:
        return {f"{topic}-{index}": log.condemned for (topic, index), log in self.committed.items()}

    # --- what clients are told ---

    def on_acknowledged(self, key: Key, offset: int) -> None:
        committed = self._committed(key)
        self._require(
            offset < max(committed.end, committed.unread),
            "AcknowledgedIsCommitted",
            f"{key[0]}-{key[1]} offset {offset} was acknowledged, {committed.end} is committed",
        )

    def on_read(self, key: Key, offset: int) -> None:
        committed = self._committed(key)
        self._require(
            offset < max(committed.end, committed.unread),
            "ReadIsCommitted",
            f"{key[0]}-{key[1]} offset {offset} was read, {committed.end} is committed",
        )

    def on_fetched(self, key: Key, data: Buffer) -> None:
        """ConsistentRead: what a consumer is given is what was committed, byte for byte."""
        committed = self._committed(key)
        known = committed.entries
        position = 0
        while len(data) - position >= HEADER_SIZE:
            header = read_header(data, position)
            if header.batch_length > 0 and header.size > len(data) - position:
                return  # the last one may be cut
            where = f"{key[0]}-{key[1]} offset {header.base_offset}"
            try:
                header = check(data, position)
            except CorruptBatch as error:
                raise InvariantBroken("ConsistentRead", f"{where} was served damaged: {error}") from None
            entry = Entry.of(header)
            if committed.end <= entry.base_offset < committed.unread:
                is_consistent = committed.served.setdefault(entry.base_offset, entry) == entry
            else:
                is_consistent = holds(known, entry)
            self._require(
                is_consistent,
                "ConsistentRead",
                f"{where} is not what was committed: {header}",
            )
            position += header.size

    # --- ---

    def _require(self, holds: bool, name: str, detail: str) -> None:
        if not holds:
            raise InvariantBroken(name, detail)

    def _count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1
