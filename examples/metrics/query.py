"""What did one host log? `python query.py host-03 --bootstrap HOST:PORT --level ERROR`; --help has more.

All lines of a host are in one partition, in order, so the others are not read; and brokers find the first
offset of a time by their index, so what is older is not read either.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime

from confluent_kafka import Consumer, TopicPartition
from logs import LINES, Line, partition_of, read


def lines_of(bootstrap: str, host: str, since_ms: int = 0) -> Iterator[tuple[int, Line]]:
    """When, and the line."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "query"})
    [start] = consumer.offsets_for_times([TopicPartition(LINES, partition_of(host), since_ms)], 30)
    consumer.close()
    for message in read(bootstrap, [start]):
        # Hosts share partitions, and a slow one is not in the order of the others' times.
        if message.key() == host.encode() and message.timestamp()[1] >= since_ms:
            yield message.timestamp()[1], Line.decode(message.value())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host")
    parser.add_argument("--bootstrap", required=True, metavar="HOST:PORT")
    parser.add_argument("--since", type=int, default=0, metavar="MILLISECONDS")
    parser.add_argument("--level")
    arguments = parser.parse_args()
    for at_ms, line in lines_of(arguments.bootstrap, arguments.host, arguments.since):
        if arguments.level in (None, line.level):
            print(
                datetime.fromtimestamp(at_ms / 1000, UTC).time(), line.level, line.text, f"{line.took_ms} ms"
            )
