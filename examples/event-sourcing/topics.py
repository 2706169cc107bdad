"""Three topics. The key is always the account, so that all that concerns one account is in order."""

from __future__ import annotations

from collections.abc import Iterator

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

COMMANDS, EVENTS, ANSWERS = "account-commands", "account-events", "account-answers"
PARTITIONS = 3
#: Events are the truth and stay for ever; commands and answers have done their work after a day.
SETTINGS = {
    COMMANDS: {"retention.ms": "86400000"},
    EVENTS: {"retention.ms": "-1", "retention.bytes": "-1"},
    ANSWERS: {"retention.ms": "86400000"},
}


def create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(name, num_partitions=PARTITIONS, config=config) for name, config in SETTINGS.items()]
    for created in admin.create_topics(topics).values():
        created.result(30)


def partitions_of(topic: str, offset: int = OFFSET_BEGINNING) -> list[TopicPartition]:
    return [TopicPartition(topic, partition, offset) for partition in range(PARTITIONS)]


def reader(bootstrap: str, starts: list[TopicPartition]) -> Consumer:
    """Reads what is committed, belongs to no group, and says where a partition ends."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "readers",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
        }
    )
    consumer.assign(starts)
    return consumer


def read(bootstrap: str, topic: str) -> Iterator[Message]:
    """Every committed record, from the first offset of each partition to where it ends now."""
    consumer = reader(bootstrap, partitions_of(topic))
    unread = set(range(PARTITIONS))
    while unread:
        message = consumer.poll(30)
        if message is None:
            raise TimeoutError(f"nothing came from {topic} for 30 seconds")
        if not message.error():
            yield message
        elif message.error().code() == KafkaError._PARTITION_EOF:
            unread.discard(message.partition())
        else:
            raise KafkaException(message.error())
    consumer.close()
