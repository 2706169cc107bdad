"""A client that writes and commits offsets in one transaction after the other, and tells of each."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.chaos.transactional_producer import TransactionalProducer, must_abort

PARTITIONS: Final = 3
PAUSE_SECONDS: Final = 0.5


@dataclass(frozen=True)
class CommittingLife:
    bootstrap: str
    topic: str
    group: str

    def arguments(self) -> list[str]:
        return ["-m", "tests.chaos.committing_process", json.dumps(asdict(self))]


def tell(**row: Any) -> None:
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def main() -> None:
    life = CommittingLife(**json.loads(sys.argv[1]))
    writer = TransactionalProducer(
        life.bootstrap, life.group, {"transaction.timeout.ms": 60_000}, lambda text: tell(remark=text)
    )
    reader = Consumer({"bootstrap.servers": life.bootstrap, "group.id": life.group, "log_level": 0})
    writer.start()
    for number in count(1):
        writer.producer.begin_transaction()
        try:
            # To every leader: what goes to a dead one makes the client ask for metadata.
            for partition in range(PARTITIONS):
                writer.producer.produce(life.topic, b"value", partition=partition)
            writer.flush()
            writer.send_offsets([TopicPartition(life.topic, 0, number)], reader)
            writer.commit()
        except KafkaException as error:
            tell(remark=must_abort(error))
            writer.abort()
        else:
            tell(committed=number)
            time.sleep(PAUSE_SECONDS)  # a coordinator should die between two transactions


if __name__ == "__main__":
    main()
