"""While brokers are killed and stopped, each number on Now, Brokers and Partitions is one that another client
has found at that time, or the page says that it is not known, whose it is, and since when."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.cluster_process import HeadraceCluster, eventually
from tests.integration.test_console import Console

pytestmark = pytest.mark.timeout(600)

TOPIC = "truth"
PARTITIONS = 6
REPLICAS = [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 2
BESIDE_MS = 15_000
"""So far a look may be from what the other client saw, on a machine that does other things."""
SECONDS = 120.0


class Seen(NamedTuple):
    """By the other client, at some time between these two."""

    begin_ms: int
    end_ms: int
    leaders: tuple[int, ...]
    in_sync: tuple[frozenset[int], ...]
    alive: frozenset[int]
    led: Counter[int]
    """Partitions of all topics, by broker."""
    held: Counter[int]
    ends: tuple[int | None, ...]


class Read(NamedTuple):
    """Three pages, as JSON."""

    now: Any
    brokers: Any
    topic: Any


class Witness:
    """Looks at the cluster with librdkafka, and writes to it, all the time."""

    def __init__(self, bootstrap: str) -> None:
        self.seen: list[Seen] = []
        self._over = threading.Event()
        self._bootstrap = bootstrap
        self._threads = [threading.Thread(target=each) for each in (self._look, self._write)]

    def __enter__(self) -> Witness:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _look(self) -> None:
        addresses = cycle(self._bootstrap.split(","))
        admin = AdminClient({"bootstrap.servers": next(addresses), "socket.timeout.ms": 4000})
        reader = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "witness"})
        while not self._over.wait(0.2):
            begin_ms = now_ms()
            try:
                alive = admin.describe_cluster(request_timeout=4).result(5).nodes
                topics = admin.list_topics(timeout=4).topics
                found = topics[TOPIC].partitions
            except (KafkaException, TimeoutError):
                # librdkafka stays with a broker that is stopped: its connection is still there.
                admin = AdminClient({"bootstrap.servers": next(addresses), "socket.timeout.ms": 4000})
                continue
            ends: list[int | None] = []
            for number in range(PARTITIONS):
                try:
                    ends.append(reader.get_watermark_offsets(TopicPartition(TOPIC, number), 1.0)[1])
                except KafkaException:
                    ends.append(None)
            self.seen.append(
                Seen(
                    begin_ms,
                    now_ms(),
                    tuple(found[number].leader for number in range(PARTITIONS)),
                    tuple(frozenset(found[number].isrs) for number in range(PARTITIONS)),
                    frozenset(node.id for node in alive),
                    Counter(each.leader for topic in topics.values() for each in topic.partitions.values()),
                    Counter(
                        broker
                        for topic in topics.values()
                        for each in topic.partitions.values()
                        for broker in each.replicas
                    ),
                    tuple(ends),
                )
            )
        reader.close()

    def _write(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "acks": "all"})
        number = 0
        while not self._over.wait(0.05):
            number += 1
            producer.produce(TOPIC, b"%d" % number, partition=number % PARTITIONS)
            producer.poll(0)
        producer.flush(SECONDS)


class Pages:
    """Are read all the time, and kept."""

    def __init__(self, console: Console) -> None:
        self.read: list[Read] = []
        self._console = console
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow)

    def __enter__(self) -> Pages:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._over.wait(0.3):
            found = Read(*map(self._console.json, ("/", "/brokers", f"/topics/{TOPIC}")))
            if found.now["look"] == found.brokers["look"] == found.topic["look"]:
                self.read.append(found)

    @property
    def last(self) -> Read:
        return self.read[-1]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def judge(read: Read, seen: Sequence[Seen]) -> None:
    at_ms = read.topic["as_of_ms"]
    beside = [each for each in seen if abs_ms(each, at_ms) <= BESIDE_MS]
    if not beside:
        return  # the other client could not look either
    rows = read.topic["rows"]
    assert [row["partition"] for row in rows] == list(range(PARTITIONS))
    for row in rows:
        number = row["partition"]
        assert row["replicas"] == REPLICAS[number]
        assert row["leader"] in {each.leaders[number] for each in beside}, (row, beside)
        assert frozenset(row["in_sync"]) in {each.in_sync[number] for each in beside}, (row, beside)
        judge_end(row["end"], number, at_ms, seen)
        well = row["leader"] >= 0 and len(row["in_sync"]) == len(row["replicas"])
        assert (row["condition"] == "well") == well, row
    known = [row["end"] - row["first"] for row in rows if row["end"] is not None]
    whole = sum(known) if len(known) == PARTITIONS else None
    assert read.topic["records"] == read.now["totals"]["records"] == whole, "a sum with an unknown is unknown"
    assert read.now["totals"]["partitions"] == PARTITIONS
    alive = {row["broker_id"] for row in read.brokers["rows"] if row["state"] == "alive"}
    assert alive in [each.alive for each in beside], (alive, beside)
    assert read.now["brokers_alive"] == len(alive)
    for row in read.brokers["rows"]:
        broker = row["broker_id"]
        assert row["leaders"] in {each.led[broker] for each in beside}, (row, beside)
        assert row["replicas"] in {each.held[broker] for each in beside}, (row, beside)
        if broker not in alive:
            assert row["rate_in"] in (None, 0), row
    silent = {row["broker_id"] for row in read.brokers["rows"] if row["silent"]}
    for row in rows:
        if row["end"] is None:
            assert row["leader"] < 0 or row["leader"] in silent, "who does not tell it is named"


def judge_end(end: int | None, number: int, at_ms: int, seen: Sequence[Seen]) -> None:
    if end is None:
        return
    before = [each.ends[number] for each in seen if each.end_ms < at_ms - BESIDE_MS]
    after = [each.ends[number] for each in seen if each.begin_ms > at_ms + BESIDE_MS]
    least = max((each for each in before if each is not None), default=0)
    assert least <= end, (number, least, end)
    later = [each for each in after if each is not None]
    if later:
        assert end <= max(later), (number, end, max(later))


def abs_ms(seen: Seen, at_ms: int) -> int:
    return max(0, seen.begin_ms - at_ms, at_ms - seen.end_ms)


def agree(read: Read, seen: Seen) -> bool:
    """Of what stays as it is while nothing happens to a broker."""
    rows = read.topic["rows"]
    alive = {row["broker_id"] for row in read.brokers["rows"] if row["state"] == "alive"}
    return (
        tuple(row["leader"] for row in rows) == seen.leaders
        and tuple(frozenset(row["in_sync"]) for row in rows) == seen.in_sync
        and alive == seen.alive
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadraceCluster]:
    properties = {"min.insync.replicas": "2", "auto.leader.rebalance.enable": "false"}
    with HeadraceCluster(tmp_path_factory.mktemp("truth"), 3, properties) as running:
        running.create_topic(TOPIC, REPLICAS)
        yield running


@pytest.fixture
def console(cluster: HeadraceCluster) -> Iterator[Console]:
    console = Console(cluster.bootstrap)
    console.until(f"/topics/{TOPIC}", lambda found: found["records"] is not None)
    yield console
    console.stop()


def settled(pages: Pages, witness: Witness, alive: set[int]) -> None:
    deadline = time.monotonic() + SECONDS
    while not (
        pages.read
        and witness.seen
        and witness.seen[-1].alive == alive
        and agree(pages.last, witness.seen[-1])
    ):
        assert time.monotonic() < deadline, (now_ms(), pages.read[-1:], witness.seen[-1:])
        time.sleep(0.1)


def test_what_pages_say_while_a_broker_is_killed_and_another_one_stopped(
    cluster: HeadraceCluster, console: Console
) -> None:
    with Witness(cluster.bootstrap) as witness, Pages(console) as pages:
        settled(pages, witness, {1, 2, 3})
        cluster.kill(2)
        settled(pages, witness, {1, 3})
        eventually(lambda: pages.last.topic["records"] is not None, SECONDS, "all leaders tell their ends")
        text = console.get("/")[1]
        assert "All is well" not in text
        cluster.restart(2)
        settled(pages, witness, {1, 2, 3})
        cluster.wait_in_sync(TOPIC)
        assert 3 in {each.leader for each in cluster.view(TOPIC).partitions.values()}
        cluster.pause(3)
        settled(pages, witness, {1, 2})
        cluster.resume(3)
        settled(pages, witness, {1, 2, 3})
    judged = [read for read in pages.read if read.topic["as_of_ms"] > witness.seen[0].end_ms]
    for read in judged:
        judge(read, witness.seen)
    unknown = [read for read in judged if read.now["totals"]["records"] is None]
    assert unknown, "a stopped leader tells nothing before another one leads"


def test_pages_stay_as_they_were_and_say_since_when_where_nobody_answers(
    cluster: HeadraceCluster, console: Console
) -> None:
    before = console.until(f"/topics/{TOPIC}", lambda found: len(found["rows"]) == PARTITIONS)
    stopped_ms = now_ms()
    for number in (1, 2, 3):
        cluster.pause(number)
    failing = console.until(  # before that, a look is only late
        f"/topics/{TOPIC}", lambda found: (found["failing"] or {}).get("headline") == "No broker answers"
    )
    assert stopped_ms <= failing["failing"]["since_ms"] <= now_ms()
    assert before["as_of_ms"] <= failing["as_of_ms"] <= failing["failing"]["since_ms"]
    for path in ("/", "/brokers", f"/topics/{TOPIC}"):
        text = console.get(path)[1]
        assert "No broker answers." in text
        assert "What you see is of" in text
    again = console.json(f"/topics/{TOPIC}")
    assert (again["as_of_ms"], again["rows"]) == (failing["as_of_ms"], failing["rows"]), "nothing is made up"
    for number in (1, 2, 3):
        cluster.resume(number)
    console.until(
        f"/topics/{TOPIC}", lambda found: found["failing"] is None and found["as_of_ms"] > failing["as_of_ms"]
    )
