"""CreateTopics, DeleteTopics, CreatePartitions, Metadata, DescribeTopicPartitions, ElectLeaders."""

from __future__ import annotations

from uuid import UUID

from headrace.core.ids import NO_TOPIC_ID
from headrace.protocol.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from headrace.protocol.messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from headrace.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tests.broker_process import BROKER_ID
from tests.oracle.conversation import Conversation, versions

STRANGER = UUID(int=99)


def run(talk: Conversation) -> None:
    _create(talk)
    _partitions(talk)
    _metadata(talk)
    _describe(talk)
    _elect(talk)
    _delete(talk)


def _new(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    assignments: dict[int, list[int]] | None = None,
    configs: dict[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (assignments or {}).items()
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )


def _create(talk: Conversation) -> None:
    def ask(step: str, *topics: CreatableTopic, version: int = 7, validate_only: bool = False) -> None:
        request = CreateTopicsRequest(topics=list(topics), timeout_ms=5000, validate_only=validate_only)
        body = talk.ask(f"create {step}", request, version)
        for topic in body.topics if body is not None else ():
            if topic.topic_id != UUID(int=0):
                talk.symbols.define(topic.topic_id, f"id of {topic.name}")
                if f"<id of {topic.name}>" not in talk.answers[f"create {step} v{version}"].values():
                    # The id became known only by this answer.
                    flat = talk.answers[f"create {step} v{version}"]
                    for path, value in flat.items():
                        if value == str(topic.topic_id):
                            flat[path] = f"<id of {topic.name}>"

    for version in versions(CreateTopicsRequest):
        ask("a topic", _new(f"created-{version}", 2, configs={"retention.ms": "100000"}), version=version)
        ask("the same again", _new(f"created-{version}"), version=version)
        ask("only to see", _new(f"seen-{version}", 3), version=version, validate_only=True)
    ask("with the broker's defaults", _new("created-default", -1, -1))
    for name in ("", ".", "..", "a b", "a/b", "ä", "x" * 249, "x" * 250, "_fine.name-1"):
        ask(f"named {name[:12]!r} of {len(name)}", _new(name))
    for count in (0, -2):
        ask(f"{count} partitions", _new("bad-count", count))
    for factor in (0, 2, 3, -2):
        ask(f"factor {factor}", _new("bad-factor", 1, factor))
    here = [BROKER_ID]
    ask("by assignment", _new("assigned", -1, -1, {0: here, 1: here}))
    ask("by assignment and count", _new("assigned-counted", 2, -1, {0: here, 1: here}))
    ask("assigned to nobody", _new("bad-assignment", -1, -1, {0: []}))
    ask("assigned to a stranger", _new("bad-assignment", -1, -1, {0: [55]}))
    ask("assigned twice to one", _new("bad-assignment", -1, -1, {0: here * 2}))
    ask("assigned with a hole", _new("bad-assignment", -1, -1, {0: here, 2: here}))
    ask("assigned not from zero", _new("bad-assignment", -1, -1, {1: here}))
    ask(
        "with good configs",
        _new("configured", configs={"cleanup.policy": "compact", "segment.bytes": "1048576"}),
    )
    for name, value in (
        ("no.such.config", "1"),
        ("retention.ms", "soon"),
        ("retention.ms", None),
        ("retention.ms", "-2"),
        ("segment.bytes", "1"),
        ("cleanup.policy", "shred"),
        ("cleanup.policy", "compact,delete"),
        ("cleanup.policy", ""),
        ("compression.type", "rar"),
        ("min.insync.replicas", "0"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("max.message.bytes", "-1"),
        ("message.timestamp.type", "Yesterday"),
        ("preallocate", "perhaps"),
        ("message.format.version", "2.8"),
    ):
        ask(f"with {name}={value}", _new("bad-config", configs={name: value}), validate_only=True)
    ask("two at once", _new("pair-1"), _new("pair-2", 0))
    ask("one name twice", _new("doubled"), _new("doubled"))
    ask("like another but for a dot", _new("dotted.name"))
    ask("like another but for an underscore", _new("dotted_name"))
    ask("nothing")


def _partitions(talk: Conversation) -> None:
    def ask(
        step: str,
        name: str,
        count: int,
        assignments: list[list[int]] | None = None,
        version: int = 3,
        validate_only: bool = False,
    ) -> None:
        placed = (
            None
            if assignments is None
            else [CreatePartitionsAssignment(broker_ids=one) for one in assignments]
        )
        topic = CreatePartitionsTopic(name=name, count=count, assignments=placed)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=5000, validate_only=validate_only)
        talk.ask(f"partitions {step}", request, version)

    talk.topic("grown", 2)
    for version in versions(CreatePartitionsRequest):
        ask(f"up to {3 + version}", "grown", 3 + version, version=version)
    ask("only to see", "grown", 20, validate_only=True)
    for count in (6, 1, 0, -1):
        ask(f"down to {count}", "grown", count)
    ask("of a stranger", "nowhere", 3)
    ask("assigned", "grown", 7, [[BROKER_ID]])
    ask("assigned too few", "grown", 9, [[BROKER_ID]])
    ask("assigned too many", "grown", 8, [[BROKER_ID], [BROKER_ID]])
    ask("assigned to a stranger", "grown", 8, [[55]])
    ask("assigned to nobody", "grown", 8, [[]])
    ask("assigned twice to one", "grown", 8, [[BROKER_ID, BROKER_ID]])
    doubled = [CreatePartitionsTopic(name="grown", count=count, assignments=None) for count in (9, 10)]
    talk.ask("partitions of one topic twice", CreatePartitionsRequest(topics=doubled, timeout_ms=5000), 3)
    talk.wait_for("grown", 7)


def _metadata(talk: Conversation) -> None:
    known = talk.topic("described", 2)
    for version in versions(MetadataRequest):
        asked = [MetadataRequestTopic(name="described")]
        talk.ask("metadata of one", MetadataRequest(topics=asked), version)
        if version >= 1:
            talk.ask("metadata of none", MetadataRequest(topics=[]), version)
        if version >= 4:
            asked = [MetadataRequestTopic(name="metadata-nowhere"), MetadataRequestTopic(name="described")]
            request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
            talk.ask("metadata of an unknown one", request, version)
            for name in ("not a name", "", "x" * 250):
                request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
                talk.ask(f"metadata of {name[:12]!r}", request, version)
        if version >= 8:
            request = MetadataRequest(
                topics=[MetadataRequestTopic(name="described")], include_topic_authorized_operations=True
            )
            talk.ask("metadata with operations", request, version)
        if version in (10, 11):
            for topic_id in (known, NO_TOPIC_ID):
                asked = [MetadataRequestTopic(topic_id=topic_id, name=None), MetadataRequestTopic(name="x")]
                request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
                talk.ask(f"metadata without a name {topic_id == known}", request, version)
    by_id = versions(MetadataRequest)[-1]
    for step, topic_id in (("known", known), ("unknown", STRANGER)):
        request = MetadataRequest(
            topics=[MetadataRequestTopic(topic_id=topic_id, name=None)], allow_auto_topic_creation=False
        )
        talk.ask(f"metadata by {step} id", request, by_id)
    both = MetadataRequest(topics=[MetadataRequestTopic(topic_id=known, name="described")])
    talk.ask("metadata by name and id", both, by_id)
    for version in (0, 3, 4, by_id):
        name = f"metadata-made-{version}"
        talk.ask("metadata that creates", MetadataRequest(topics=[MetadataRequestTopic(name=name)]), version)
        talk.wait_for(name, 1)


def _describe(talk: Conversation) -> None:
    talk.topic("paged-a", 2)
    talk.topic("paged-b", 3)

    def ask(step: str, names: list[str], limit: int, cursor: Cursor | None = None) -> None:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names], response_partition_limit=limit, cursor=cursor
        )
        talk.ask(f"describe partitions {step}", request, 0)

    ask("of two topics", ["paged-b", "paged-a"], 100)
    ask("four at most", ["paged-a", "paged-b"], 4)
    ask("from a cursor", ["paged-a", "paged-b"], 100, Cursor(topic_name="paged-b", partition_index=1))
    ask("from a cursor past the end", ["paged-a"], 100, Cursor(topic_name="paged-a", partition_index=9))
    for index in (-1, -100):
        ask(f"from cursor {index}", ["paged-a"], 100, Cursor(topic_name="paged-a", partition_index=index))
    ask("of an unknown topic", ["nowhere", "paged-a"], 100)
    ask("with a bad name", ["not a name"], 100)
    ask("none at most", ["paged-a"], 0)


def _elect(talk: Conversation) -> None:
    for version in versions(ElectLeadersRequest):
        for kind in (0, 1) if version >= 1 else (0,):
            asked = [
                TopicPartitions(topic="paged-a", partitions=[0, 9]),
                TopicPartitions(topic="nowhere", partitions=[0]),
            ]
            request = ElectLeadersRequest(election_type=kind, topic_partitions=asked, timeout_ms=5000)
            talk.ask(f"elect kind {kind}", request, version)
    request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=5000)
    talk.ask("elect all", request, 2)


def _delete(talk: Conversation) -> None:
    for version in versions(DeleteTopicsRequest):
        name = f"deleted-{version}"
        talk.topic(name)
        if version < 6:
            request = DeleteTopicsRequest(topic_names=[name, "nowhere", "not a name"], timeout_ms=5000)
        else:
            asked = [DeleteTopicState(name=one) for one in (name, "nowhere", "not a name")]
            request = DeleteTopicsRequest(topics=asked, timeout_ms=5000)
        talk.ask("delete by name", request, version)
        talk.wait_until(lambda name=name: talk.metadata(name).error_code == 3)  # type: ignore[misc]  # bound now

    def by_state(step: str, *states: DeleteTopicState) -> None:
        talk.ask(f"delete {step}", DeleteTopicsRequest(topics=list(states), timeout_ms=5000), 6)

    by_state("by id", DeleteTopicState(name=None, topic_id=talk.topic("deleted-by-id")))
    by_state("by unknown id", DeleteTopicState(name=None, topic_id=STRANGER))
    by_state("by zero id", DeleteTopicState(name=None))
    both = talk.topic("deleted-by-both")
    by_state("by name and id", DeleteTopicState(name="deleted-by-both", topic_id=both))
    by_state(
        "one name twice", DeleteTopicState(name="deleted-by-both"), DeleteTopicState(name="deleted-by-both")
    )
    by_state("nothing")
