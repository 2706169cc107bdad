"""`headrace cluster roll` on three real brokers: under load, and with everything that should stop it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.testing.cluster import Cluster
from headrace.testing.zookeeper_jars import CLASSPATH_VARIABLE, ZooKeeperMissing, find_classpath
from tests.cluster.load import Load
from tests.zookeeper_server import CACHE

pytestmark = pytest.mark.timeout(240)

PARTITIONS = 6
BROKERS = (1, 2, 3)
Roll = Callable[..., Result]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Its supervisor starts a broker again that has ended, as systemd would."""
    with pytest.MonkeyPatch.context() as patch:
        try:
            patch.setenv(CLASSPATH_VARIABLE, find_classpath(CACHE))
        except ZooKeeperMissing as error:
            pytest.skip(f"{error}; or run `poe clients`")
        with Cluster(brokers=3, directory=tmp_path_factory.mktemp("roll")) as running:
            running.create_topic("rolled", PARTITIONS)
            yield running


@pytest.fixture
def roll(cluster: Cluster) -> Roll:
    def run(*arguments: str, code: int) -> Result:
        command = ["cluster", "roll", "-b", cluster.bootstrap, *arguments]
        result = CliRunner().invoke(cli, command, prog_name="headrace")
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return run


@pytest.fixture
def pids(cluster: Cluster, tmp_path: Path) -> str:
    """The beginning of the paths of files with process ids, as of now."""
    for number, pid in cluster.processes.pids.items():
        (tmp_path / f"pid-{number}").write_text(str(pid))
    return f"{tmp_path}/pid-"


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def well(cluster: Cluster) -> None:
    waiting = ["cluster", "status", "--wait", "60", "-b", cluster.bootstrap]
    assert CliRunner().invoke(cli, waiting).exit_code == 0


def test_every_broker_is_restarted_and_no_write_fails(cluster: Cluster, roll: Roll, pids: str) -> None:
    assert roll("--check", code=0).stdout == "safe now: 3 brokers to restart, one by one\n"
    before = dict(cluster.processes.pids)
    with Load(cluster.bootstrap, "rolled", PARTITIONS) as load:
        load.wait_flowing()
        done = roll("--exec", f"kill -TERM $(cat {pids}{{broker}})", "--json", code=0)
        load.wait_flowing()
    load.judge()
    told = json.loads(done.stdout)
    assert (sorted(told["restarted"]), told["left"], told["stopped"]) == ([1, 2, 3], [], None)
    assert all(before[number] != cluster.processes.pids[number] for number in BROKERS)
    assert "(3 of 3): restarting" in done.stderr

    again = roll("--exec", "false {broker}", "--since", told["since"], "--json", code=0)
    assert json.loads(again.stdout)["skipped"] == [1, 2, 3]


def test_a_command_that_fails_or_restarts_nothing_stops_it(roll: Roll) -> None:
    failed = roll("--exec", "exit 7 # {host}", "--json", code=3)
    told = json.loads(failed.stdout)
    assert told["restarted"] == []
    assert len(told["left"]) == 3
    assert "failed with 7: exit 7 # 127.0.0.1" in told["stopped"]
    idle = roll("--exec", "true {host}", "--wait", "0.5", code=3)
    assert "has not come back after 0.5 s: the process is the same as before" in idle.stdout
    hanging = roll("--exec", "exec tail -f /dev/null {host}", "--wait", "0.5", code=3)
    assert "has not ended within 0.5 s" in hanging.stdout
    assert "would be the same for every broker" in roll("--exec", "true", code=2).stderr


def test_a_broker_that_does_not_come_back_is_the_last_one_touched(
    cluster: Cluster, roll: Roll, pids: str
) -> None:
    well(cluster)
    before = dict(cluster.processes.pids)
    stop = f"kill -STOP $(cat {pids}{{broker}})"
    gone = roll("--exec", stop, "--wait", "1", "--json", code=3)
    told = json.loads(gone.stdout)
    try:
        assert "has not come back after 1 s" in told["stopped"]
        assert (told["restarted"], len(told["left"])) == ([], 3)
        touched = [number for number in BROKERS if f"broker {number} at" in gone.stderr]
        assert len(touched) == 1
        # Nobody else is restarted either while that one is out.
        (other, _) = [number for number in BROKERS if number not in touched]
        refused = roll("--exec", stop, "--broker", str(other), code=3)
        assert refused.stdout.startswith("stopped: ")
        assert "restarting" not in refused.stderr
    finally:
        for pid in before.values():
            os.kill(pid, signal.SIGCONT)
    well(cluster)


def test_it_does_not_begin_while_zookeeper_hangs(cluster: Cluster, roll: Roll) -> None:
    well(cluster)
    zookeeper = cluster.processes.zookeeper
    assert zookeeper is not None
    with stopped(zookeeper.nodes[0].pid):
        for arguments in (("--check",), ("--exec", "false {broker}")):
            assert "no broker reaches ZooKeeper" in roll(*arguments, code=3).stdout
    well(cluster)


def test_a_partition_that_would_pause_is_named_first(cluster: Cluster, roll: Roll) -> None:
    well(cluster)
    cluster.create_topic("alone", replication_factor=1)
    refused = roll("--check", code=3)
    assert refused.stdout.startswith("not safe: without broker ")
    assert "alone-0" in refused.stdout
    assert roll("--check", "--allow-pauses", code=0).stdout.startswith("safe now: ")
