"""Makes the hosted partitions follow the metadata: opened when they appear, removed when they vanish.

A process acts on partition records only while the metadata has registered its own broker epoch (rule 11).
Records from before its registration are meant for an earlier process of this broker. Records from after
another registration are meant for a later process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final
from uuid import UUID

from headrace.broker.cluster.configs import topic_config
from headrace.broker.cluster.lifecycle import BrokerLifecycle, MissingPartitions
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.metadata_partition import METADATA_PARTITION
from headrace.broker.coordinators.coordinators import Coordinators
from headrace.broker.replicas.manager import ReplicaManager
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.storage.integrity import Integrity
from headrace.broker.storage.late_openings import AT_ONCE, LateOpenings
from headrace.broker.storage.late_removals import LateRemovals
from headrace.broker.storage.quarantine import Quarantine
from headrace.config.topic import TopicConfig
from headrace.controller.delta import MetadataDelta
from headrace.controller.image import ResourceType
from headrace.controller.self_balancing.survey import topics_with_moves
from headrace.controller.topic_image import TopicImage
from headrace.core.errors import DiskFull, StorageError, TooManyOpenFiles
from headrace.core.ids import NO_TOPIC_ID, TopicPartition
from headrace.log.directory import LogDirectory
from headrace.log.manager import LogManager
from headrace.log.partition_log import PartitionLog
from headrace.replication.assignment import Assignment, concerns_this_process
from headrace.replication.partition import Partition
from headrace.replication.replica import Role

KEPT_CONFIGS: Final = 100


class Hosting:
    def __init__(
        self,
        runtime: Runtime,
        metadata: MetadataCache,
        node: BrokerLifecycle,
        logs: LogManager,
        partitions: PartitionTable,
        replicas: ReplicaManager,
        integrity: Integrity,
        quarantine: Quarantine,
        coordinators: Coordinators,
        forget_answers: Callable[[], None],
        on_row: Callable[[Partition], None],
        high_watermarks: dict[TopicPartition, int],
        may_lead: Callable[[Partition, Assignment], bool] = lambda _partition, _row: True,
    ) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._node = node
        self._logs = logs
        self._partitions = partitions
        self._replicas = replicas
        self._integrity = integrity
        self._quarantine = quarantine
        self._coordinators = coordinators
        self._forget_answers = forget_answers
        self._may_lead = may_lead
        """False: it has to be made fit for it first, and is hosted again then."""
        self._on_row = on_row
        """Told of each row that a partition got, before anybody can produce to it."""
        self._high_watermarks = high_watermarks
        self._missed = False
        """This process has ignored deltas, or failed to apply one: the next delta that it follows makes it
        look at all partitions."""
        self._late = LateOpenings(runtime, metadata, partitions, self.host, self._targets_this_incarnation)
        self._refused: dict[tuple[UUID, int], None] = {}
        """Partitions whose files found no room, or no descriptors."""
        self._removals = LateRemovals(runtime, self._remove_logs)
        self._configs: dict[object, TopicConfig] = {}
        """The key is all that a topic's configuration depends on. Most topics share one entry."""
        self._room: int | None = None
        """How many new logs may still be made in this call; None if it does not matter how long it takes."""
        self._missing: MissingPartitions = {}

    def start(self, missing: MissingPartitions) -> None:
        """Host everything that the metadata assigns to this broker, then follow its changes."""
        self._missing = missing
        self._set_strays_aside()
        self._follow_broker_config()
        self._host_everything()
        self._metadata.store.subscribe(self._on_delta)

    async def caught_up(self) -> None:
        """Wait until all partitions that the metadata assigns to this broker are open. A standalone broker
        waits for this before it answers CreateTopics, so that clients find the topics, as in Kafka."""
        await self._late.done()

    def _set_strays_aside(self) -> None:
        """Rename logs that are no replica of this broker, as after a topic was deleted while it was down.

        The broker never deletes data only because the metadata disagrees: the files stay, under another name.
        """
        strays = []
        for name, log in self._logs.logs.items():
            topic = self._metadata.image.topic(name.topic)
            known = (
                topic is not None and log.topic_id in (topic.topic_id, NO_TOPIC_ID) and self._is_replica(name)
            )
            if known or name == METADATA_PARTITION or not log.directory.is_online:
                continue
            strays.append(name)
        for name, path in self._logs.set_aside(strays):
            self._runtime.log.warning("stray partition set aside", partition=str(name), path=path)
        for name in [each for each in self._logs.quarantined if not self._is_replica(each)]:
            self._set_damaged_aside(name)

    def _is_replica(self, name: TopicPartition) -> bool:
        topic = self._metadata.image.topic(name.topic)
        if topic is None or name.partition not in topic:
            return False
        return self._runtime.broker_id in topic.replicas(name.partition)

    def _host_everything(self) -> None:
        for partition in list(self._partitions):
            name, index = partition.topic_partition
            topic = self._metadata.image.topic(name)
            if topic is None or topic.topic_id != partition.topic_id:
                self._remove(name, partition.topic_id)
            elif self._runtime.broker_id not in topic.replicas(index):
                self._unhost(partition)
        for topic in list(self._metadata.image.topics_by_name.values()):
            self.host(topic, topic.partitions_with_replica(self._runtime.broker_id))
        for name in topics_with_moves(self._metadata.image):
            self._replicas.throttles.watch(name, self._config(name))

    def _on_delta(self, delta: MetadataDelta) -> None:
        if not self._targets_this_incarnation():
            self._missed = True
            return
        self._room = AT_ONCE
        try:
            self._follow(delta)
        except Exception:
            self._missed = True  # the next delta makes up for what the error left out
            raise
        finally:
            self._room = None

    def _follow(self, delta: MetadataDelta) -> None:
        if self._missed:
            self._missed = False
            self._host_everything()
            self._reconfigure_broker()
            return
        for removed in delta.removed_topics:
            self._remove(removed.name, removed.topic_id)
        for topic_id, partitions in delta.partitions.items():
            topic = self._metadata.image.topic_by_id(topic_id)
            if topic is not None:
                self._follow_rows(topic, partitions)
        if any(resource.type == ResourceType.BROKER for resource in delta.configs):
            self._reconfigure_broker()
        for resource in delta.configs:
            if resource.type == ResourceType.TOPIC:
                self._reconfigure(resource.name)
        if delta.brokers:
            self._replicas.on_brokers_changed()

    def _targets_this_incarnation(self) -> bool:
        registered = self._metadata.image.brokers.get(self._runtime.broker_id)
        if registered is not None and registered.epoch > self._node.broker_epoch >= 0:
            for partition in self._partitions:  # another process has taken this broker's place
                partition.resign()
                self._replicas.unfollow(partition)
        epoch = None if registered is None else registered.epoch
        return concerns_this_process(epoch, self._node.broker_epoch, self._runtime.environment.safeguards)

    def _follow_rows(self, topic: TopicImage, indexes: Iterable[int]) -> None:
        mine = []
        for index in indexes:
            if self._runtime.broker_id in topic.replicas(index):
                mine.append(index)
            else:
                partition = self._partitions.find(topic.name, index)
                if partition is not None:
                    self._unhost(partition)
        self.host(topic, mine)

    def host(self, topic: TopicImage, indexes: Iterable[int]) -> None:
        config = None
        now = self._runtime.clock.monotonic()
        for index in indexes:
            partition = self._partitions.find(topic.name, index)
            if partition is None:
                if config is None:
                    config = self._config(topic.name)
                name = TopicPartition(topic.name, index)
                if name in self._logs.removals.leaving or name in self._removals.waiting:
                    self._late.add(topic.topic_id, index)
                    continue
                if self._room is not None and name not in self._logs.logs:
                    if not self._room:
                        self._late.add(topic.topic_id, index)
                        continue
                    self._room -= 1
                try:
                    if name in self._logs.quarantined and not self._quarantine.may_begin_anew(topic, index):
                        raise StorageError(str(self._logs.quarantined[name]))
                    if self._logs.is_leaving(name):  # it was set aside just now
                        self._late.add(topic.topic_id, index)
                        continue
                    log = self._open(name, topic.topic_id, config)
                except StorageError as error:
                    if isinstance(error, DiskFull | TooManyOpenFiles):
                        self._refused[topic.topic_id, index] = None
                    self._runtime.log.error("partition offline", partition=str(name), error=str(error))
                    self._partitions.set_offline(name, error)
                    self._forget_answers()
                    continue
                partition = Partition(
                    name,
                    topic.topic_id,
                    log,
                    self._runtime.metrics.topic(topic.name),
                    high_watermark=self._high_watermarks.pop(name, None),
                    safeguards=self._runtime.environment.safeguards,
                )
                partition.on_isr_change = self._replicas.isr_changes.consider
                partition.on_suspected_corruption = self._integrity.doubt
                partition.on_disagreement = self._quarantine.disagree
                if name in self._partitions.offline:
                    self._forget_answers()
                self._partitions.add(partition)
                self._coordinators.adopt(partition)
            row = _row(topic, index)
            if row.leader == self._runtime.broker_id and (
                self._quarantine.refuses_epoch(partition, row.leader_epoch)
                or self._quarantine.refuses_doubt(partition)
                or not self._may_lead(partition, row)
            ):
                continue
            partition.assign(row, self._runtime.broker_id, now)
            if partition.role == Role.FOLLOWER:
                self._replicas.follow(partition)
            else:
                self._replicas.unfollow(partition)
            self._replicas.directories.consider(partition)
            self._on_row(partition)

    def open_refused(self) -> None:
        """Try again to open partitions for whose files there was no room."""
        if self._refused and not all(each.is_full for each in self._logs.online()):
            refused, self._refused = self._refused, {}
            for topic_id, index in refused:
                self._late.add(topic_id, index)

    def _config(self, topic: str) -> TopicConfig:
        image, broker_id = self._metadata.image, self._runtime.broker_id
        key = (
            *image.broker_configs(None).items(),
            None,
            *image.broker_configs(broker_id).items(),
            None,
            *image.topic_configs(topic).items(),
        )
        known = self._configs.get(key)
        if known is None:
            if len(self._configs) >= KEPT_CONFIGS:
                self._configs.clear()
            known = self._configs[key] = topic_config(self._runtime, self._metadata, topic)
        return known

    def _open(self, name: TopicPartition, topic_id: UUID, config: TopicConfig) -> PartitionLog:
        logs = self._logs
        if name in logs.logs or name in logs.quarantined:
            log = logs.get(name)
            if log.topic_id not in (topic_id, NO_TOPIC_ID):
                raise StorageError(
                    f"{log.path} holds another topic of the same name (id {log.topic_id}, not {topic_id}):"
                    " move it away, then restart the broker"
                )
        elif (topic_id, name.partition) in self._missing:
            raise StorageError(self._missing[topic_id, name.partition])
        else:
            log = logs.create(name, topic_id, self._runtime.clock.wall_ms())
        log.update_config(config)
        return log

    def _unhost(self, partition: Partition) -> None:
        """A reassignment took this replica away: what it holds is elsewhere, in sync."""
        partition.resign()
        self._coordinators.release(partition)
        self._replicas.unfollow(partition)
        self._partitions.remove(partition.topic_partition)
        self._logs.delete([partition.topic_partition], self._runtime.clock.wall_ms())

    def _remove(self, name: str, topic_id: UUID) -> None:
        partitions = self._partitions.remove_topic(name)
        others = [partition for partition in partitions if partition.topic_id != topic_id]
        self._leave(others)  # these belong to another topic of the same name: their logs stay
        self._removals.add([partition for partition in partitions if partition.topic_id == topic_id])
        self._make_room_for(name)
        self._replicas.throttles.watch(name, None)
        self._runtime.metrics.forget_topic(name)

    def _remove_logs(self, partitions: Sequence[Partition]) -> None:
        self._leave(partitions)
        gone = [partition.topic_partition for partition in partitions]
        self._logs.delete(gone, self._runtime.clock.wall_ms())

    def _leave(self, partitions: Sequence[Partition]) -> None:
        for partition in partitions:
            partition.resign()
            self._coordinators.release(partition)
            self._replicas.unfollow(partition)

    def _make_room_for(self, topic: str) -> None:
        """Rename quarantined logs of a deleted topic, so that a new topic can have its name. They stay."""
        for name in [name for name in self._logs.quarantined if name.topic == topic]:
            self._set_damaged_aside(name)

    def _set_damaged_aside(self, name: TopicPartition) -> None:
        try:
            path = self._logs.set_quarantined_aside(name)
        except StorageError as error:
            self._runtime.log.error(
                "quarantined partition not set aside", partition=str(name), error=str(error)
            )
        else:
            self._runtime.log.warning("quarantined partition set aside", partition=str(name), path=path)

    def _reconfigure_broker(self) -> None:
        self._follow_broker_config()
        self._reconfigure(None)

    def _follow_broker_config(self) -> None:
        """Dynamic broker configs override the file, also after a restart."""
        runtime, image = self._runtime, self._metadata.image
        of_all, own = image.broker_configs(None), image.broker_configs(runtime.broker_id)
        runtime.update_config(runtime.static_config.with_dynamic(of_all, own))

    def _reconfigure(self, topic: str | None) -> None:
        """Give the logs of a topic, or of all of them, the configuration that holds now."""
        names = [topic] if topic is not None else list(self._metadata.image.topics_by_name)
        for name in names:
            config = self._config(name)
            for partition in self._partitions.of_topic(name):
                partition.log.update_config(config)
                partition.on_reconfigured()
            self._replicas.throttles.watch(name, config)

    def on_directory_failed(self, directory: LogDirectory) -> None:
        """Stop leading and following the replicas in it. `DeadDirectories` reports it to the controller."""
        for partition in self._partitions:
            if partition.log.directory is directory:
                partition.resign()
                self._replicas.unfollow(partition)
        self._forget_answers()

    def stop(self) -> None:
        """Open no more partitions, and finish the removals. Requests are no longer served."""
        self._late.stop()
        self._removals.finish()

    def close(self) -> None:
        """Runs in a thread once nothing else touches the logs any more."""
        self._logs.shut_down(self._node.broker_epoch, self._partitions.high_watermarks())


def _row(topic: TopicImage, index: int) -> Assignment:
    return Assignment(
        topic.leaders[index],
        topic.leader_epochs[index],
        topic.partition_epochs[index],
        topic.replicas(index),
        topic.isr(index),
        topic.exceptional(index).recovering,
    )
