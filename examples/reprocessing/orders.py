"""Orders and refunds of a shop, kept from the first one: the log is the storage, and views are made of it."""

from __future__ import annotations

import json
import random
import threading

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

ORDERS = "orders"
PARTITIONS = 3
SCHEMA = "product string, kind string, cents bigint"
#: Nothing is ever deleted. Segments of 1 MB only so that a small history has several.
SETTINGS = {"retention.ms": "-1", "retention.bytes": "-1", "segment.bytes": f"{1 << 20}"}
PRODUCTS = ("tea", "coffee", "cocoa", "mate", "chai")


def create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(ORDERS, PARTITIONS, config=SETTINGS)]).values():
        created.result(30)


def arrived(error: KafkaError | None, _: Message) -> None:
    """Called for each record. What is raised here comes out of `poll` or `flush`."""
    if error is not None:
        raise KafkaException(error)


class Shop:
    """Sends orders; one in ten is a refund. Its amount is positive, and that is what version 1 overlooks."""

    def __init__(self, bootstrap: str) -> None:
        self.sent = 0
        self._chance = random.Random(1)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "on_delivery": arrived,
                "linger.ms": 20,
            }
        )

    def send(self, count: int) -> None:
        for _ in range(count):
            product = self._chance.choice(PRODUCTS)
            kind = "refund" if self._chance.random() < 0.1 else "sale"
            order = {"product": product, "kind": kind, "cents": self._chance.randrange(100, 2_000)}
            self._producer.produce(ORDERS, json.dumps(order), f"order-{self.sent}")
            self._producer.poll(0)
            self.sent += 1
        if self._producer.flush(60):
            raise RuntimeError("not every order was acknowledged")

    def stay_open(self, closed: threading.Event) -> None:
        """Some hundred orders a second, until the shop is closed."""
        while not closed.wait(0.1):
            self.send(30)
