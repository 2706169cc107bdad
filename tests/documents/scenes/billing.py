"""The group of docs/operations.md: two members, who have read all of `orders` but the end of one partition.

    _scene billing BOOTSTRAP [OFFSET]

Runs until it is stopped. It reads nothing: it commits what the page shows, or OFFSET, and stays a member.
"""

from __future__ import annotations

import signal
import sys
import time

from confluent_kafka import Consumer, TopicPartition

COMMITTED = {0: 10_000, 1: 10_000, 2: 4711}


def main() -> None:
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
    members = [_member(sys.argv[1], number) for number in (1, 2)]
    COMMITTED.update((partition, int(offset)) for offset in sys.argv[2:] for partition in COMMITTED)
    told = False
    while not stopping:
        for member in members:
            member.poll(0.1)
        given = [len(member.assignment()) for member in members]
        if not told and all(given) and sum(given) == len(COMMITTED):
            _commit(members)
            told = True
            print("ready", flush=True)
    for member in members:
        member.close()


def _member(bootstrap: str, number: int) -> Consumer:
    member = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "billing",
            "client.id": f"billing-{number}",
            "group.instance.id": f"worker-{number}",
            "enable.auto.commit": False,
            "auto.offset.reset": "latest",
            "session.timeout.ms": 6000,
        }
    )
    member.subscribe(["orders"], on_assign=lambda consumer, given: consumer.assign(_at_their_end(given)))
    until = time.monotonic() + 1.0  # the first one first, so that the page's partitions are where it says
    while time.monotonic() < until:
        member.poll(0.1)
    return member


def _at_their_end(partitions: list[TopicPartition]) -> list[TopicPartition]:
    return [TopicPartition(given.topic, given.partition, COMMITTED[given.partition]) for given in partitions]


def _commit(members: list[Consumer]) -> None:
    for member in members:
        offsets = _at_their_end(member.assignment())
        member.pause(offsets)
        member.commit(offsets=offsets, asynchronous=False)


if __name__ == "__main__":
    main()
