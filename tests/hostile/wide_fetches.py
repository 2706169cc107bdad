"""Fetches of 2,000 partitions, fifty a second, each on a connection of its own, beside a neighbour.

Prints what the neighbour's small produce takes alone and meanwhile, and the memory of the broker.

    python -m tests.hostile.wide_fetches [--seconds 30]

In one round the client closes its connections without waiting for an answer, in the other it keeps them.
"""

from __future__ import annotations

import argparse
import os
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Final

from headrace.protocol.headers import frame_request
from headrace.protocol.messages import create_topics_request as create
from headrace.protocol.messages import fetch_request as fetch
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.testing.cluster import Cluster
from tests.hostile.broker_process import SPAWNED, running
from tests.hostile.metadata_storm import NEIGHBOUR, latencies
from tests.wire import Wire

PARTITIONS: Final = 2_000
A_SECOND: Final = 50
KEPT: Final = 400
_WIDE: Final = "wide"
_FETCH: Final = 12
_PROPERTIES: Final = {"headrace.peer.memory.bytes": "200000000"}


def serve(pipe: Connection) -> None:
    with Cluster(_PROPERTIES) as cluster:
        pipe.send(cluster.bootstrap)
        pipe.recv()


def wide_fetch() -> bytes:
    """Waits for what does not come."""
    rows = [
        fetch.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
        for index in range(PARTITIONS)
    ]
    topics = [fetch.FetchTopic(topic=_WIDE, partitions=rows)]
    request = fetch.FetchRequest(max_wait_ms=30_000, min_bytes=1, max_bytes=50 << 20, topics=topics)
    return bytes(frame_request(request, _FETCH, 7, "wide"))


def attack(port: int, seconds: float, keeps: bool) -> None:
    frame, kept, due = wide_fetch(), deque[socket.socket](), time.monotonic()
    until = due + seconds
    while due < until:
        with suppress(OSError):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.sendall(frame)
            kept.append(connection)
        if kept and (not keeps or len(kept) > KEPT):
            kept.popleft().close()
        due += 1 / A_SECOND
        time.sleep(max(0.0, due - time.monotonic()))
    for connection in kept:
        connection.close()


def resident_mb(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=30)
    given = options.parse_args()
    with running(serve) as (port, pid):
        with Wire(port, timeout=60) as wire:
            topics = [
                create.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
                for name, count in ((NEIGHBOUR, 1), (_WIDE, PARTITIONS))
            ]
            made = wire.ask(
                create.CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7, CreateTopicsResponse
            )
            assert not any(topic.error_code for topic in made.topics), made
        alone = latencies(port, given.seconds)
        print(f"neighbour's produce alone: p50 {alone[0]:.2f} ms, p99 {alone[1]:.2f} ms")
        for keeps in (False, True):
            attacker = SPAWNED.Process(target=attack, args=(port, given.seconds, keeps))
            peak, is_over = [0], threading.Event()

            def watch(peak: list[int] = peak, is_over: threading.Event = is_over) -> None:
                while not is_over.wait(0.1):
                    peak[0] = max(peak[0], resident_mb(pid))

            watcher = threading.Thread(target=watch)
            attacker.start()
            watcher.start()
            beside = latencies(port, given.seconds)
            is_over.set()
            watcher.join()
            attacker.join()
            how = f"{KEPT} of their connections are kept" if keeps else "their connections are closed at once"
            print(
                f"beside {A_SECOND} wide fetches a second, {how}: p50 {beside[0]:.2f} ms,"
                f" p99 {beside[1]:.2f} ms; 100 is wanted; the broker has {peak[0]} MB at most"
            )
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
