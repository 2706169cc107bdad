"""A topic that is followed, in front of a real broker: what comes is what another client has sent."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from confluent_kafka import Producer

from headrace.testing.cluster import Cluster
from tests.integration.real_client import create
from tests.integration.test_console import HOSTILE, Console

SECONDS = 120.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster({"offsets.topic.num.partitions": "1"}) as cluster:
        create(cluster.bootstrap, "orders", 3)
        create(cluster.bootstrap, "hostile", 1)
        yield cluster


@pytest.fixture(scope="module")
def console(cluster: Cluster) -> Iterator[Console]:
    console = Console(cluster.bootstrap)
    console.until("/topics", lambda found: found["listing"]["found"] == 2)
    yield console
    console.stop()


def send(cluster: Cluster, topic: str, values: list[bytes], partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(SECONDS) == 0


class Stream:
    """As a browser reads it."""

    def __init__(self, console: Console, path: str, last: str = "") -> None:
        address = urlsplit(console.url)
        assert address.hostname is not None
        self._connection = http.client.HTTPConnection(address.hostname, address.port, timeout=SECONDS)
        self._connection.request("GET", path, headers={"Last-Event-ID": last} if last else {})
        self.answer = self._connection.getresponse()
        self.last = last

    def event(self) -> tuple[str, Any]:
        """The name of the next one, and what it has."""
        name, data = "", None
        while True:
            line = self.answer.readline().decode()
            assert line, "the stream has ended"
            field, _, text = line.rstrip("\n").partition(": ")
            if field == "event":
                name = text
            elif field == "id":
                self.last = text
            elif field == "data":
                data = json.loads(text)
            elif not line.strip() and data is not None:
                return name, data

    def until(self, records: int) -> list[Any]:
        """Turns until so many records came or were passed over."""
        found: list[Any] = []
        while sum(turn["rows"] + turn["left_out"] for turn in found) < records:
            name, turn = self.event()
            assert name == ""
            found.append(turn)
        return found

    def close(self) -> None:
        self.answer.close()
        self._connection.close()


@pytest.fixture
def follow(console: Console) -> Iterator[Any]:
    opened: list[Stream] = []

    def made(path: str, last: str = "") -> Stream:
        opened.append(Stream(console, path, last))
        return opened[-1]

    yield made
    for each in opened:
        each.close()


def where(console: Console, topic: str, query: str = "") -> str:
    """Where a page that is read now ends."""
    end: str = console.json(f"/topics/{topic}/records?live=1{query}")["found"]["end"]
    return end


def test_what_is_sent_comes_once_and_in_no_more_than_twenty_a_turn(
    cluster: Cluster, console: Console, follow: Any
) -> None:
    begin = where(console, "orders")
    stream = follow(f"/topics/orders/records/tail?after={begin}")
    assert stream.answer.headers["Content-Type"].startswith("text/event-stream")
    assert "default-src 'none'" in stream.answer.headers["Content-Security-Policy"]
    send(cluster, "orders", [b"number one"], partition=2)
    (turn,) = stream.until(1)
    assert turn["html"].count("<article") == turn["rows"] == 1
    assert "number one" in turn["html"]
    send(cluster, "orders", [f"many {at}".encode() for at in range(5000)])
    turns = stream.until(5000)
    assert all(turn["rows"] <= 20 for turn in turns)
    assert sum(turn["rows"] + turn["left_out"] for turn in turns) == 5000
    assert "many 4999" in "".join(turn["html"] for turn in turns)
    stream.close()
    send(cluster, "orders", [b"meanwhile"], partition=1)
    again = follow(f"/topics/orders/records/tail?after={begin}", stream.last)
    (turn,) = again.until(1)
    assert "meanwhile" in turn["html"], "it goes on where it was, not where the page was"


def test_a_search_takes_what_fits_and_no_other(cluster: Cluster, console: Console, follow: Any) -> None:
    query = f"&filter={quote('value.amount > 10')}"
    stream = follow(f"/topics/orders/records/tail?after={where(console, 'orders', query)}{query}")
    send(cluster, "orders", [b'{"amount": 5}', b'{"amount": 50}', b'{"amount": 7}'])
    (turn,) = stream.until(1)
    assert "50" in turn["html"]
    assert (turn["rows"], turn["left_out"]) == (1, 0)


def test_hostile_records_are_text_in_it(cluster: Cluster, console: Console, follow: Any) -> None:
    stream = follow(f"/topics/hostile/records/tail?after={where(console, 'hostile')}")
    send(cluster, "hostile", HOSTILE)
    html = "".join(turn["html"] for turn in stream.until(len(HOSTILE)))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    for hidden in ("<script", "<img", "\u202e", "\u2066", "\x1b", "\x00", "\r"):
        assert hidden not in html
    assert len(html) < 100_000


def test_the_fifth_is_refused_until_one_is_gone(console: Console, follow: Any) -> None:
    path = f"/topics/orders/records/tail?after={where(console, 'orders')}"
    streams = [follow(path) for _ in range(4)]
    for stream in streams:
        assert stream.event()[0] == "", "it is open"
    name, said = follow(path).event()
    assert (name, "Close one of them" in said["sentence"]) == ("end", True)
    streams[0].close()
    deadline = time.monotonic() + SECONDS
    while follow(path).event()[0] == "end":
        assert time.monotonic() < deadline, "nobody noticed that a browser has gone"
        time.sleep(0.2)


def test_what_cannot_be_followed_is_refused_as_a_page_is(console: Console, follow: Any) -> None:
    assert follow("/topics/nope/records/tail").answer.status == 404
    name, said = follow("/topics/orders/records/tail?filter=((").event()
    assert (name, "The filter is refused" in said["sentence"]) == ("end", True)


def test_a_console_without_records_follows_none(cluster: Cluster) -> None:
    console = Console(cluster.bootstrap, "--no-records")
    console.until("/topics", lambda found: found["listing"]["found"] == 2)
    stream = Stream(console, "/topics/orders/records/tail")
    assert stream.answer.status == 404
    stream.close()
    console.stop()


def test_brokers_that_are_gone_are_told_of_and_a_console_stops_while_it_is_followed() -> None:
    with Cluster({"offsets.topic.num.partitions": "1"}) as cluster:
        create(cluster.bootstrap, "orders", 1)
        console = Console(cluster.bootstrap)
        console.until("/topics", lambda found: found["listing"]["found"] == 1)
        stream = Stream(console, f"/topics/orders/records/tail?after={where(console, 'orders')}")
        assert stream.event()[0] == ""
    name: str = ""
    said: Any = None
    while name != "problem":
        name, said = stream.event()
    assert said["sentence"]
    console.stop()
    stream.close()
