"""Both ends of a mirror, filled and compared by a client that is not the mirror's."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from confluent_kafka import Producer

from tests.spark.sink.reading import Seen, read

ORIGIN = "headrace.mirrored.from"


class Filler:
    """Records of all kinds, from a seed: keys and none, tombstones, headers, times; in transactions that
    commit or abort, and outside of them."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, seed: int) -> None:
        self._bootstrap, self._topic, self._partitions = bootstrap, topic, partitions
        self._random = random.Random(seed)
        self._number = 0
        self._rounds = 0

    def fill(self, records: int) -> None:
        """About so many, some of which are aborted."""
        left = records
        while left > 0:
            size = min(left, self._random.randint(1, max(2, records // 10)))
            self._rounds += 1
            kind = self._random.choice(("plain", "committed", "committed", "aborted"))
            if kind == "plain":
                producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 1})
                self._produce(producer, size)
                producer.flush(60)
            else:
                producer = Producer(
                    {"bootstrap.servers": self._bootstrap, "transactional.id": f"{self._topic}-{kind}"}
                )
                producer.init_transactions(60)
                producer.begin_transaction()
                self._produce(producer, size)
                producer.flush(60)
                if kind == "committed":
                    producer.commit_transaction(60)
                else:
                    producer.abort_transaction(60)
            left -= size

    def _produce(self, producer: Producer, count: int) -> None:
        dice = self._random
        for _ in range(count):
            self._number += 1
            headers: list[tuple[str, str | bytes | None]] = [
                (f"h{n}", dice.choice((None, b"", b"value"))) for n in range(dice.choice((0, 0, 1, 3)))
            ]
            key = None if dice.random() < 0.2 else b"key-%d" % dice.randrange(50)
            tombstone = key is not None and dice.random() < 0.1
            producer.produce(
                self._topic,
                key=key,
                value=None if tombstone else b"value %d" % self._number,
                headers=headers,
                partition=dice.randrange(self._partitions),
                timestamp=1_700_000_000_000 + self._number,
            )


class Pair(NamedTuple):
    source: int
    target: int


def compare(source: str, target: str, topic: str, mirrored: str) -> dict[int, list[Pair]]:
    """Fails unless each visible record of the source is on the target once, in order, as it was. Where each
    one is, by partition."""
    there, here = _by_partition(read(target, mirrored)), _by_partition(read(source, topic))
    assert there.keys() <= here.keys()
    pairs = {}
    for partition, records in here.items():
        copies = there.get(partition, [])
        found, expected = [_plain(each) for each in copies], [_plain(each) for each in records]
        assert found == expected, f"partition {partition}"
        assert all(dict(each.headers).get(ORIGIN) for each in copies)
        pairs[partition] = [Pair(a.offset, b.offset) for a, b in zip(records, copies, strict=True)]
    return pairs


def _by_partition(records: list[Seen]) -> dict[int, list[Seen]]:
    found: dict[int, list[Seen]] = {}
    for each in records:
        found.setdefault(each.partition, []).append(each)
    return found


def _plain(record: Seen) -> tuple[object, ...]:
    headers = tuple(each for each in record.headers if each[0] != ORIGIN)
    return record.key, record.value, headers, record.timestamp


def exact(pairs: list[Pair], offset: int) -> int:
    """What a reader of the source at `offset` reads next, on the target; behind the last there is the end."""
    at = bisect_left(pairs, offset, key=lambda pair: pair.source)
    return pairs[at].target if at < len(pairs) else pairs[-1].target + 1 if pairs else 0


def offsets_of(pairs: dict[int, list[Pair]]) -> Iterator[tuple[int, int]]:
    """Every offset up to behind the last record, gaps too."""
    for partition, found in pairs.items():
        for offset in range(found[-1].source + 2 if found else 1):
            yield partition, offset
