"""A linked topic under chaos: `python -m tests.chaos.linked --rounds 20`.

Two clusters. Brokers of both are killed and started again while a transactional producer writes at the
source. At the end every replica of the copy has the source's bytes, the copy is promoted while a leader dies,
and what was open is aborted.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer

from tests.apache_kafka import ApacheKafka
from tests.cluster_process import HeadraceCluster, eventually
from tests.integration.real_client import create
from tests.linked_logs import digest, without_epochs
from tests.unit.cli.serving import runner

TOPIC = "linked"
PARTITIONS = 3
SECONDS = 120.0
SHORT_SESSIONS = {"zookeeper.session.timeout.ms": "6000", "min.insync.replicas": "2"}
CLUSTER = {
    **SHORT_SESSIONS,
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "default.replication.factor": "3",
}


class Load:
    """Transactions, some of them aborted, until it is told to stop."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.committed = 0
        self.refusals = 0
        self._thread.start()

    def _producer(self) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "transactional.id": "load",
                "transaction.timeout.ms": 60_000,
                "linger.ms": 2,
                "log_level": 0,
            }
        )
        producer.init_transactions(SECONDS)
        return producer

    def _run(self) -> None:
        producer, round_ = None, 0
        while not self._over.is_set():
            try:
                producer = producer or self._producer()
                producer.begin_transaction()
                for i in range(60):
                    producer.produce(TOPIC, f"{round_} {i}".encode() * 20, partition=i % PARTITIONS)
                producer.flush(SECONDS)
                if round_ % 4 == 3:
                    producer.abort_transaction(SECONDS)
                else:
                    producer.commit_transaction(SECONDS)
                    self.committed += 60
                round_ += 1
            except KafkaException as error:
                self.refusals += 1
                if not error.args[0].txn_requires_abort():
                    producer = None
                    continue
                try:
                    assert producer is not None
                    producer.abort_transaction(SECONDS)
                except KafkaException:
                    producer = None

    def stop(self) -> None:
        self._over.set()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()


class Linked:
    def __init__(self, directory: Path, *, from_kafka: bool) -> None:
        self.target = HeadraceCluster(directory / "target", 3, CLUSTER)
        self.source: HeadraceCluster | ApacheKafka
        if from_kafka:
            self.source = ApacheKafka(directory / "source")
        else:
            self.source = HeadraceCluster(directory / "source", 3, CLUSTER)
        self.run = runner("")

    def start(self) -> None:
        self.target.start()
        self.source.start()
        self.run = runner(self.target.bootstrap)
        create(self.source.bootstrap, TOPIC, PARTITIONS, replicas=1 if self.is_kafka else 3)

    def stop(self) -> None:
        self.source.stop()
        self.target.stop()

    @property
    def is_kafka(self) -> bool:
        return isinstance(self.source, ApacheKafka)

    def described(self) -> Any:
        return json.loads(self.run("link", "describe", TOPIC, "--json").stdout)

    def hurt_source(self, dice: random.Random) -> str:
        if isinstance(self.source, ApacheKafka):
            self.source.kill()
            self.source.start()
            return "killed the source"
        return _hurt(self.source, dice, "source")

    def hurt_target(self, dice: random.Random) -> str:
        return _hurt(self.target, dice, "target")

    def source_log(self, partition: int) -> Path:
        """Of the leader, which has all that is committed."""
        name = f"{TOPIC}-{partition}"
        if isinstance(self.source, HeadraceCluster):
            return self.source.brokers[self.source.leader(TOPIC, partition)].log_dir / name
        return self.source.log_dir / name

    def target_logs(self, partition: int) -> list[Path]:
        return [broker.log_dir / f"{TOPIC}-{partition}" for broker in self.target.brokers.values()]

    def wait_copied(self) -> None:
        def is_copied() -> bool:
            view = self.described()
            return bool(view["lag"] == 0 and view["state"] == "ACTIVE")

        eventually(is_copied, SECONDS, "the copy has all")
        self.target.wait_in_sync(TOPIC, SECONDS)

    def same(self, partition: int) -> bool:
        expected = digest(self.source_log(partition))
        return all(digest(path) == expected for path in self.target_logs(partition))


def _hurt(cluster: HeadraceCluster, dice: random.Random, name: str) -> str:
    victim = dice.choice(list(cluster.brokers))
    if dice.random() < 0.5:
        victim = cluster.leader(TOPIC, dice.randrange(PARTITIONS))
    cluster.kill(victim)
    time.sleep(dice.uniform(0.5, 8))
    cluster.restart(victim)
    cluster.wait_in_sync(TOPIC, SECONDS)
    return f"killed broker {victim} of the {name}"


def run(directory: Path, *, rounds: int, seed: int, from_kafka: bool, tell: bool = False) -> str:
    """One sentence about what was shown; AssertionError if it was not."""
    dice = random.Random(seed)
    linked = Linked(directory, from_kafka=from_kafka)
    try:
        linked.start()
        linked.run("link", "create", TOPIC, "--source", linked.source.bootstrap, "-r", "3")
        load = Load(linked.source.bootstrap)
        for number in range(rounds):
            done = linked.hurt_target(dice) if number % 2 == 0 else linked.hurt_source(dice)
            if tell:
                print(f"{time.strftime('%H:%M:%S')} {number + 1}/{rounds}: {done}", flush=True)
        load.stop()
        linked.wait_copied()
        for partition in range(PARTITIONS):
            eventually(lambda: linked.same(partition), SECONDS, "the same bytes")  # noqa: B023 - called here
        size = sum(len(without_epochs(linked.source_log(each))) for each in range(PARTITIONS))
        _promote(linked)
        return (
            f"{load.committed} records committed, {size} bytes the same on every replica, {rounds} kills,"
            f" {load.refusals} transactions refused at the source"
        )
    finally:
        linked.stop()


def _promote(linked: Linked) -> None:
    """With a transaction that is open, and a leader that dies as soon as it is asked for."""
    producer = Producer(
        {"bootstrap.servers": linked.source.bootstrap, "transactional.id": "open", "log_level": 0}
    )
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        producer.produce(TOPIC, b"open", partition=partition)
    producer.flush(SECONDS)
    linked.wait_copied()
    ends = [each["end"] for each in linked.described()["partitions"]]
    victim = linked.target.leader(TOPIC, 0)
    asked = threading.Thread(
        target=lambda: linked.run("link", "promote", TOPIC, "--yes", "--timeout", str(SECONDS))
    )
    asked.start()
    linked.target.kill(victim)
    asked.join(SECONDS)
    linked.target.restart(victim)
    eventually(lambda: linked.described()["state"] == "PROMOTED", SECONDS, "the copy is promoted")
    assert [each["opened"] for each in linked.described()["partitions"]] == [end + 1 for end in ends]
    own = Producer({"bootstrap.servers": linked.target.bootstrap, "enable.idempotence": True})
    refused: list[object] = []
    for partition in range(PARTITIONS):
        own.produce(TOPIC, b"own", partition=partition, on_delivery=lambda error, _: refused.append(error))
    own.flush(SECONDS)
    assert refused == [None] * PARTITIONS
    producer.abort_transaction(SECONDS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from-kafka", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        print(
            run(
                Path(directory),
                rounds=options.rounds,
                seed=options.seed,
                from_kafka=options.from_kafka,
                tell=True,
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
