"""`headrace doctor` on real brokers: quiet while all is well; what it finds is broken, and its mends mend."""

from __future__ import annotations

import json
import os
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer, TopicPartition

from headrace.cli.main import cli
from headrace.doctor.checks.registry import CHECKS
from headrace.testing.cluster import Cluster
from headrace.testing.zookeeper_jars import CLASSPATH_VARIABLE, ZooKeeperMissing, find_classpath
from tests.cluster_process import eventually
from tests.zookeeper_server import CACHE

pytestmark = pytest.mark.timeout(240)

HOURS_MS = 3_600_000
RECORDS = 100
WITHOUT_DISKS = sorted({check.group for check in CHECKS} - {"disks"})
"""How full the disk of this machine is, is not what a test is about."""
Doctor = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        try:
            patch.setenv(CLASSPATH_VARIABLE, find_classpath(CACHE))
        except ZooKeeperMissing as error:
            pytest.skip(f"{error}; or run `poe clients`")
        properties = {"auto.leader.rebalance.enable": "false"}
        with Cluster(properties, brokers=3, directory=tmp_path_factory.mktemp("doctor")) as running:
            yield running


def headrace(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="headrace")


@pytest.fixture
def doctor(cluster: Cluster) -> Doctor:
    def look(*arguments: str, code: int | None = None) -> dict[str, Any]:
        done = headrace("doctor", *arguments, "--look", "0", "-b", cluster.bootstrap, "--json")
        assert code is None or done.exit_code == code, done.output
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    return look


def levels(told: dict[str, Any]) -> dict[str, str]:
    """The worst level of each check that has found something."""
    return {each["check"]: each["level"] for each in reversed(told["findings"])}


def fill(cluster: Cluster, topic: str, age_ms: int = 0) -> None:
    producer = Producer(cluster.client_config)
    for number in range(RECORDS):
        producer.produce(topic, str(number), partition=0, timestamp=int(time.time() * 1000) - age_ms)
    assert producer.flush(30) == 0


def commit(cluster: Cluster, group: str, topic: str, offset: int, *, subscribes: bool) -> None:
    """As a member that leaves, or as a job that is never one."""
    consumer = Consumer(
        {
            **cluster.client_config,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    if subscribes:
        consumer.subscribe([topic])
        eventually(lambda: consumer.poll(0.2) is not None, 60, "a record is there")
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_a_fresh_cluster_has_nothing_that_is_said(doctor: Doctor) -> None:
    told = doctor(*WITHOUT_DISKS, code=0)
    assert told["findings"] == told["not_known"] == []
    assert told["checks"] > 25
    assert set(levels(doctor("disks"))) <= {"disks-full-soon"}  # if the disk of this machine is


def test_what_was_broken_is_found_and_the_commands_mend_it(cluster: Cluster, doctor: Doctor) -> None:
    cluster.create_topic("alone", replication_factor=1)
    cluster.create_topic("strict", configs={"min.insync.replicas": "3"})
    cluster.create_topic("dropping", configs={"unclean.leader.election.enable": "true"})
    first = headrace("config", "set", "--broker", "1", "log.cleaner.threads=3", "-b", cluster.bootstrap)
    assert first.exit_code == 0, first.output
    broken = {"replication-factor-one", "min-isr-without-reserve", "unclean-elections", "settings-differ"}
    told = doctor(*sorted(broken), code=4)
    assert set(levels(told)) == broken
    for found in told["findings"]:
        for command in found["commands"]:
            done = headrace(*shlex.split(command)[1:])
            assert done.exit_code == 0, (command, done.output)
    eventually(lambda: doctor(*sorted(broken))["findings"] == [], 60, "everything is mended")


def test_groups_that_lose_stand_still_or_are_left_are_found(cluster: Cluster, doctor: Doctor) -> None:
    for name, age_ms in (("lost", 0), ("losing", 22 * HOURS_MS), ("resting", 2 * HOURS_MS), ("unread", 0)):
        cluster.create_topic(name, 1, configs={"retention.ms": str(24 * HOURS_MS)})
        fill(cluster, name, age_ms)
    for group in ("lost", "losing", "left"):
        commit(cluster, group, "lost" if group == "left" else group, RECORDS - 1, subscribes=True)
    commit(cluster, "a job", "resting", 10, subscribes=False)
    commit(cluster, "lost", "lost", 5, subscribes=True)
    assert headrace("topic", "trim", "lost", "--to", "50", "-b", cluster.bootstrap).exit_code == 0
    told = doctor("groups", "topics-unread", code=3)
    assert levels(told) == {
        "groups-losing-records": "serious",
        "jobs-standing-still": "warning",
        "groups-abandoned": "notice",
        "topics-unread": "notice",
    }
    whats = [each["what"] for each in told["findings"]]
    assert "group lost has missed 45 records that retention removed" in whats
    assert any(each.startswith("group losing is about to miss") for each in whats)
    assert any(each.startswith("job a job has not committed") for each in whats)
    assert "group left has no members, and 1 records to read" in whats
    (unread,) = [each for each in told["findings"] if each["check"] == "topics-unread"]
    assert unread["where"] == ["unread"]


def test_the_mark_of_a_transaction_is_no_record_that_nobody_has_read(
    cluster: Cluster, doctor: Doctor
) -> None:
    cluster.create_topic("marked", 1)
    producer = Producer({**cluster.client_config, "transactional.id": "marks"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("marked", "one", timestamp=int(time.time() * 1000) - 2 * HOURS_MS)
    producer.commit_transaction(60)
    commit(cluster, "a reader", "marked", 1, subscribes=False)
    commit(cluster, "a sleeper", "marked", 0, subscribes=False)
    named = [each["what"] for each in doctor("jobs-standing-still", code=4)["findings"]]
    assert any("job a sleeper has not" in each for each in named)
    assert not any("a reader" in each for each in named)


def test_what_lies_unevenly_is_found(cluster: Cluster, doctor: Doctor) -> None:
    command = ["topic", "create", "uneven", "-p", "150", "-r", "1", "-b", cluster.bootstrap]
    assert headrace(*command).exit_code == 0
    everything = [word for index in range(150) for word in ("--replicas", f"{index}=1")]
    moved = headrace("topic", "reassign", "uneven", *everything, "-b", cluster.bootstrap)
    assert moved.exit_code == 0, moved.output
    found = levels(doctor("balance", code=4))
    assert found == {"leaders-uneven": "warning", "replicas-uneven": "warning"}
    assert headrace("topic", "delete", "uneven", "-b", cluster.bootstrap).exit_code == 0


def test_a_broker_that_is_down_and_a_zookeeper_that_hangs_are_serious(
    cluster: Cluster, doctor: Doctor
) -> None:
    zookeeper = cluster.processes.zookeeper
    assert zookeeper is not None
    os.kill(zookeeper.nodes[0].pid, signal.SIGSTOP)
    try:
        assert "zookeeper-silent" in levels(doctor("health", code=3))
    finally:
        os.kill(zookeeper.nodes[0].pid, signal.SIGCONT)
    eventually(lambda: doctor("health")["findings"] == [], 60, "ZooKeeper answers again")
    cluster.processes.retire(3)
    eventually(
        lambda: {"brokers-down", "partitions-under-replicated"} <= set(levels(doctor("health", code=3))),
        60,
        "the broker is down, and its replicas are out of sync",
    )


def test_one_broker_with_topics_is_told_once_and_a_user_without_rights_learns_that_it_is_not_known(
    tmp_path: Path,
) -> None:
    with Cluster(secure=True, directory=tmp_path) as alone:
        for name in ("one", "two"):
            alone.create_topic(name)
        admin = ("--command-config", str(alone.client_files.java), "-b", alone.bootstrap)
        told = json.loads(headrace("doctor", *WITHOUT_DISKS, "--json", "--look", "0", *admin).stdout)
        assert [each["check"] for each in told["findings"]] == ["replication-factor-one"]
        assert told["not_known"] == []

        guest = tmp_path / "guest.properties"
        made = headrace("user", "create", "guest", "--client-config", str(guest), *admin)
        assert made.exit_code == 0, made.output
        denied = headrace(
            "doctor", "--json", "--look", "0", "--command-config", str(guest), "-b", alone.bootstrap
        )
        assert denied.exit_code == 5, denied.output
        not_known = {each["check"]: each["why"] for each in json.loads(denied.stdout)["not_known"]}
        assert "denied" in not_known["settings-differ"]
        assert "denied" in not_known["disks-full-soon"]
        assert {"protection", "told-by-brokers", "descriptors-few"} <= set(not_known)
