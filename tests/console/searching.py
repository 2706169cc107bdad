"""A search through much more than a page may read: it shows how far it is, can be stopped, and stays within
what a step may cost.

    python -m tests.console.searching --gigabytes 2

One record is looked for, by a filter and by a key, in a topic of four partitions: near the end, as a browser
goes from step to step. Seconds of processors are the console's with its filters' own processes; bytes are the
most that were resident at once. Whether a step keeps its time is of the clock: read it with the load.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from bench.process_cost import cpu_seconds, resident_bytes
from confluent_kafka import Producer

from tests.cluster_process import HeadraceCluster
from tests.console.scale import until_seen
from tests.integration.real_client import create
from tests.integration.test_console import Console

TOPIC: Final = "orders"
PARTITIONS: Final = 4
VALUE_BYTES: Final = 1000
NEEDLE: Final = {"amount": -1, "note": "the one"}
MOST_MEMORY_BYTES: Final = 700_000_000
"""Of the console with its filters' processes. A step reads 32 MB, in fetches of 8."""


class Went(NamedTuple):
    found: int
    steps: int
    scanned: int
    bytes: int
    seconds: float
    processor_seconds: float
    longest_step: float
    most_memory: int


def fill(bootstrap: str, whole_bytes: int) -> int:
    """Records. Values are hard to compress, as real ones are not: bytes on the disk are what is read."""
    create(bootstrap, TOPIC, PARTITIONS)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 900_000})
    count = whole_bytes // VALUE_BYTES
    padding = os.urandom(VALUE_BYTES).hex()
    for number in range(count):
        members: dict[str, Any] = {"number": number, "amount": number % 1000, "text": ""}
        members["text"] = padding[number % VALUE_BYTES :][: VALUE_BYTES - 50]
        if number == count - count // 20:
            members = NEEDLE
        while True:
            try:
                producer.produce(TOPIC, json.dumps(members).encode(), f"key-{number}".encode())
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(600):
        raise RuntimeError("the topic was not filled")
    return count


def search(console: Console, **query: str) -> Went:
    """To its end, or to the first hit, as a browser with scripts goes on by itself."""
    began, spent = time.monotonic(), cpu_seconds(console.process.pid)
    steps = read = most = 0
    longest = share = 0.0
    position: dict[str, Any] = {}
    while True:
        step_began = time.monotonic()
        found = console.json(f"/topics/{TOPIC}/records?{urlencode({**query, **position})}")["found"]
        longest = max(longest, time.monotonic() - step_began)
        most = max(most, resident_bytes(console.process.pid))
        steps += 1
        read += found["bytes"]
        now = found["scanned"] / found["whole"]
        assert now > share or not found["after"], "each step is further than the one before"
        share = now
        if found["rows"] or not found["after"]:
            break
        position = {"after": found["after"], "done": found["scanned"], "whole": found["whole"]}
    seconds, spent = time.monotonic() - began, cpu_seconds(console.process.pid) - spent
    return Went(len(found["rows"]), steps, found["scanned"], read, seconds, spent, longest, most)


def cost_of_one_that_is_left(console: Console) -> float:
    """Seconds of a processor after a browser has asked for a step and closed its connection."""
    address = urlsplit(console.url)
    assert address.hostname is not None
    path = f"/topics/{TOPIC}/records?filter={quote('value.amount == -2')}"
    for _ in range(50):  # more than one viewer may have waiting
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
    console.json(f"/topics/{TOPIC}/records")
    before = cpu_seconds(console.process.pid)
    time.sleep(10)
    return cpu_seconds(console.process.pid) - before


def said(name: str, went: Went) -> str:
    return (
        f"| {name} | {went.found} | {went.steps} | {went.scanned:,} | {went.bytes / 1e9:.2f} GB"
        f" | {went.seconds:.0f} s | {went.processor_seconds:.1f} s | {went.longest_step:.1f} s"
        f" | {went.most_memory / 1e6:.0f} MB |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.console.searching", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="console-search-") as directory,
        HeadraceCluster(Path(directory), 1, {"offsets.topic.num.partitions": "1"}) as cluster,
    ):
        count = fill(cluster.bootstrap, int(given.gigabytes * 1e9))
        print(f"{count:,} records are there", flush=True)
        console = Console(cluster.bootstrap, "--interval", "5")
        try:
            until_seen(console, 1, 0)
            print("| Search | Found | Steps | Looked at | Read | Clock | Processor | Longest step | Memory |")
            print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
            went = [
                search(console, filter="value.amount == -1"),
                search(console, filter="value.amount == -2"),
                search(console, key="key-none", everywhere="1"),
            ]
            for name, each in zip(("a filter", "a filter, nothing", "a key"), went, strict=True):
                print(said(name, each), flush=True)
            print(
                f"after 50 that were left: {cost_of_one_that_is_left(console):.1f} s of a processor in 10 s"
            )
            print("load:", *(f"{each:.1f}" for each in os.getloadavg()))
        finally:
            console.stop()
    assert [each.found for each in went] == [1, 0, 0]
    assert went[1].scanned == went[2].scanned == count
    assert max(each.most_memory for each in went) < MOST_MEMORY_BYTES
    return 0


if __name__ == "__main__":
    sys.exit(main())
