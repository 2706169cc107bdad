"""A running Apache Kafka becomes Headrace under load: `python -m tests.chaos.migrated --brokers 3`.

Producers, a transactional producer and a group work at the source until it refuses them, and go on at the
target. The checker knows what each was told: every acknowledged record is at the target once, nothing of an
aborted transaction is, and the group has read every record once. With `--kill` each step is killed with -9
and run again.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.apache_kafka import ApacheKafka
from tests.broker_process import HEADRACE, HeadraceProcess
from tests.chaos.apache_kafka_cluster import ApacheKafkaCluster
from tests.chaos.migrating_clients import Clients
from tests.cluster_process import HeadraceCluster
from tests.integration.real_client import create

TOPICS = {"orders": 6, "bills": 3}
SECONDS = 240.0
WITH_RULES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "group.initial.rebalance.delay.ms": "0",
}
#: Members of a quorum are heard before there are rules only if they are super users, and those no rule keeps
#: from writing: so they log in, and clients do not.
QUORUM = {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN",
    "super.users": "User:member",
    "listener.name.controller.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        ' username="member" password="member" user_member="member";'
    ),
}
TARGET = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}
STEPS = (
    ("link", "--until-lag", "100"),
    ("prove",),
    ("groups",),
    ("cutover", "--yes", "--fence-with", "acl", "--everybody-may-read"),
)


class Migrated:
    def __init__(self, directory: Path, brokers: int) -> None:
        self.state = directory / "migration.json"
        self.brokers = brokers
        self.source: ApacheKafka | ApacheKafkaCluster
        self.target: HeadraceProcess | HeadraceCluster
        if brokers == 1:
            self.source = ApacheKafka(directory / "source", WITH_RULES)
            self.target = HeadraceProcess(directory / "target", TARGET)
        else:
            properties = {**WITH_RULES, **QUORUM, "min.insync.replicas": "2"}
            self.source = ApacheKafkaCluster(directory / "source", brokers, properties)
            properties = {**TARGET, "default.replication.factor": str(brokers), "min.insync.replicas": "2"}
            self.target = HeadraceCluster(directory / "target", brokers, properties)

    def start(self) -> None:
        self.source.start()
        self.target.start()
        for topic, partitions in TOPICS.items():
            create(self.source.bootstrap, topic, partitions, replicas=self.brokers)

    def stop(self) -> None:
        self.target.stop()
        self.source.stop()

    def launch(self, *step: str) -> subprocess.Popen[str]:
        command = [str(HEADRACE), "migrate", *step, "--state", str(self.state)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, *step: str) -> str:
        process = self.launch(*step)
        output, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, output
        return output

    def plan(self) -> str:
        chosen = [word for topic in TOPICS for word in ("-t", topic)]
        return self.run("plan", "--from", self.source.bootstrap, *chosen, "-b", self.target.bootstrap)

    def kill_within(self, dice: random.Random, *step: str) -> str:
        """Begin a step and end it somewhere. What it had done by then is in the file, or is done again."""
        before = self.state.read_bytes()
        process = self.launch(*step)
        patience = dice.choice((0, 0, 1, 2, 3))
        deadline = time.monotonic() + dice.uniform(0.5, 4)
        changes = 0
        while process.poll() is None and time.monotonic() < deadline:
            if (now := self.state.read_bytes()) != before:
                before, changes = now, changes + 1
                if changes > patience:
                    break
            time.sleep(0.005)
        process.kill()
        process.communicate()
        return f"{step[0]} killed after {changes} entries in its file"

    @property
    def has_promoted(self) -> bool:
        return bool(json.loads(self.state.read_text())["cutover"]["stage"] in ("promoting", "done"))


def run(directory: Path, *, brokers: int, seed: int, kill: bool, rate: float, settle: float) -> str:
    """One sentence about what was shown; AssertionError if it was not."""
    dice = random.Random(seed)
    migrated = Migrated(directory, brokers)
    notes: list[str] = []
    try:
        migrated.start()
        clients = Clients(migrated.source.bootstrap, migrated.target.bootstrap, TOPICS, rate)
        try:
            clients.start()
            clients.wait_busy()
            migrated.plan()
            for step in STEPS:
                if step[0] == "cutover":
                    clients.probe.start()
                    time.sleep(settle)
                for _ in range(2 if kill else 0):
                    notes.append(migrated.kill_within(dice, *step))
                migrated.run(*step)
            clients.leave_the_source()
            migrated.run("groups")
            clients.arrive()
            time.sleep(settle / 2)
        finally:
            clients.stop()
        report: dict[str, Any] = json.loads(migrated.run("report", "--json"))
        assert not report["late"], report
        return "; ".join((clients.judge(), _words(report), *notes))
    finally:
        migrated.stop()


def _words(report: dict[str, Any]) -> str:
    return (
        f"the report says {report['seconds_without_acknowledgements']} s,"
        f" {len(report['transactions_aborted_at_source'])} transactions aborted at the source,"
        f" {len(report['groups'])} groups"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=300.0, help="records a second of each of two producers")
    parser.add_argument("--settle", type=float, default=10.0, help="seconds of load before the cutover")
    parser.add_argument("--kill", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        print(
            run(
                Path(directory),
                brokers=options.brokers,
                seed=options.seed,
                kill=options.kill,
                rate=options.rate,
                settle=options.settle,
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
