"""`headrace mirror` beside MirrorMaker 2 exactly once: records for each CPU second, and latency.

    python -m bench.mirror --records 2000000 --runs 3
    python -m bench.mirror --source kafka --target headrace --records 200000 --seconds 10

Two brokers. A topic that is full is copied to its end by the one and by the other, in turns (`copy`); counted
is the CPU of whoever copies and of both brokers, from its start until a reader of committed records has seen
all. Then records come one by one for a while, each with the time of its sending, and such a reader says how
old they are when they arrive (`trickle`). Both copiers have been warmed up by a copy that does not count.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import struct
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession
from tests.apache_connect import ConnectWorker
from tests.both_brokers import TARGETS
from tests.broker_process import BrokerProcess

from bench.process_cost import STAT_CSTIME_END, STAT_UTIME, TICKS_PER_SECOND, cpu_seconds, family
from bench.sink import GRANT
from bench.spark_runs import keep, session_for
from bench.topics import Topics
from headrace.client.cluster import Cluster
from headrace.client.offsets import LATEST, list_offsets
from headrace.core.ids import TopicPartition as TargetPartition
from headrace.spark.mirror import config as configs
from headrace.spark.mirror import job

PARTITIONS: Final = 4
OURS: Final = "headrace mirror"
THEIRS: Final = "MirrorMaker 2"
TIMEOUT_S: Final = 1_800.0
_BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
_STAMP: Final = struct.Struct(">d")


@dataclass
class Run:
    copier: str
    phase: str
    size: int
    records: int
    seconds: float
    copier_cpu_s: float
    source_cpu_s: float
    target_cpu_s: float
    latencies_ms: list[float] = field(default_factory=list)

    @property
    def per_cpu_second(self) -> float:
        return self.records / self.copier_cpu_s


class Brokers:
    """The source, the target, and what both have used."""

    def __init__(self, source: BrokerProcess, target: BrokerProcess) -> None:
        self.source, self.target = source, target
        self.topics = Topics(source.bootstrap)

    def cpu(self) -> tuple[float, float]:
        return cpu_seconds(self.source.pid), cpu_seconds(self.target.pid)

    def fill(self, topic: str, records: int, size: int) -> None:
        self.topics.create(topic, PARTITIONS)
        producer = Producer({"bootstrap.servers": self.source.bootstrap, "linger.ms": 20, "acks": "all"})
        value = b"x" * (size - 8)
        for number in range(records):
            while True:
                try:
                    producer.produce(topic, struct.pack(">q", number) + value, partition=number % PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.1)
        if producer.flush(TIMEOUT_S):
            raise RuntimeError("the source was not filled")


class Reader:
    """A reader of committed records of the target."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "bench",
                "isolation.level": "read_committed",
                "allow.auto.create.topics": False,
            }
        )
        give_up = time.monotonic() + TIMEOUT_S
        while topic not in self._consumer.list_topics(timeout=60).topics:
            if time.monotonic() > give_up:
                raise TimeoutError(f"{topic} does not come")
            time.sleep(0.02)
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])

    def values(self, count: int) -> Iterator[bytes]:
        give_up = time.monotonic() + TIMEOUT_S
        seen = 0
        while seen < count:
            if time.monotonic() > give_up:
                raise TimeoutError(f"only {seen} of {count} records came")
            for message in self._consumer.consume(10_000, 0.05):
                if message.error() is None:
                    seen += 1
                    yield message.value() or b""

    def close(self) -> None:
        self._consumer.close()


class Ours:
    """In this process, with a session that is warm."""

    name = OURS

    def __init__(self, spark: SparkSession, brokers: Brokers, worker: ConnectWorker) -> None:
        self._spark, self._brokers = spark, brokers
        self._others = (brokers.source, brokers.target, worker)

    @contextmanager
    def copying(self, topic: str) -> Iterator[str]:
        text = f"""
        [source]
        "bootstrap.servers" = "{self._brokers.source.bootstrap}"
        [target]
        "bootstrap.servers" = "{self._brokers.target.bootstrap}"
        [mirror]
        name = "{topic}"
        trigger = "10ms"
        [[topics]]
        name = "{topic}"
        target = "ours.{{topic}}"
        """
        config = configs.parse(text, Path("mirror.toml"))
        stop = threading.Event()
        thread = threading.Thread(target=lambda: job.run(self._spark, config, stop=stop), name="mirror")
        thread.start()
        try:
            yield f"ours.{topic}"
        finally:
            stop.set()
            thread.join()

    def cpu(self) -> float:
        """Of this process and all below it but the brokers and the other copier. Its main thread is the
        bench's own, which waits and reads for both copiers, and belongs to neither."""
        others = {pid for each in self._others for pid in family(each.pid)}
        ours = set(family(os.getpid())) - others
        return sum(_ticks(pid) for pid in ours) / TICKS_PER_SECOND - time.thread_time()


class Theirs:
    """A worker of Apache's Connect."""

    name = THEIRS

    def __init__(self, worker: ConnectWorker, brokers: Brokers) -> None:
        self._worker, self._brokers = worker, brokers

    @contextmanager
    def copying(self, topic: str) -> Iterator[str]:
        connector = {
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "source.cluster.alias": "theirs",
            "target.cluster.alias": "target",
            "source.cluster.bootstrap.servers": self._brokers.source.bootstrap,
            "target.cluster.bootstrap.servers": self._brokers.target.bootstrap,
            "key.converter": _BYTES,
            "value.converter": _BYTES,
            "header.converter": _BYTES,
            "topics": topic,
            "tasks.max": "2",
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "sync.topic.acls.enabled": "false",
            "exactly.once.support": "required",
            "transaction.boundary": "poll",
            "source.consumer.isolation.level": "read_committed",
        }
        self._worker.call("PUT", f"/connectors/{topic}/config", connector)
        try:
            yield f"theirs.{topic}"
        finally:
            self._worker.call("DELETE", f"/connectors/{topic}")

    def cpu(self) -> float:
        return cpu_seconds(self._worker.pid)


Copier = Ours | Theirs


def _ticks(pid: int) -> int:
    try:
        clocks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[STAT_UTIME:STAT_CSTIME_END]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(map(int, clocks))


def copy(copier: Copier, brokers: Brokers, topic: str, size: int, records: int) -> Run:
    cpu, (source, target), began = copier.cpu(), brokers.cpu(), time.monotonic()
    with copier.copying(topic) as copied:
        Reader(brokers.target.bootstrap, copied).close()  # it is there
        # The end is looked for by its offsets: to read all of it would cost more than the copy.
        _await_records(brokers, copied, records)
        seconds = time.monotonic() - began
        ends = brokers.cpu()
        used = copier.cpu() - cpu
        # Markers were counted too, so the last records may still be on their way.
        reader = Reader(brokers.target.bootstrap, copied)
        found = len(set(reader.values(records)))
        reader.close()
    if found != records:
        raise RuntimeError(f"{copier.name} was given {records} records, and {found} can be read")
    return Run(copier.name, "copy", size, records, seconds, used, ends[0] - source, ends[1] - target)


def _await_records(brokers: Brokers, topic: str, records: int) -> None:
    """Until so many offsets are committed. Markers are among them, so it is a little early."""
    partitions = [TargetPartition(topic, number) for number in range(PARTITIONS)]

    async def committed() -> None:
        give_up = time.monotonic() + TIMEOUT_S
        async with Cluster(brokers.target.bootstrap) as cluster:
            while True:
                ends = await list_offsets(cluster, dict.fromkeys(partitions, LATEST), read_committed=True)
                if sum(end.offset for end in ends.values()) >= records:
                    return
                if time.monotonic() > give_up:
                    raise TimeoutError(f"{topic} has {ends} of {records} records")
                await asyncio.sleep(0.02)

    asyncio.run(committed())


def trickle(copier: Copier, brokers: Brokers, topic: str, rate: int, seconds: float) -> Run:
    """The first records are for whoever has just begun."""
    brokers.topics.create(topic, PARTITIONS)
    count, warm = int(rate * seconds), max(1, rate * 5)
    cpu, (source, target), began = copier.cpu(), brokers.cpu(), time.monotonic()
    with copier.copying(topic) as copied:
        sender = threading.Thread(target=_send, args=(brokers.source.bootstrap, topic, rate, warm + count))
        sender.start()
        reader = Reader(brokers.target.bootstrap, copied)
        arrived = [
            (sent, (time.time() - sent) * 1000)
            for value in reader.values(warm + count)
            for (sent,) in [_STAMP.unpack_from(value)]
        ]
        reader.close()
        sender.join()
        took = time.monotonic() - began
        ends, used = brokers.cpu(), copier.cpu() - cpu
    arrived.sort()
    latencies = [late for _, late in arrived[warm:]]
    return Run(copier.name, "trickle", 100, count, took, used, ends[0] - source, ends[1] - target, latencies)


def _send(bootstrap: str, topic: str, rate: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all"})
    began = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        producer.produce(topic, _STAMP.pack(time.time()) + b"x" * 92, partition=number % PARTITIONS)
        producer.poll(0)
    producer.flush(60)


def measure(spark: SparkSession, given: argparse.Namespace, directory: Path) -> list[Run]:
    with ExitStack() as stack:
        source, target = (
            stack.enter_context(TARGETS[kind](directory / side, GRANT if kind == "headrace" else {}))
            for side, kind in (("source", given.source), ("target", given.target))
        )
        brokers = Brokers(source, target)
        worker = ConnectWorker(directory / "worker", target.bootstrap)
        worker.fast_start = False
        stack.enter_context(worker)
        copiers: list[Copier] = [Ours(spark, brokers, worker), Theirs(worker, brokers)]
        found: list[Run] = []
        for size in given.size:
            for number in range(given.runs + 1):  # the first is the warm-up
                topic = f"full-{size}-{number}"
                brokers.fill(topic, given.records, size)
                for copier in copiers:
                    run = copy(copier, brokers, topic, size, given.records)
                    print(f"{'' if number else 'warm-up: '}{line(run)}", flush=True)
                    found += [run] if number else []
        for number in range(given.runs):
            for at, copier in enumerate(copiers):
                run = trickle(copier, brokers, f"trickle-{number}-{at}", given.rate, given.seconds)
                print(line(run), flush=True)
                found.append(run)
        return found


def line(run: Run) -> str:
    said = (
        f"{run.copier}, {run.phase}, {run.size} B: {run.records:,} records in {run.seconds:.1f} s, CPU "
        f"{run.copier_cpu_s:.1f} s (source {run.source_cpu_s:.1f}, target {run.target_cpu_s:.1f}), "
        f"{run.per_cpu_second:,.0f} records for each CPU second"
    )
    if run.latencies_ms:
        ranks = statistics.quantiles(run.latencies_ms, n=100)
        said += f"; latency p50 {ranks[49]:.0f} ms, p99 {ranks[98]:.0f} ms"
    return said


def table(runs: Sequence[Run]) -> str:
    """Medians of all runs."""
    lines = [
        "| | records | records/s | for each CPU second | p50 | p99 |",
        "|---|---|---|---|---|---|",
    ]
    for copier, phase, size in dict.fromkeys((run.copier, run.phase, run.size) for run in runs):
        same = [run for run in runs if (run.copier, run.phase, run.size) == (copier, phase, size)]
        rate = statistics.median(run.records / run.seconds for run in same)
        per_cpu = statistics.median(run.per_cpu_second for run in same)
        late = [each for run in same for each in run.latencies_ms]
        ranks = statistics.quantiles(late, n=100) if late else None
        cells = [
            f"{copier}, {phase}",
            f"{same[0].records:,} of {size} B",
            f"{rate:,.0f}",
            f"{per_cpu:,.0f}",
            f"{ranks[49]:.0f} ms" if ranks else "",
            f"{ranks[98]:.0f} ms" if ranks else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.mirror", description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--size", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--rate", type=int, default=200, help="records a second of the trickle")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long it trickles")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--source", choices=list(TARGETS), default="headrace")
    parser.add_argument("--target", choices=list(TARGETS), default="headrace")
    parser.add_argument("--output", type=Path, help="a file for the runs, as JSON")
    given = parser.parse_args()
    with session_for("bench-mirror") as (spark, directory):
        runs = measure(spark, given, directory)
    print(table(runs))
    keep(runs, given.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
