"""Exactly once from end to end, while brokers and clients are killed: `python -m tests.chaos.exactly_once`.

Records go into one topic; copiers put what they make of them into another one. In the end each partition of
the second must be the first, transformed: nothing missing, nothing twice, nothing in another order.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.chaos.copying_process import GROUP, SOURCE, TARGET, CopierLife, transformed
from tests.chaos.group_reader import PROTOCOLS
from tests.chaos.killed_process import Lives, ToldProcess
from tests.chaos.stable_end import Hanging, high_watermark, read_committed
from tests.chaos.testbed import Equipment, Testbed
from tests.chaos.transactional_client import PROPERTIES
from tests.chaos.workload import ANY_TIMESTAMP, QUICK, TRIED_SECONDS
from tests.integration.real_client import create

Say = Callable[[str], None]
SHOWN: Final = 5
IN_FLIGHT: Final = 5000


@dataclass(frozen=True)
class Task:
    seed: int
    records: int
    partitions: int = 3
    copiers: int = 2
    rate: float = 1000.0
    """Records a second that come in: a task that is over at once has seen no fault."""
    target: str = "headrace"
    life: tuple[float, float] = (5.0, 20.0)
    """How long a copier lives."""
    between_kills: tuple[float, float] = (4.0, 10.0)
    within: float = 600.0
    """Seconds until everything must be copied."""

    @property
    def protocol(self) -> str:
        return list(PROTOCOLS)[self.seed % len(PROTOCOLS)]


@dataclass
class Result:
    task: Task
    differences: list[str]
    copied: int = 0
    seconds: float = 0.0
    events: Counter[str] = field(default_factory=Counter)

    @property
    def good(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        return "\n".join(
            [
                f"exactly once, seed {self.task.seed}, group protocol {self.task.protocol}:"
                f" {self.copied} of {self.task.records} records copied in {self.seconds:.0f} s",
                *(f"{count} x {text}" for text, count in sorted(self.events.items())),
                *(f"DIFFERENCE: {text}" for text in self.differences),
                "GOOD" if self.good else "BAD",
            ]
        )


def differences(wanted: Sequence[bytes], found: Sequence[bytes], where: str) -> list[str]:
    """How a partition differs from what it should be, the worst first; empty if it does not."""
    if list(wanted) == list(found):
        return []
    counts, known = Counter(found), set(wanted)
    kinds = {
        "missing": [value for value in wanted if value not in counts],
        "more than once": [value for value, count in counts.items() if count > 1],
        "not asked for": [value for value in counts if value not in known],
    }
    told = [
        f"{where}: {len(values)} {kind}, such as {values[:SHOWN]}" for kind, values in kinds.items() if values
    ]
    if told:
        return told
    place = next(at for at, pair in enumerate(zip(wanted, found, strict=True)) if pair[0] != pair[1])
    return [f"{where}: out of order from place {place} on: {found[place]!r} instead of {wanted[place]!r}"]


class Feeder(threading.Thread):
    """Sends every record once, in order, and waits for all acknowledgements."""

    def __init__(self, bootstrap: str, task: Task) -> None:
        super().__init__()
        self._task = task
        self.failures: list[str] = []
        self._producer = Producer(
            {
                **QUICK,
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 20,
                "message.timeout.ms": TRIED_SECONDS * 1000,
                "request.timeout.ms": 5000,
                "retry.backoff.ms": 50,
                "error_cb": lambda _: None,
            }
        )

    @staticmethod
    def values(task: Task, partition: int) -> list[bytes]:
        return [b"%d" % number for number in range(partition, task.records, task.partitions)]

    def run(self) -> None:
        began = time.monotonic()
        for number in range(self._task.records):
            due = began + number / self._task.rate
            while len(self._producer) >= IN_FLIGHT or time.monotonic() < due:
                self._producer.poll(0.02)
            self._producer.produce(
                SOURCE, b"%d" % number, partition=number % self._task.partitions, on_delivery=self._told
            )
            self._producer.poll(0)
        if self._producer.flush(self._task.within):
            self.failures.append("not every record was acknowledged")

    def _told(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.failures.append(f"the source refused a record: {error.name()}")


class Copiers:
    """Some copiers, each of which lives many short lives."""

    def __init__(self, bootstrap: str, task: Task, events: Counter[str], complaints: list[str]) -> None:
        self._bootstrap = bootstrap
        self._task = task
        self._events = events
        self._complaints = complaints
        self._lock = threading.Lock()
        self._ended = threading.Event()
        names = [f"copier-{number}" for number in range(task.copiers)]
        self._threads = [threading.Thread(target=self._live, args=(name,), name=name) for name in names]

    @contextmanager
    def working(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in self._threads:
                thread.join()

    def _live(self, name: str) -> None:
        source = random.Random(f"{self._task.seed}{name}")
        life = CopierLife(name, self._bootstrap, self._task.protocol)
        lives = Lives(lambda _: ToldProcess(life.arguments(), self._hear), source)
        try:
            while not self._ended.is_set():
                lives.live(time.monotonic() + source.uniform(*self._task.life), self._ended)
        except Exception as error:
            self._complaints.append(f"{name}: {error}")
        finally:
            lives.lay_to_rest()
        with self._lock:
            self._events["lives of copiers"] += lives.count
            self._events["copiers woken after they were replaced"] += lives.zombies

    def _hear(self, row: dict[str, Any]) -> None:
        with self._lock:
            if "complaint" in row:
                self._complaints.append(row["complaint"])
            elif "remark" in row:
                self._events[row["remark"]] += 1


def run(task: Task, directory: Path, say: Say = print) -> Result:
    result = Result(task, [])
    began = time.monotonic()
    with Testbed(
        directory, Equipment(), target=task.target, properties={"log.retention.ms": "-1", **PROPERTIES}
    ) as bed:
        bootstrap = bed.cluster.bootstrap
        for topic in (SOURCE, TARGET):
            configs = {"min.insync.replicas": "2", **ANY_TIMESTAMP}
            create(bootstrap, topic, task.partitions, replicas=3, config=configs)
            bed.cluster.wait_in_sync(topic)
        feeder = Feeder(bootstrap, task)
        copiers = Copiers(bootstrap, task, result.events, result.differences)
        feeder.start()
        with copiers.working():
            if not _kill_until_copied(task, bed, result, say):
                result.differences.append(f"not everything was copied within {task.within:g} s")
            bed.heal()
            feeder.join()
        result.differences += feeder.failures
        result.seconds = time.monotonic() - began
        _compare(task, bootstrap, result)
    return result


def _kill_until_copied(task: Task, bed: Testbed, result: Result, say: Say) -> bool:
    source = random.Random(task.seed)
    deadline = time.monotonic() + task.within
    while time.monotonic() < deadline:
        pause = time.monotonic() + source.uniform(*task.between_kills)
        while time.monotonic() < pause:
            time.sleep(0.5)
            if _copied(task, bed.cluster.bootstrap) >= task.records:
                return True
        victim = source.choice(bed.numbers)
        say(f"kill -9 of broker {victim}; {_copied(task, bed.cluster.bootstrap)} records are copied")
        bed.cluster.kill(victim)
        result.events["brokers killed"] += 1
        time.sleep(source.uniform(0.2, 2.0))
        bed.restart_ended()
    return False


def _copied(task: Task, bootstrap: str) -> int:
    """How far the group has come, as far as somebody says so."""
    consumer = Consumer(
        {**QUICK, "bootstrap.servers": bootstrap, "group.id": GROUP, "error_cb": lambda _: None}
    )
    try:
        wanted = [TopicPartition(SOURCE, partition) for partition in range(task.partitions)]
        return sum(max(0, one.offset) for one in consumer.committed(wanted, timeout=3))
    except KafkaException:
        return 0
    finally:
        consumer.close()


def _compare(task: Task, bootstrap: str, result: Result) -> None:
    deadline = time.monotonic() + 60
    for topic in (SOURCE, TARGET):
        found: dict[int, list[bytes]] = {partition: [] for partition in range(task.partitions)}
        try:
            for batch in read_committed(bootstrap, topic, task.partitions, deadline):
                for partition, records in batch.items():
                    found[partition] += [value for _, value in records]
        except Hanging as error:
            result.differences.append(str(error))
        for partition, values in found.items():
            wanted = Feeder.values(task, partition)
            if topic == TARGET:
                wanted = [transformed(value) for value in wanted]
                result.copied += len(values)
            result.differences += differences(wanted, values, f"{topic}-{partition}")
    ends = [high_watermark(bootstrap, TARGET, partition, deadline) for partition in range(task.partitions)]
    result.events["offsets of markers and of what was aborted"] = sum(ends) - result.copied


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.exactly_once", description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=None, help="by chance if not given")
    parser.add_argument("--target", choices=("headrace", "kafka"), default="headrace")
    parser.add_argument("--minutes", type=float, default=20.0, help="everything must be copied by then")
    parser.add_argument("--rate", type=float, default=1000.0, help="records a second that come in")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    task = Task(seed, given.records, rate=given.rate, target=given.target, within=given.minutes * 60)
    directory = Path(tempfile.mkdtemp(prefix="exactly-once-"))
    print(f"seed {seed}, in {directory}", flush=True)
    result = run(task, directory, lambda text: print(text, flush=True))
    print(result, flush=True)
    return 0 if result.good else 1


if __name__ == "__main__":
    sys.exit(main())
