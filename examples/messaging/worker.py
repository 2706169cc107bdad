"""One worker: `python worker.py BOOTSTRAP OUTBOX NAME`. Start as many as you like; they share the jobs.

At least once: an offset is stored when its job is done, or is safe in the next topic, and never before. A
worker that dies has done some jobs whose offsets were not committed yet; another one does them again, and the
outbox recognises them.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from jobs import DELAY_SECONDS, GROUP, NEXT, Job, arrived
from outbox import Outbox, Refused

ATTEMPT = {topic: number for number, topic in enumerate(DELAY_SECONDS, start=1)}


class Worker:
    def __init__(self, bootstrap: str, outbox: Outbox, name: str) -> None:
        self.name, self.outbox, self.stopping = name, outbox, False
        self.producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "on_delivery": arrived}
        )
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.offset.store": False,  # we say which jobs are finished
                "auto.commit.interval.ms": 1000,  # and the client commits them
                "session.timeout.ms": 6000,  # so long the jobs of a dead worker wait for another one
            }
        )
        #: Partitions of retry topics whose next job is not due yet, and when it is.
        self.paused: dict[tuple[str, int], float] = {}

    def run(self) -> None:
        self.consumer.subscribe(list(DELAY_SECONDS), on_revoke=self.resume_all)
        while not self.stopping:
            self.resume_what_is_due()
            message = self.consumer.poll(0.1)
            if message is None:
                continue
            if message.error():
                raise KafkaException(message.error())
            due = message.timestamp()[1] / 1000 + DELAY_SECONDS[message.topic()]
            if due > time.time():
                self.pause(message, due)
            else:
                self.work(message)
        self.consumer.close()  # commits what is finished, and hands its partitions over at once

    def work(self, message: Message) -> None:
        try:
            self.outbox.send(Job.decode(message.value()), ATTEMPT[message.topic()], self.name)
        except Refused as reason:
            self.pass_on(message, str(reason))
        self.consumer.store_offsets(message=message)

    def pass_on(self, message: Message, reason: str) -> None:
        """To the next attempt, or to the dead letters. It must be stored there before it is finished here."""
        headers = {"reason": reason, "worker": self.name}
        self.producer.produce(NEXT[message.topic()], message.value(), message.key(), headers=headers)
        if self.producer.flush(30):
            raise RuntimeError(
                f"{message.key()!r} could not be passed on: the brokers did not acknowledge it"
            )

    def pause(self, message: Message, due: float) -> None:
        """This partition waits, and the others go on."""
        partition = TopicPartition(message.topic(), message.partition(), message.offset())
        self.consumer.pause([partition])
        self.consumer.seek(partition)
        self.paused[message.topic(), message.partition()] = due

    def resume_what_is_due(self) -> None:
        for (topic, partition), due in list(self.paused.items()):
            if due <= time.time():
                del self.paused[topic, partition]
                self.consumer.resume([TopicPartition(topic, partition)])

    def resume_all(self, *_: object) -> None:
        """Before they go: a partition that comes back later must not be paused still."""
        self.consumer.resume([TopicPartition(*partition) for partition in self.paused])
        self.paused.clear()

    def stop(self, *_: object) -> None:
        self.stopping = True


if __name__ == "__main__":
    worker = Worker(sys.argv[1], Outbox(Path(sys.argv[2])), sys.argv[3])
    signal.signal(signal.SIGTERM, worker.stop)
    worker.run()
