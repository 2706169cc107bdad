"""Metadata, DescribeTopicPartitions, CreateTopics, DeleteTopics, CreatePartitions."""

from __future__ import annotations

from uuid import UUID

from headrace.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.protocol.messages.create_topics_request import (
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
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tests.oracle.authorization.person import Person
from tests.oracle.authorization.world import ABSENT, INTERNAL, NOBODYS_ID, TOPICS, World
from tests.oracle.conversation import versions

NAMED = (*TOPICS, *ABSENT, *INTERNAL, "__cluster_metadata", "not a name")
FIRST_WITHOUT_CREATION = 4
TOPIC_AUTHORIZATION_FAILED = 29


def ask(person: Person, world: World) -> None:
    _metadata(person, world)
    _all_topics(person)
    _auto_creation(person)
    _describe(person)
    _create(person)
    _twice(person)
    _delete(person)
    _grow(person)


def _metadata(person: Person, world: World) -> None:
    for version in versions(MetadataRequest, FIRST_WITHOUT_CREATION):
        asked = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in NAMED],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=version >= 8,
            include_cluster_authorized_operations=8 <= version <= 10,
        )
        person.ask("metadata by name", asked, version)
    for version in range(FIRST_WITHOUT_CREATION):
        existing = [MetadataRequestTopic(name=name) for name in TOPICS]
        person.ask("metadata of what exists", MetadataRequest(topics=existing), version)
    for version in versions(MetadataRequest, 10):
        ids = [*world.topics.values(), NOBODYS_ID]
        asked = MetadataRequest(
            topics=[MetadataRequestTopic(name=None, topic_id=each) for each in ids],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )
        person.ask("metadata by id", asked, version)


def _all_topics(person: Person) -> None:
    """Others add and remove topics meanwhile, the same ones on both brokers."""
    person.admin.learn_ids()
    for version in (0, 1, 8, 12):
        asked = MetadataRequest(topics=[] if version == 0 else None)
        person.ask("metadata of all", asked, version)
    person.ask("metadata of none", MetadataRequest(topics=[]), 12)


def _auto_creation(person: Person) -> None:
    for version in (3, 4, 9, 12):
        names = [person.fresh(prefix) for prefix in ("pre-auto-", "shut-auto-")]
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in (*names, "lit")])
        answer = person.ask("metadata that creates", asked, version)
        denied = {row.name for row in answer.topics if row.error_code == TOPIC_AUTHORIZATION_FAILED}
        for name in names:
            if name not in denied:
                person.admin.wait_for(name, 1)
        exist = [person.admin.metadata(name).error_code == 0 for name in names]
        person.note(f"created by metadata v{version}", pre=exist[0], shut=exist[1])


def _describe(person: Person) -> None:
    def described(step: str, names: tuple[str, ...], cursor: Cursor | None = None, limit: int = 2000) -> None:
        topics = [TopicRequest(name=name) for name in names]
        asked = DescribeTopicPartitionsRequest(topics=topics, cursor=cursor, response_partition_limit=limit)
        person.ask(step, asked, 0)

    described("partitions by name", NAMED)
    described("partitions from a cursor on", NAMED, Cursor(topic_name="pre-b", partition_index=0))
    described("partitions from a denied cursor on", NAMED, Cursor(topic_name="shut", partition_index=0))
    described("partitions from an absent cursor on", NAMED, Cursor(topic_name="m", partition_index=3))
    described("two partitions by name", NAMED, limit=2)
    described("one partition from a cursor on", NAMED, Cursor(topic_name="pre-b"), limit=1)
    person.admin.learn_ids()
    described("partitions of all", ())
    described("two partitions of all", (), limit=2)


def _create(person: Person) -> None:
    for version in versions(CreateTopicsRequest):
        for validate_only in (True, False):
            names = [person.fresh(prefix) for prefix in ("pre-made-", "shut-made-")]
            topics = [
                CreatableTopic(
                    name=name,
                    num_partitions=1,
                    replication_factor=1,
                    configs=[CreatableTopicConfig(name="retention.ms", value="86400000")],
                )
                for name in (*names, "lit", "shut", "__consumer_offsets", "not a name")
            ]
            step = "validate creation" if validate_only else "create"
            asked = CreateTopicsRequest(topics=topics, validate_only=validate_only, timeout_ms=10_000)
            person.ask(step, asked, version)


def _twice(person: Person) -> None:
    """Something that is mentioned twice, by those who may and those who may not."""
    names = [person.fresh(prefix) for prefix in ("pre-twice-", "shut-twice-")]
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in (*names, *names)]
    topics.append(CreatableTopic(name="__cluster_metadata", num_partitions=1, replication_factor=1))
    person.ask("create twice", CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)
    made = _made(person)
    grown = [CreatePartitionsTopic(name=name, count=2, assignments=None) for name in (*made, *made)]
    person.ask("more partitions twice", CreatePartitionsRequest(topics=grown, timeout_ms=10_000), 3)
    by_both = [DeleteTopicState(name=name, topic_id=each) for name, each in made.items()]
    person.ask("delete by name and id", DeleteTopicsRequest(topics=by_both, timeout_ms=10_000), 6)
    neither = [DeleteTopicState(name=None)]
    person.ask("delete by neither", DeleteTopicsRequest(topics=neither, timeout_ms=10_000), 6)


def _made(person: Person) -> dict[str, UUID]:
    """Topics to be deleted or changed, ready to be led."""
    names = [person.fresh(prefix) for prefix in ("pre-gone-", "shut-gone-")]
    return {name: person.admin.topic(name) for name in names}


def _delete(person: Person) -> None:
    for version in (1, 5):
        names = [*_made(person), *ABSENT]
        person.ask("delete by name", DeleteTopicsRequest(topic_names=names, timeout_ms=10_000), version)
    by_name = [DeleteTopicState(name=name) for name in (*_made(person), *ABSENT, "not a name")]
    person.ask("delete by name", DeleteTopicsRequest(topics=by_name, timeout_ms=10_000), 6)
    ids = [*_made(person).values(), NOBODYS_ID]
    by_id = [DeleteTopicState(name=None, topic_id=each) for each in ids]
    person.ask("delete by id", DeleteTopicsRequest(topics=by_id, timeout_ms=10_000), 6)


def _grow(person: Person) -> None:
    for version in versions(CreatePartitionsRequest):
        names = ("lit", "pre-a", "pre-shut", "shut", *ABSENT)
        topics = [CreatePartitionsTopic(name=name, count=3, assignments=None) for name in names]
        asked = CreatePartitionsRequest(topics=topics, timeout_ms=10_000, validate_only=True)
        person.ask("validate more partitions", asked, version)
    topics = [CreatePartitionsTopic(name=name, count=2, assignments=None) for name in _made(person)]
    person.ask("more partitions", CreatePartitionsRequest(topics=topics, timeout_ms=10_000), 3)
