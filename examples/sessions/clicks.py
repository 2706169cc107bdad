"""Clicks of visitors: the visitor is the key of the record, the time of the click is its timestamp."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

CLICKS, VISITS = "clicks", "visits"
#: A visit is over when nothing was clicked for so long.
GAP_MINUTES = 5
#: A click may arrive so much later than younger ones of other visitors.
LATE_MINUTES = 2
#: His click, half an hour later, says that all others have gone: without it no last visit would ever be over.
LAST_VISITOR = "the-last-one"
_MINUTE_MS = 60_000


@dataclass(frozen=True)
class Click:
    visitor: str
    at_ms: int
    cents: int


def day(visitors: int, minutes: int, begin_ms: int) -> list[Click]:
    """In the order in which they arrive: not quite that of their times."""
    chance, found = random.Random(1), []
    for n in range(visitors):
        at_ms = begin_ms + chance.randrange(10 * _MINUTE_MS)
        while at_ms < begin_ms + minutes * _MINUTE_MS:
            found.append(Click(f"visitor-{n:03}", at_ms, chance.choice([0, 0, 0, 250, 990])))
            stays = chance.random() < 0.85
            at_ms += chance.randrange(100, 3 * _MINUTE_MS) if stays else chance.randrange(6, 25) * _MINUTE_MS
    return sorted(found, key=lambda click: click.at_ms + chance.randrange(_MINUTE_MS))


def create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(CLICKS, 3), NewTopic(VISITS, 3)]).values():
        created.result(30)


def arrived(error: KafkaError | None, _: Message) -> None:
    """Called for each record. What is raised here comes out of `poll` or `flush`."""
    if error is not None:
        raise KafkaException(error)


def send(bootstrap: str, clicks: list[Click], seconds: float) -> None:
    """Spread over so many seconds."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "on_delivery": arrived})
    for number, click in enumerate(clicks, start=1):
        producer.produce(CLICKS, json.dumps({"cents": click.cents}), click.visitor, timestamp=click.at_ms)
        producer.poll(0)
        if number % 50 == 0:
            time.sleep(seconds * 50 / len(clicks))
    if producer.flush(60):
        raise RuntimeError("not every click was acknowledged")


def last_click(clicks: list[Click]) -> Click:
    return Click(LAST_VISITOR, max(click.at_ms for click in clicks) + 30 * _MINUTE_MS, 0)
