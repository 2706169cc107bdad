"""The console in front of a real broker: what its pages say is what another client finds."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from headrace.testing.cluster import Cluster
from tests.integration.real_client import admin, create

SECONDS = 120.0
HOSTILE = [
    b"<script>alert(1)</script><img src=x onerror=alert(2)>",
    "right to left \u202egnp.exe\u2066 and back".encode(),
    b"\xff\xfe\x00broken",
    b"x" * 900_000,
    b'{"a":' * 5000 + b"1" + b"}" * 5000,
    b"\x1b]0;title\x07\x00\r\n.",
]


class Console:
    """A process, and what it answers."""

    def __init__(self, bootstrap: str, *more: str) -> None:
        words = ["console", "-b", bootstrap, "--port", "0", "--interval", "1", *more]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headrace", *words], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("ready url=http://127.0.0.1:"), line
        self.url = line.strip().removeprefix("ready url=")

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"{self.url}{path}") as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def json(self, path: str) -> Any:
        status, text = self.get(f"{path}{'&' if '?' in path else '?'}format=json")
        assert status in (200, 503), text
        return json.loads(text)

    def until(self, path: str, holds: Callable[[Any], bool]) -> Any:
        deadline = time.monotonic() + SECONDS
        while True:
            found = self.json(path)
            if found["look"] is not None and holds(found):
                return found
            assert time.monotonic() < deadline, found
            time.sleep(0.1)

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(SECONDS) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster({"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def console(cluster: Cluster) -> Iterator[Console]:
    bootstrap = cluster.bootstrap
    create(bootstrap, "orders", 3)
    create(bootstrap, "hostile", 1)
    sending = Producer({"bootstrap.servers": bootstrap})
    for number in range(600):
        value = json.dumps({"amount": number, "lines": [number % 7]}).encode()
        sending.produce("orders", value, f"k{number % 20}".encode(), partition=number % 3)
    for value in HOSTILE:
        sending.produce("hostile", value, b"<b>key</b>\x00", headers={"<i>h": value[:50]})
    assert sending.flush(SECONDS) == 0
    reader = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "billing/<b>", "enable.auto.commit": False}
    )
    reader.commit(
        offsets=[TopicPartition("orders", partition, offset) for partition, offset in ((0, 50), (1, 200))],
        asynchronous=False,
    )
    reader.close()
    console = Console(bootstrap)
    yield console
    console.stop()


def test_numbers_are_those_that_another_client_finds(cluster: Cluster, console: Console) -> None:
    topics = console.until("/topics", lambda found: found["listing"]["rows"][-1]["lag"] == 150)
    rows = {row["name"]: row for row in topics["listing"]["rows"]}
    other = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "billing/<b>"})
    ends = [other.get_watermark_offsets(TopicPartition("orders", at)) for at in range(3)]
    assert rows["orders"]["records"] == sum(end - first for first, end in ends)
    assert rows["orders"]["partitions"] == 3
    committed = other.committed([TopicPartition("orders", at) for at in range(3)])
    group = console.json(f"/groups/{quote('billing/<b>', safe='')}")
    rails = {rail["partition"]["partition"]: rail for rail in group["rails"]}
    for at, (low, high) in enumerate(ends):
        if at in rails:
            assert (rails[at]["first"], rails[at]["end"]) == (low, high)
            assert rails[at]["committed"] == committed[at].offset
    assert group["lag"] == sum(
        end - place.offset for place, (_, end) in zip(committed, ends, strict=True) if place.offset >= 0
    )
    other.assign([TopicPartition("orders", 0, 50)])
    record = other.poll(SECONDS)
    assert record is not None
    assert group["as_of_ms"] - group["late_ms"] == record.timestamp()[1]
    other.close()
    brokers = console.json("/brokers")["rows"]
    metadata = admin(cluster.bootstrap).list_topics(timeout=SECONDS)
    assert [row["broker_id"] for row in brokers] == sorted(metadata.brokers)
    assert brokers[0]["leaders"] == sum(len(topic.partitions) for topic in metadata.topics.values())


def test_a_hostile_record_is_text(console: Console) -> None:
    console.until("/topics", lambda found: found["listing"]["found"] == 2)
    status, page = console.get("/topics/hostile/records?from=oldest")
    assert status == 200
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(2)&gt;" in page
    assert "<script>alert" not in page
    assert "<b>key" not in page
    assert "<i>h" not in page
    for hidden in ("\u202e", "\u2066", "\x1b", "\x00", "\x07"):
        assert hidden not in page
    assert "right to left ⟨U+202E⟩gnp.exe⟨U+2066⟩ and back" in page
    assert "\\xff\\xfe" in page
    assert "cut: 1,200 of 900,000 bytes are shown" in page
    assert len(page) < 100_000
    alone = console.get("/topics/hostile/records/0/3")[1]
    assert "Cut: 65,536 of 900,000 bytes are shown." in alone
    for offset in range(len(HOSTILE)):
        assert console.get(f"/topics/hostile/records/0/{offset}")[0] == 200


def found_offsets(found: Any) -> list[tuple[int, int]]:
    return sorted((row["partition"], row["offset"]) for row in found["found"]["rows"])


def test_records_are_found(console: Console) -> None:
    console.until("/topics", lambda found: found["listing"]["found"] == 2)
    path = "/topics/orders/records"
    newest = console.json(path)
    assert len(newest["found"]["rows"]) == 25
    assert newest["found"]["held"] == 0
    hit = console.json(f"{path}?filter={quote('value.amount >= 597 && partition != 1')}")
    assert found_offsets(hit) == [(0, 199), (2, 199)]
    assert (hit["found"]["scanned"], hit["found"]["whole"], hit["found"]["after"]) == (600, 600, "")
    exact = console.json(f"{path}?from=offset&value=198&partition=2")
    assert found_offsets(exact) == [(2, 198), (2, 199)]
    keyed = console.json(f"{path}?key=k7&everywhere=1")
    assert len(keyed["found"]["rows"]) == 30
    page = console.json(f"{path}?from=oldest")
    seen = found_offsets(page)
    following = console.json(f"{path}?from=oldest&after={page['found']['after']}&whole=600")
    assert not set(seen) & set(found_offsets(following)), "the next page goes on where the first one ended"
    times = console.json(path)["timeline"]
    assert sum(bucket["records"] for bucket in times["buckets"]) == 600
    later = console.json(f"{path}?from=time&value={times['end_ms'] + 1}")
    assert later["found"]["rows"] == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("filter=((", "The filter is refused"),
        ("filter=value.matches(%22a%22)", "matches cannot be used"),
        ("partition=99", "has no partition 99"),
        ("partition=x", "is no number of a partition"),
        ("from=time&value=soon", "Write a time as"),
        ("from=offset&value=-", "Write an offset as a number"),
    ],
)
def test_what_cannot_be_looked_for_is_said(console: Console, query: str, said: str) -> None:
    console.until("/topics", lambda found: found["listing"]["found"] == 2)
    status, page = console.get(f"/topics/orders/records?{query}")
    assert (status, said in page) == (400, True)


def test_a_broker_that_stops_is_said_and_comes_back_into_view() -> None:
    with Cluster({"offsets.topic.num.partitions": "1"}) as cluster:
        create(cluster.bootstrap, "orders", 1)
        console = Console(cluster.bootstrap)
        before = console.until("/topics", lambda found: found["listing"]["found"] == 1)
    failing = console.until("/topics", lambda found: found["failing"] is not None)
    assert failing["listing"] == before["listing"]
    console.until("/topics", lambda found: found["failing"]["headline"] == "No broker answers")
    text = console.get("/")[1]
    assert "No broker answers." in text
    assert "What you see is of" in text
    assert console.get("/topics/orders/records")[0] == 502
    console.stop()
