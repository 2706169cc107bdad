"""Greedy clients with a quota each, of three libraries, beside a neighbour without: what each of them gets.

    python -m tests.hostile.quota_bounds [--seconds 40]

The broker is a process of its own. Producers of librdkafka, Kafka's Java client and kafka-python send as fast
as they can, then consumers of the three read as fast as they can. The first burst is left out.

The same clients also load a second broker, while the neighbour stays with the first: what the neighbour then
waits for is the machine, and no quota of the first broker can change it. That explains a verdict; the verdict
itself is 1.5 times what the neighbour has alone.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer

from headrace.testing.cluster import Cluster
from tests.apache_kafka import jars, java_command
from tests.broker_process import HEADRACE
from tests.hostile.broker_process import SPAWNED
from tests.hostile.metadata_storm import NEIGHBOUR, latencies

BOUND: Final = 1_000_000
BURST_SECONDS: Final = 20.0
LEAVE_SECONDS: Final = 5.0
"""A client that has much to send would like to stay for longer."""
RECORD: Final = b"r" * 1000
CLIENTS: Final = ("librdkafka", "java", "kafka-python")
SPREAD: Final = 0.1
"""How far from its bound a client may be."""
NEIGHBOUR_RATIO: Final = 1.5

Counted = dict[str, tuple[int, int]]
"""By topic: bytes in and out."""


def serve(pipe: Connection) -> None:
    with Cluster({"num.partitions": "1"}) as cluster:
        metrics = cluster.broker.context.runtime.metrics
        pipe.send(cluster.bootstrap)
        while pipe.recv() is not None:
            pipe.send(
                {name: (metrics.topic(name).bytes_in, metrics.topic(name).bytes_out) for name in CLIENTS}
            )


@contextmanager
def broker() -> Iterator[tuple[str, Callable[[], Counted]]]:
    """Its bootstrap, and what asks it for the bytes that it has counted."""
    ours, theirs = SPAWNED.Pipe()
    process = SPAWNED.Process(target=serve, args=(theirs,))
    process.start()

    def counted() -> Counted:
        ours.send("count")
        found: Counted = ours.recv()
        return found

    try:
        yield ours.recv(), counted
    finally:
        ours.send(None)
        process.join()


# --- the clients ------------------------------------------------------------------------------------------


def produce_by_librdkafka(bootstrap: str, ended: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "librdkafka", "linger.ms": 5})
    while not ended.is_set():
        try:
            producer.produce("librdkafka", RECORD)
        except BufferError:
            producer.poll(0.05)
    producer.purge()


def produce_by_kafka_python(bootstrap: str, ended: threading.Event) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, client_id="kafka-python", linger_ms=5, max_block_ms=600_000
    )
    while not ended.is_set():
        producer.send("kafka-python", RECORD)
    producer.close(timeout=1)


def consume_by_librdkafka(bootstrap: str, ended: threading.Event) -> None:
    settings = {"bootstrap.servers": bootstrap, "client.id": "librdkafka", "group.id": "librdkafka"}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe(["librdkafka"])
    while not ended.is_set():
        consumer.consume(500, 0.1)
    consumer.close()


def consume_by_kafka_python(bootstrap: str, ended: threading.Event) -> None:
    consumer = KafkaConsumer(
        "kafka-python",
        bootstrap_servers=bootstrap,
        client_id="kafka-python",
        group_id="kafka-python",
        auto_offset_reset="earliest",
    )
    while not ended.is_set():
        consumer.poll(100)
    consumer.close()


def by_java(tool: str, *arguments: str) -> Callable[[str, threading.Event], None]:
    def run(bootstrap: str, ended: threading.Event) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "client.properties"
            path.write_text("client.id=java\nmax.block.ms=600000\nauto.offset.reset=earliest\n")
            command = [*java_command(jars("4.3.1")), f"org.apache.kafka.tools.{tool}"]
            given = [each.format(bootstrap=bootstrap, config=path) for each in arguments]
            process = subprocess.Popen(
                [*command, *given], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            ended.wait()
            process.kill()
            process.wait()

    return run


PRODUCERS: Final = {
    "librdkafka": produce_by_librdkafka,
    "kafka-python": produce_by_kafka_python,
    "java": by_java(
        "ProducerPerformance",
        *("--topic", "java", "--num-records", "100000000", "--record-size", "1000", "--throughput", "-1"),
        *("--producer-props", "bootstrap.servers={bootstrap}", "--producer.config", "{config}"),
    ),
}
CONSUMERS: Final = {
    "librdkafka": consume_by_librdkafka,
    "kafka-python": consume_by_kafka_python,
    "java": by_java(
        "ConsumerPerformance",
        *("--topic", "java", "--num-records", "100000000", "--bootstrap-server", "{bootstrap}"),
        *("--command-config", "{config}", "--timeout", "600000"),
    ),
}


# --- what is measured --------------------------------------------------------------------------------------


def rates(
    bootstrap: str,
    counted: Callable[[], Counted],
    clients: dict[str, Callable[[str, threading.Event], None]],
    seconds: float,
    neighbour: str,
) -> tuple[dict[str, tuple[float, float]], float]:
    """Bytes a second in and out of each client after its burst, and the neighbour's p99 meanwhile,
    who talks to the broker `neighbour`.

    Each has a process of its own: the neighbour must not wait for their interpreter. Java has it anyway.
    """
    ended, over = threading.Event(), SPAWNED.Event()
    threads = [threading.Thread(target=clients["java"], args=(bootstrap, ended))]
    processes = [
        SPAWNED.Process(target=run, args=(bootstrap, over), daemon=True)
        for name, run in clients.items()
        if name != "java"
    ]
    for thread in threads:
        thread.start()
    for process in processes:
        process.start()
    time.sleep(BURST_SECONDS)
    before, began = counted(), time.monotonic()
    _, p99 = latencies(_port(neighbour), seconds)
    after, took = counted(), time.monotonic() - began
    ended.set()
    over.set()
    for thread in threads:
        thread.join()
    for process in processes:
        process.join(LEAVE_SECONDS)
        process.kill()
        process.join()
    found = {
        name: ((after[name][0] - before[name][0]) / took, (after[name][1] - before[name][1]) / took)
        for name in clients
    }
    return found, p99


def set_up(bootstrap: str) -> None:
    """The topics, and the same quotas for each of the clients."""
    admin = AdminClient({"bootstrap.servers": bootstrap})  # one that is let go does nothing any more
    made = admin.create_topics([NewTopic(name, 1, 1) for name in (*CLIENTS, NEIGHBOUR)])
    for future in made.values():
        future.result()
    for name in CLIENTS:
        quotas = (f"producer_byte_rate={BOUND}", f"consumer_byte_rate={BOUND}")
        command = [str(HEADRACE), "quota", "set", "--client-id", name, *quotas, "-b", bootstrap]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def fill(bootstrap: str, megabytes: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "filler", "linger.ms": 5})
    for name in CLIENTS:
        for _ in range(megabytes * 1000):
            while True:
                try:
                    producer.produce(name, RECORD)
                    break
                except BufferError:
                    producer.poll(0.05)
        producer.flush()


def _port(bootstrap: str) -> int:
    return int(bootstrap.rpartition(":")[2])


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=40)
    seconds = options.parse_args().seconds
    failed = False
    with broker() as (bootstrap, counted), broker() as (elsewhere, counted_elsewhere):
        for each in (bootstrap, elsewhere):
            set_up(each)
        _, alone = latencies(_port(bootstrap), 20)
        print(f"the neighbour's produce alone: p99 {alone:.2f} ms", flush=True)
        for what, clients, column in (("producer", PRODUCERS, 0), ("consumer", CONSUMERS, 1)):
            if column:
                fill(bootstrap, 200)
                fill(elsewhere, 200)
            _, machine = rates(elsewhere, counted_elsewhere, clients, seconds, bootstrap)
            print(f"the neighbour while {what}s load another broker: p99 {machine:.2f} ms", flush=True)
            found, p99 = rates(bootstrap, counted, clients, seconds, bootstrap)
            for name, rate in found.items():
                share = rate[column] / BOUND
                failed |= abs(share - 1) > SPREAD
                print(f"{what} {name:13} {rate[column]:>11,.0f} bytes a second, {share:.3f} of its bound")
            failed |= p99 > NEIGHBOUR_RATIO * alone
            print(
                f"the neighbour beside them: p99 {p99:.2f} ms, {p99 / alone:.2f} times what it is alone, "
                f"{p99 / machine:.2f} times what it is on the laden machine",
                flush=True,
            )
    print("failed" if failed else "passed")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
