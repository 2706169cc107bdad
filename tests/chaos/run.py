"""One run: a cluster under load, faults by chance, everything mended, everything read, and a verdict."""

from __future__ import annotations

import contextlib
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos import java_client, nemeses
from tests.chaos.group_reader import PROTOCOLS
from tests.chaos.java_client import JavaClient
from tests.chaos.recorder import Recorder, longest_silence
from tests.chaos.testbed import Equipment, Testbed
from tests.chaos.transactional_client import PROPERTIES, TransactionalClient, read_to_the_stable_end
from tests.chaos.workload import (
    ANY_TIMESTAMP,
    TOPIC,
    Client,
    LibrdkafkaConsumer,
    LibrdkafkaProducer,
    read_everything,
)
from tests.checker.check import Verdict, check
from tests.cluster_process import eventually
from tests.integration.real_client import create

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What a run does. The same plan has the same faults in the same order."""

    seed: int
    seconds: float
    target: str = "headrace"
    equipment: Equipment = field(default_factory=Equipment)
    brokers: int = 3
    partitions: int = 4
    producers: int = 2
    consumers: int = 1
    java: bool = True
    rate: float = 100.0
    """Records a second of each producer."""
    hold: tuple[float, float] = (2.0, 8.0)
    """How long faults last, in seconds."""
    rest: tuple[float, float] = (1.0, 4.0)
    """How long nothing is done after they were mended."""
    names: Sequence[str] = ()
    """Only these nemeses; all if there are none."""
    transactional: int = 0
    """Transactional clients, beside the others."""

    @property
    def protocol(self) -> str:
        """How the group of the transactional clients works."""
        return list(PROTOCOLS)[self.seed % len(PROTOCOLS)]


@dataclass
class Report:
    plan: Plan
    history: Path
    verdict: Verdict
    complaints: list[str]
    remarks: Counter[str]
    faults: Counter[str]
    silence: tuple[float, float]
    operations: int
    seconds: float
    recovery_seconds: float
    trouble: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return self.verdict.valid and not self.complaints and not self.trouble

    def __str__(self) -> str:
        began, took = self.silence
        lines = [
            f"chaos on {self.plan.target}, seed {self.plan.seed}, {self.seconds:.0f} s of load",
            f"operations: {self.operations}",
            "faults: " + (", ".join(f"{n} x {name}" for name, n in sorted(self.faults.items())) or "none"),
            f"longest time without acknowledgements: {took:.1f} s, from second {began:.1f} of the history on",
            f"whole and in sync {self.recovery_seconds:.1f} s after the last fault was mended",
            *(f"remark: {count} x {text}" for text, count in sorted(self.remarks.items())),
            *(f"TROUBLE: {text}" for text in self.trouble),
            *(f"COMPLAINT: {text}" for text in self.complaints[:20]),
            str(self.verdict),
            f"history: {self.history}",
            "GOOD" if self.good else "BAD",
        ]
        return "\n".join(lines)


def run(plan: Plan, directory: Path, say: Say = print) -> Report:
    directory.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(directory / "cluster", ignore_errors=True)
    path = directory / f"history-{plan.target}-{plan.seed}.jsonl"
    with (
        Recorder(path) as recorder,
        Testbed(
            directory / "cluster",
            plan.equipment,
            target=plan.target,
            brokers=plan.brokers,
            # Consumers and clocks that jump must not make a broker delete what is still to be read.
            properties={"log.retention.ms": "-1", **(PROPERTIES if plan.transactional else {})},
        ) as bed,
    ):
        # Small, so that there are sealed ones to be damaged.
        configs = {"min.insync.replicas": "2", "internal.segment.bytes": "32768", **ANY_TIMESTAMP}
        create(bed.cluster.bootstrap, TOPIC, plan.partitions, replicas=3, config=configs)
        bed.cluster.wait_in_sync(TOPIC)
        say(f"the cluster is whole: {bed.cluster.bootstrap}")
        began = recorder.now()
        with _load(plan, bed, recorder):
            _torment(plan, bed, recorder, say)
            ended = recorder.now()
            trouble, recovery = _recover(bed, recorder, say)
        say("the load has ended")
        _read_at_last(plan, bed, recorder, say)
        disks = _keep_disks(directory)
    verdict = check(recorder.history)
    silence = longest_silence(recorder.history, began, ended)
    report = Report(
        plan,
        path,
        verdict,
        recorder.complaints,
        recorder.remarks,
        recorder.faults,
        silence,
        len(recorder.history.operations),
        ended - began,
        recovery,
        trouble,
    )
    if report.good:
        shutil.rmtree(disks)
    else:
        say(f"what the brokers had on their disks: {disks}")
    return report


def _keep_disks(directory: Path) -> Path:
    """Small disks go with the hosts. Who wrote what, and under which number, is only in the logs."""
    kept = directory / "disks"
    for broker in (directory / "cluster").glob("[0-9]*"):
        with contextlib.suppress(shutil.Error):  # they still run: a file may be gone before it is copied
            shutil.copytree(broker, kept / broker.name)
    return kept


def _read_at_last(plan: Plan, bed: Testbed, recorder: Recorder, say: Say) -> None:
    seconds = 60 + plan.seconds
    if not plan.transactional:
        read_everything(bed.cluster.bootstrap, plan.partitions, recorder, seconds, say)
        return
    for name in (*_names(plan), "final"):
        read_to_the_stable_end(f"{name}/final", bed.cluster.bootstrap, plan.partitions, recorder, seconds)
    say("every client has read everything")


def _names(plan: Plan) -> list[str]:
    return [f"t{number}" for number in range(plan.transactional)]


@contextlib.contextmanager
def _load(plan: Plan, bed: Testbed, recorder: Recorder) -> Iterator[None]:
    clients: list[Client | JavaClient] = []
    common = (bed.cluster.bootstrap, plan.partitions, recorder)
    for number in range(plan.producers):
        clients.append(LibrdkafkaProducer(f"p{number}", *common, f"{plan.seed}p{number}", rate=plan.rate))
    for number in range(plan.consumers):
        clients.append(LibrdkafkaConsumer(f"c{number}", *common, f"{plan.seed}c{number}"))
    for name in _names(plan):
        clients.append(TransactionalClient(name, *common, f"{plan.seed}{name}", protocol=plan.protocol))
    if plan.java and java_client.unavailable() is None:
        clients.append(JavaClient("j0", *common, plan.seed, rate=plan.rate / 2))
    for client in clients:
        client.start()
    failures: list[Exception] = []
    try:
        yield
    except Exception as error:
        failures.append(error)
    for client in clients:
        client.stop()
    for client in clients:
        try:
            client.join()
        except Exception as error:
            failures.append(error)
    if failures:
        raise failures[0]


def _torment(plan: Plan, bed: Testbed, recorder: Recorder, say: Say) -> None:
    source = random.Random(plan.seed)
    began = time.monotonic()
    end = began + plan.seconds
    while (now := time.monotonic()) < end:
        chosen = nemeses.choose(bed, source, plan.names)
        hold = min(source.uniform(*plan.hold), max(0.0, end - now))
        for nemesis in chosen:
            did = nemesis.begin()
            recorder.fault(nemesis.name, did)
            say(f"{time.monotonic() - began:7.1f} s  {did}, for {hold:.1f} s")
        time.sleep(hold)
        # In another order than they began: what mends first matters.
        source.shuffle(chosen)
        for nemesis in chosen:
            nemesis.end()
            recorder.done("nemesis", f"{nemesis.name} is over")
        bed.remove_old_files()
        unexpected = bed.restart_ended()
        if unexpected:
            recorder.remark(f"brokers {unexpected} had ended by themselves")
            say(f"{time.monotonic() - began:7.1f} s  brokers {unexpected} had ended by themselves")
        time.sleep(min(source.uniform(*plan.rest), max(0.0, end - time.monotonic())))


def _recover(bed: Testbed, recorder: Recorder, say: Say) -> tuple[list[str], float]:
    """Liveness: once everything is mended, everybody is in sync and writes go on, without help."""
    bed.heal()
    recorder.done("nemesis", "everything is mended")
    began = time.monotonic()
    trouble: list[str] = []
    try:
        bed.cluster.wait_whole(60)
        bed.cluster.wait_in_sync(TOPIC, 60)
    except AssertionError as error:
        trouble.append(str(error))
    took = time.monotonic() - began
    before = recorder.last_acknowledgement()
    try:
        eventually(lambda: recorder.last_acknowledgement() > before, 30, "writes are acknowledged again")
    except AssertionError as error:
        trouble.append(str(error))
    say(f"whole again after {took:.1f} s")
    if trouble:
        say(bed.cluster.tails())
    return trouble, took
