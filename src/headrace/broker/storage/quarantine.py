"""Takes a replica out of service that is damaged or does not belong to its log, and lets it begin anew.

It is given up here: it leads no more and follows nobody, and its files stay as they are. When another broker
leads and has the log (`leader_checks.py`), they are set aside, and everything is fetched anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.replicas.directory_choices import LOST
from headrace.broker.replicas.manager import ReplicaManager
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.runtime.health_report import HealthReport
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.storage.leader_checks import Host, LeaderChecks
from headrace.config.health import QUARANTINED
from headrace.controller.topic_image import TopicImage
from headrace.core.errors import CorruptLog, StorageError
from headrace.core.ids import NO_BROKER, TopicPartition
from headrace.log.manager import LogManager

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog
    from headrace.replication.partition import Partition

MOST_NAMED: Final = 100
_QUARANTINED: Final = (
    "replicas that are damaged and not served; with the end of their logs, where it is known"
)


class Quarantine:
    def __init__(
        self,
        runtime: Runtime,
        metadata: MetadataCache,
        logs: LogManager,
        partitions: PartitionTable,
        replicas: ReplicaManager,
        host: Host,
    ) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._logs = logs
        self._partitions = partitions
        self._replicas = replicas
        self._host = host
        """Hosts partitions of a topic as the metadata says now."""
        self._leader_checks = LeaderChecks(runtime, metadata, logs, host)

    def stop(self) -> None:
        self._leader_checks.stop()

    def report_to(self, health: HealthReport) -> None:
        health.add(QUARANTINED, self._quarantined, _QUARANTINED)

    def _quarantined(self) -> str | None:
        ends = self._logs.quarantined_ends
        told = [
            f"{name} epoch {ends[name][0]} offset {ends[name][1]}" if name in ends else str(name)
            for name in sorted(self._logs.quarantined)
        ]
        more = [f"and {len(told) - MOST_NAMED} more"] if len(told) > MOST_NAMED else []
        return ", ".join(told[:MOST_NAMED] + more) or None

    def refuses_epoch(self, partition: Partition, leader_epoch: int) -> bool:
        """Whether this replica cannot lead in an epoch, because its last batch says a later one. No checksum
        covers that, and nothing behind it contradicts it. Good followers would cut off what is committed."""
        log = partition.log
        if self._runtime.is_standalone or log.latest_epoch <= leader_epoch:
            return False
        problem = f"{log.path} ends in leader epoch {log.latest_epoch}, and {leader_epoch} is the latest"
        self.give_up(partition, CorruptLog(problem))
        return True

    def refuses_doubt(self, partition: Partition) -> bool:
        """Whether this replica leaves the lead to others. They have all that is committed, and its manifest
        was damaged after a clean stop. If more was, a leader can tell (rule 13), but what a leader has is
        the log. A crash alone leaves doubts too: then it leads."""
        log, own_id = partition.log, self._runtime.broker_id
        if self._runtime.is_standalone or log.doubtful is None or not log.manifest.replaces_lost:
            return False
        if self._eligible(partition) <= {own_id}:
            return False
        self._runtime.log.warning(
            "partition left to another leader",
            partition=str(partition.topic_partition),
            error=f"the manifest in {log.path} was damaged while the broker was stopped, and more may be",
        )
        self._replicas.directories.declare(partition.topic_id, partition.topic_partition.partition, LOST)
        return True

    def disagree(self, partition: Partition) -> None:
        """The leader's log and this one are of different logs, as after files were swapped. The leader is in
        sync, so it is believed. But whoever may lead after it gives up nothing because of what the leader
        has: the damage may be the leader's."""
        log = partition.log
        candidates = self._candidates(partition)
        if partition.cannot_compare:
            # The leader has lost it, and waits for somebody who has it. Whoever may lead is believed, if
            # nobody else is there: the controller would take its log as it is.
            if candidates == {self._runtime.broker_id}:
                log.vouch(log.doubtful)
            return
        is_damaged = partition.is_out_of_reach or log.manifest.replaces_lost
        keepers = set(partition.isr) if is_damaged else candidates
        if self._runtime.broker_id not in keepers and not log.closed:
            self._runtime.loop.call_soon(self._give_up_log, partition, log)

    def _candidates(self, partition: Partition) -> set[int]:
        """Who may lead after the present leader."""
        return self._eligible(partition) - {partition.leader_id}

    def _eligible(self, partition: Partition) -> set[int]:
        topic = self._metadata.image.topic_by_id(partition.topic_id)
        if topic is None:
            return set()
        index = partition.topic_partition.partition
        return {*topic.isr(index), *topic.exceptional(index).elr}

    def _give_up_log(self, partition: Partition, log: PartitionLog) -> None:
        name = partition.topic_partition
        if not log.closed and self._partitions.find(*name) is partition and log.truncation is None:
            self.give_up(partition, CorruptLog(f"{log.path} does not agree with the log of its leader"))

    def give_up(self, partition: Partition, error: CorruptLog) -> None:
        name = partition.topic_partition
        self._runtime.log.error("partition quarantined", partition=str(name), error=str(error))
        partition.resign()
        self._replicas.unfollow(partition)
        self._partitions.remove(name)
        self._logs.quarantine(name, error)
        topic = self._metadata.image.topic_by_id(partition.topic_id)
        if topic is not None:
            self._host(topic, [name.partition])

    def may_begin_anew(self, topic: TopicImage, index: int) -> bool:
        """Whether a quarantined replica may be set aside: somebody else leads, and has what is committed.

        Otherwise the controller is told that this one is lost, so that it looks for another leader.
        """
        name = TopicPartition(topic.name, index)
        if self._runtime.is_standalone:
            return False
        self._replicas.directories.declare(topic.topic_id, index, LOST)
        leader = topic.leaders[index]
        if leader in (NO_BROKER, self._runtime.broker_id) or self._runtime.broker_id in topic.isr(index):
            return False
        if topic.directory_of(index, self._runtime.broker_id) != LOST:
            return False  # not before the controller knows: it must not count on the empty log
        if not self._leader_checks.has_log(topic, index):
            return False
        try:
            path = self._logs.set_quarantined_aside(name)
        except StorageError as error:
            self._runtime.log.error(
                "quarantined partition not set aside", partition=str(name), error=str(error)
            )
            return False
        self._runtime.log.warning(
            "quarantined partition is fetched again from its leader", partition=str(name), old_files=path
        )
        return True
