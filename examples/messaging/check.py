"""Was every job done once? Read from the log and from the outbox, by nobody who took part in the work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition
from jobs import ATTEMPTS, DEAD_LETTERS, JOBS, Job
from outbox import Outbox


@dataclass(frozen=True)
class Verdict:
    jobs: int
    sent: int
    dead: int
    lost: set[str]
    #: Sent and given up as well, or given up although an attempt would have succeeded.
    wrong: set[str]

    @property
    def holds(self) -> bool:
        return not self.lost and not self.wrong and self.jobs == self.sent + self.dead


def check(bootstrap: str, outbox: Outbox) -> Verdict:
    jobs = {job.id: job for job in map(decoded, read(bootstrap, JOBS))}
    dead = {job.id for job in map(decoded, read(bootstrap, DEAD_LETTERS))}  # a set: at least once
    sent = outbox.sent()
    hopeless = {job.id for job in jobs.values() if job.refusals >= ATTEMPTS}
    return Verdict(
        jobs=len(jobs),
        sent=len(sent),
        dead=len(dead),
        lost=jobs.keys() - dead - set(sent),
        wrong=(dead & set(sent)) | (dead ^ hopeless) | (set(sent) - jobs.keys()),
    )


def decoded(message: Message) -> Job:
    return Job.decode(message.value())


def read(bootstrap: str, topic: str) -> Iterator[Message]:
    """Every record of the topic, from the first offset of each partition to where it ends now."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "check", "enable.partition.eof": True})
    unread = set(consumer.list_topics(topic, 10).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in unread])
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
