"""Is each version what it should be? An ordinary consumer reads the whole log and adds it up both ways."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition
from orders import ORDERS, PARTITIONS
from views import Views

#: By product: how many orders, and the revenue.
Revenue = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Verdict:
    sent: int
    in_log: int
    first_offsets: list[int]
    #: By version: what the log says, and what the table has.
    expected: dict[str, Revenue]
    found: dict[str, Revenue]

    @property
    def holds(self) -> bool:
        whole = self.sent == self.in_log and self.first_offsets == [0] * PARTITIONS
        return whole and self.expected == self.found and self.expected["v1"] != self.expected["v2"]


def check(views: Views, sent: int) -> Verdict:
    expected: dict[str, Revenue] = {"v1": {}, "v2": {}}
    firsts: dict[int, int] = {}
    in_log = 0
    for message in read(views.bootstrap):
        order = json.loads(message.value())
        firsts.setdefault(message.partition(), message.offset())
        in_log += 1
        mended = -order["cents"] if order["kind"] == "refund" else order["cents"]
        for version, cents in (("v1", order["cents"]), ("v2", mended)):
            orders, revenue = expected[version].get(order["product"], (0, 0))
            expected[version][order["product"]] = orders + 1, revenue + cents
    found = {
        version: {row["product"]: (row["orders"], row["cents"]) for row in views.read(version).collect()}
        for version in expected
    }
    return Verdict(sent, in_log, sorted(firsts.values()), expected, found)


def read(bootstrap: str) -> Iterator[Message]:
    """Every record, from the first offset of each partition to where it ends now."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "check", "enable.partition.eof": True})
    unread = set(range(PARTITIONS))
    consumer.assign([TopicPartition(ORDERS, partition, OFFSET_BEGINNING) for partition in unread])
    while unread:
        message = consumer.poll(30)
        if message is None:
            raise TimeoutError(f"nothing came from {ORDERS} for 30 seconds")
        if not message.error():
            yield message
        elif message.error().code() == KafkaError._PARTITION_EOF:
            unread.discard(message.partition())
        else:
            raise KafkaException(message.error())
    consumer.close()
