"""A small load around a fault, and the verdict on it: what the fault tests have in common."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.chaos.recorder import Recorder
from tests.chaos.testbed import Testbed
from tests.chaos.workload import TOPIC, LibrdkafkaConsumer, LibrdkafkaProducer, read_everything
from tests.checker.check import Verdict, check
from tests.checker.history import Outcome
from tests.cluster_process import eventually

A_DAY = 86_400


class Judged:
    """What a test may ask while its load runs."""

    def __init__(self, bed: Testbed, recorder: Recorder, partitions: int) -> None:
        self.bed = bed
        self.recorder = recorder
        self.partitions = partitions
        self.verdict: Verdict | None = None

    def acknowledged(self) -> int:
        operations = self.recorder.history.operations
        return sum(one.kind == "send" and one.outcome is Outcome.OK for one in operations)

    def wait_acknowledged(self, more: int, seconds: float = 30) -> None:
        wanted = self.acknowledged() + more
        eventually(lambda: self.acknowledged() >= wanted, seconds, f"{more} more records are acknowledged")

    def unknown(self) -> list[str]:
        return [
            one.error
            for one in self.recorder.history.operations
            if one.kind == "send" and one.ended and one.outcome is Outcome.UNKNOWN
        ]

    def wait_leader_other_than(self, old: int, seconds: float = 30, partition: int = 0) -> int:
        """Asks only those who may know better than the old leader."""
        others = [number for number in self.bed.numbers if number != old]

        def leaders() -> set[int]:
            running = [n for n in others if self.bed.cluster.brokers[n].running]
            return {self.bed.cluster.ask(n, TOPIC).partitions[TOPIC, partition].leader for n in running}

        eventually(lambda: not leaders() & {old, -1}, seconds, f"another leader than {old}")
        return leaders().pop()


@contextlib.contextmanager
def judged(
    bed: Testbed,
    directory: Path,
    assignments: Sequence[Sequence[int]] = ((1, 2, 3), (2, 3, 1)),
    *,
    rate: float = 200.0,
    configs: Mapping[str, str] | None = None,
) -> Iterator[Judged]:
    """Load inside the block. After it all is mended, in sync and read, and no anomaly is allowed."""
    bed.cluster.create_topic(TOPIC, assignments, {"min.insync.replicas": "2", **(configs or {})})
    with Recorder(directory / "history.jsonl") as recorder:
        run = Judged(bed, recorder, len(assignments))
        common = (bed.cluster.bootstrap, len(assignments), recorder)
        producer = LibrdkafkaProducer("p0", *common, "p0", rate=rate)
        producer.life_seconds = (A_DAY, A_DAY)  # a write of unknown fate is then the fault's doing
        clients = [producer, LibrdkafkaConsumer("c0", *common, "c0")]
        for client in clients:
            client.start()
        try:
            run.wait_acknowledged(20)
            yield run
            bed.heal()
            bed.cluster.wait_whole(60)
            bed.cluster.wait_in_sync(TOPIC, 60)
            run.wait_acknowledged(20)
        finally:
            for client in clients:
                client.stop()
            for client in clients:
                client.join()
        read_everything(bed.cluster.bootstrap, run.partitions, recorder, 60, lambda _: None)
        run.verdict = check(recorder.history)
    assert run.verdict.valid, run.verdict
    assert not recorder.complaints, recorder.complaints
    assert run.verdict.acknowledged > 50, "there was hardly any load"
    wait_same_logs(bed, TOPIC, run.partitions)


def wait_same_logs(bed: Testbed, topic: str, partitions: int, seconds: float = 20) -> None:
    """Replicas hold the same bytes: followers copy batches, they do not make them."""
    eventually(
        lambda: all(len({*log_bytes(bed, topic, p).values()}) == 1 for p in range(partitions)),
        seconds,
        f"the replicas of {topic} hold the same bytes",
    )


def log_bytes(bed: Testbed, topic: str, partition: int) -> dict[int, bytes]:
    """The whole log of each replica, whatever its segments are."""
    found: dict[int, bytes] = {}
    for number in bed.numbers:
        for root in bed.log_dirs(number):
            segments = sorted((root / f"{topic}-{partition}").glob("*.log"))
            if segments:
                found[number] = b"".join(segment.read_bytes() for segment in segments)
    return found


def epochs_seen(bed: Testbed, seconds: float) -> dict[tuple[int, int], set[int]]:
    """(partition, leader epoch) to all leaders that anybody named for it, watched for a while."""
    seen: dict[tuple[int, int], set[int]] = {}
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for number, broker in bed.cluster.brokers.items():
            if not broker.running or number in bed.cluster.paused:
                continue
            with contextlib.suppress(OSError, EOFError):
                for (_, partition), row in bed.cluster.ask(number, TOPIC, timeout=0.5).partitions.items():
                    if row.leader >= 0:
                        seen.setdefault((partition, row.leader_epoch), set()).add(row.leader)
        time.sleep(0.1)
    return seen
