"""Whatever is asked of the machine: the log alone gives the image, and the image keeps its invariants."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.controller.codec import decode_metadata_batch, encode_metadata_batch, encode_record, pack
from headrace.controller.delta import MetadataDelta
from headrace.controller.image import ConfigResource, MetadataImage, ResourceType, collision_key
from headrace.controller.operations import (
    ConfigChange,
    MorePartitions,
    NewTopic,
    RecordGroup,
    Result,
    TopicDeletion,
)
from headrace.controller.replay import Replayer
from headrace.core.ids import NO_BROKER, BrokerEpoch, BrokerId
from headrace.protocol.stored.partition_change_record import PartitionChangeRecord
from tests.unit.controller.cluster import Cluster, description, said

NAMES = ["a", "b", "x.y", "x_y", "x-y", "bad name", ".", "__cluster_metadata"]
names = st.sampled_from(NAMES)
broker_ids = st.integers(0, 5)
small_batches = st.sampled_from([120, 400, 100_000])


class ControllerHistory(RuleBasedStateMachine):
    """The machine applies records as they are decided; `batches` is what the disk would hold."""

    @initialize(seed=st.integers(0, 1000))
    def begin(self, seed: int) -> None:
        self.cluster = Cluster([], seed=seed)
        self.batches = [self._batch([encode_record(record) for record in self.cluster.log], 0)]
        self.end = len(self.cluster.log)
        self.epoch = 100
        self.producer_ids = 0

    @staticmethod
    def _batch(values: list[bytes], at: int) -> bytes:
        return encode_metadata_batch(values, base_offset=at, controller_epoch=0, timestamp_ms=0)

    def commit(self, result: Result[Any], max_bytes: int = 100_000) -> None:
        self.commit_groups(result.groups, max_bytes)

    def commit_groups(self, groups: list[RecordGroup], max_bytes: int = 100_000) -> None:
        for payload in pack(groups, max_bytes=max_bytes):
            self.batches.append(self._batch(payload.values, self.end))
            self.end += len(payload.values)
            self.cluster.machine.replay(payload.records, MetadataDelta())

    @rule(broker_id=broker_ids, rack=st.sampled_from([None, "r1", "r2"]), fenced=st.booleans())
    def register(self, broker_id: int, rack: str | None, fenced: bool) -> None:
        self.epoch += 1
        described = description(broker_id, rack)
        self.commit(self.cluster.machine.register_broker(described, BrokerEpoch(self.epoch), fenced=fenced))

    @rule(broker_id=broker_ids, fenced=st.booleans())
    def fence(self, broker_id: int, fenced: bool) -> None:
        broker = self.cluster.image.brokers.get(broker_id)
        if broker is not None:
            machine = self.cluster.machine
            if fenced:
                self.commit(machine.fence_brokers([broker_id]))
            else:
                self.commit(machine.unfence_broker(BrokerId(broker_id), broker.epoch))

    @rule(
        topics=st.lists(
            st.builds(
                NewTopic,
                names,
                st.integers(-1, 12),
                st.integers(-1, 4),
                assignments=st.just(()),
                configs=st.sampled_from([(), (("retention.ms", "5"),), (("none", "5"),)]),
            ),
            max_size=4,
        ),
        max_bytes=small_batches,
    )
    def create(self, topics: list[NewTopic], max_bytes: int) -> None:
        self.commit(self.cluster.machine.create_topics(topics), max_bytes)

    @rule(topics=st.lists(names.map(TopicDeletion), max_size=3))
    def delete(self, topics: list[TopicDeletion]) -> None:
        self.commit(self.cluster.machine.delete_topics(topics))

    @rule(
        topics=st.lists(st.builds(MorePartitions, names, st.integers(0, 15), st.none()), max_size=3),
        size=small_batches,
    )
    def grow(self, topics: list[MorePartitions], size: int) -> None:
        self.commit(self.cluster.machine.create_partitions(topics), size)

    @rule(
        name=names,
        changes=st.lists(
            st.builds(
                ConfigChange,
                st.integers(0, 3),
                st.sampled_from(["cleanup.policy", "retention.ms"]),
                st.sampled_from(["compact", "delete", "7", None]),
            ),
            max_size=2,
        ),
    )
    def configure(self, name: str, changes: list[ConfigChange]) -> None:
        resource = ConfigResource(ResourceType.TOPIC, name)
        self.commit(self.cluster.machine.incremental_alter_configs([(resource, changes)]))

    @rule(broker_id=broker_ids)
    def producer_block(self, broker_id: int) -> None:
        broker = self.cluster.image.brokers.get(broker_id)
        if broker is not None:
            result = self.cluster.machine.allocate_producer_ids(BrokerId(broker_id), broker.epoch)
            assert result.response.first >= self.producer_ids
            self.producer_ids = result.response.first + result.response.length
            self.commit(result)

    @rule(name=names, leader=st.booleans(), pick=st.integers(0, 20))
    def lose_the_leader(self, name: str, leader: bool, pick: int) -> None:
        """What a failure will do: the leader leaves, the rest of the ISR stays."""
        topic = self.cluster.image.topic(name)
        if topic is None:
            return
        partition = pick % len(topic)
        isr = [b for b in topic.isr(partition) if b != topic.leader(partition)]
        record = PartitionChangeRecord(
            partition_id=partition,
            topic_id=topic.topic_id,
            leader=isr[0] if isr and leader else NO_BROKER,
            isr=isr or list(topic.isr(partition)),
        )
        self.commit_groups([[record]])

    @rule(election=st.integers(0, 1))
    def elect(self, election: int) -> None:
        self.commit(self.cluster.machine.elect_leaders(election, None))

    @rule(broker_id=broker_ids)
    def renew(self, broker_id: int) -> None:
        self.commit(self.cluster.machine.renew_leaderships(BrokerId(broker_id)))

    @invariant()
    def the_log_alone_gives_the_image(self) -> None:
        if not hasattr(self, "cluster"):
            return
        image = MetadataImage()
        replayer = Replayer(image)
        for batch in self.batches:
            replayer.replay_all(decode_metadata_batch(batch), MetadataDelta())
        assert said(image) == said(self.cluster.image)

    @invariant()
    def the_image_is_sound(self) -> None:
        if hasattr(self, "cluster"):
            check_image(self.cluster.image)


def check_image(image: MetadataImage) -> None:
    """Derives again what the fields completion."""
    assert {topic.topic_id: topic for topic in image.topics_by_name.values()} == image.topics_by_id
    assert image.partition_count == sum(len(topic) for topic in image.topics_by_name.values())
    keys = [collision_key(name) for name in image.topics_by_name]
    assert len(set(keys)) == len(keys)
    for topic in image.topics_by_name.values():
        for partition in range(len(topic)):
            state = topic.state(partition)
            assert state.leader == NO_BROKER or state.leader in state.isr
            assert set(state.isr) <= set(state.replicas)
            assert len(set(state.replicas)) == len(state.replicas) > 0
            assert len(state.directories) == len(state.replicas)
            assert state.partition_epoch >= state.leader_epoch >= 0


TestControllerHistory = ControllerHistory.TestCase
TestControllerHistory.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
