"""ZooKeeper hangs or is gone: data goes on, and everything that an operator looks at says so.

The server is stopped by SIGSTOP: it keeps its connections and answers nothing. So whatever is asked after
that cannot be answered, and no verdict here waits for a time-out of a session.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headrace.cli import cluster_status
from headrace.cli.main import cli
from headrace.client.cluster import Cluster
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.testing.zookeeper import Node
from tests.broker_process import BrokerProcess
from tests.cluster_process import HeadraceCluster, eventually
from tests.integration.zookeeper_relay import Relay
from tests.ports import own_port
from tests.wire import Wire
from tests.zookeeper_server import zookeeper_at

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
SECONDS = 60.0
NO_BROKER = "degraded: no broker reaches ZooKeeper; no elections, no topic changes; do not restart brokers:"

pytestmark = pytest.mark.timeout(240)


class Watched(HeadraceCluster):
    """Three brokers that also serve their metrics, and a ZooKeeper to torment."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, 3, {"default.replication.factor": "3", "min.insync.replicas": "2"})
        self.zookeeper = zookeeper_at(directory / "zookeeper")
        self.pages: dict[int, int] = {}
        self.adapt = self._serve_metrics

    def _serve_metrics(self, broker: BrokerProcess) -> None:
        port = own_port()
        self.pages[len(self.pages) + 1] = port
        broker.properties["headrace.metrics.listener"] = f"127.0.0.1:{port}"

    def page(self, broker_id: int, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.pages[broker_id]}{path}", timeout=30
            ) as told:
                return told.status, told.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def command(self, *args: str) -> Result:
        return CliRunner().invoke(cli, args, env={"HEADRACE_BOOTSTRAP": self.bootstrap}, prog_name="headrace")

    def status(self) -> Any:
        return json.loads(self.command("cluster", "status", "--json").stdout)

    def wait_healthy(self) -> None:
        eventually(lambda: self.status()["verdict"] == "healthy", SECONDS, "the cluster is healthy")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with Watched(tmp_path_factory.mktemp("hanging")) as cluster:
        cluster.create_topic("t", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        yield cluster


@pytest.fixture
def hung(running: Watched) -> Iterator[Watched]:
    running.wait_healthy()
    (node,) = running.zookeeper.nodes
    node.pause()
    try:
        yield running
    finally:
        node.resume()
        running.wait_healthy()


def test_fault_44_the_status_says_it_and_what_not_to_do(hung: Watched) -> None:
    told = hung.command("cluster", "status")
    assert told.exit_code == 3, told.output
    lines = told.stdout.splitlines()
    assert lines[0].startswith("degraded  cluster ")
    assert lines[1].startswith(NO_BROKER), told.stdout
    assert hung.zookeeper.connect in lines[1]  # where to look
    document = hung.status()
    assert document["verdict"] == "degraded"
    assert [broker["zookeeper"] for broker in document["brokers"]] == ["no answer"] * 3
    assert all(broker["alive"] for broker in document["brokers"])


def test_fault_44_waiting_for_all_to_be_well_fails(hung: Watched) -> None:
    assert hung.command("cluster", "status", "--wait", "0.1").exit_code == 3


def test_fault_44_data_goes_on(hung: Watched) -> None:
    sent = CliRunner().invoke(
        cli, ["produce", "t", "-a", "1", "-b", hung.bootstrap], input="one\ntwo\n", prog_name="headrace"
    )
    assert sent.exit_code == 0, sent.output


def test_fault_44_a_change_is_refused_with_the_reason(hung: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    # Less than the 30 s that a command has, and more than it takes to say what it waits for.
    defaults = Cluster.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "request_timeout", 6.0)
    refused = hung.command("topic", "create", "late")
    assert refused.exit_code == 1
    waiting, *_, error, hint = refused.stderr.splitlines()
    assert waiting.startswith("waiting: the broker at ")
    assert error.startswith("error: ")
    assert hint.startswith(f"hint: no broker reaches ZooKeeper at {hung.zookeeper.connect}: ")


def test_fault_44_any_client_is_told_why_its_request_was_not_carried_out(hung: Watched) -> None:
    """By the wire, as Kafka's own tools would read it; whichever broker is asked."""
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name="other", num_partitions=1, replication_factor=1)], timeout_ms=60_000
    )
    for broker in hung.brokers.values():
        with Wire(broker.port, timeout=SECONDS) as wire:
            answer: CreateTopicsResponse = wire.ask(request, 5, CreateTopicsResponse)
        (told,) = answer.topics
        assert told.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert told.error_message is not None
        assert told.error_message.startswith("the controller cannot reach ZooKeeper: ")


def test_fault_44_the_broker_lives_and_is_not_ready(hung: Watched) -> None:
    ready, said = hung.page(1, "/readyz")
    assert ready == 503
    assert said.startswith(f"ZooKeeper at {hung.zookeeper.connect} "), said
    assert "do not restart" in said
    # This one never waits for an answer, so that nobody takes the broker for dead: it knows a little later.
    eventually(lambda: hung.page(1, "/healthz")[1].startswith("degraded: "), SECONDS, "it is noticed")
    live, said = hung.page(1, "/healthz")
    assert live == 200  # a restart would make it worse
    assert "do not restart" in said


def test_fault_44_the_metrics_say_it(hung: Watched) -> None:
    def silence() -> float:
        (found,) = re.findall(
            r"^headrace_zookeeper_silence_seconds (\S+)$", hung.page(2, "/metrics")[1], re.M
        )
        return float(found)

    first = silence()
    eventually(lambda: silence() >= first + 1.0, SECONDS, "the silence grows")


def test_a_broker_that_does_not_answer_is_not_alive(running: Watched) -> None:
    """Also while nobody can fence it."""
    running.wait_healthy()
    (node,) = running.zookeeper.nodes
    node.pause()
    try:
        running.kill(3)
        states = {broker["id"]: broker["state"] for broker in running.status()["brokers"]}
        assert states == {1: "alive", 2: "alive", 3: "no answer"}
    finally:
        node.resume()
        running.restart(3)
        running.wait_healthy()


@contextmanager
def relayed(node: Node) -> Iterator[tuple[Relay, Callable[[Callable[[], None]], None]]]:
    """A way to a server on a loop of its own, and how to do something to it there."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def enter() -> Relay:
        relay = Relay(node)
        await relay.open()
        return relay

    def call(change: Callable[[], None]) -> None:
        async def run() -> None:
            change()

        asyncio.run_coroutine_threadsafe(run(), loop).result(SECONDS)

    relay = asyncio.run_coroutine_threadsafe(enter(), loop).result(SECONDS)
    try:
        yield relay, call
    finally:
        asyncio.run_coroutine_threadsafe(relay.close(), loop).result(SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_fault_44_brokers_that_alone_do_not_reach_zookeeper_are_named(tmp_path: Path) -> None:
    """A session that outlasts the test: nobody is fenced meanwhile, so only the report can tell."""
    properties = {"zookeeper.session.timeout.ms": "60000"}
    with zookeeper_at(tmp_path / "zookeeper") as zookeeper, relayed(zookeeper.nodes[0]) as (relay, call):
        cluster = HeadraceCluster(tmp_path, 2, properties)
        cluster.zookeeper = zookeeper
        cluster.prepare = lambda: None  # type: ignore[method-assign]  # it runs already

        def send_round(broker: BrokerProcess) -> None:
            if broker.broker_id == 2:
                broker.properties["zookeeper.connect"] = relay.connect

        cluster.adapt = send_round
        with cluster:
            call(lambda: relay.hold(requests=True, answers=True))
            told = CliRunner().invoke(cli, ["cluster", "status", "-b", cluster.bootstrap, "--json"])
            document = json.loads(told.stdout)
            call(relay.release)
    assert [(each["state"], each["zookeeper"]) for each in document["brokers"]] == [
        ("alive", "answers"),
        ("alive", "no answer"),
    ]
    assert document["verdict"] == "degraded"
    (found,) = document["findings"]
    assert found["where"] == ["broker 2"]
    assert told.exit_code == 0  # everything can be read, written and changed


def documented_restart() -> list[str]:
    """The commands of the block, without the words beside them: two blanks or more begin those."""
    chapter = OPERATIONS.read_text().split("\n## Restart the brokers one after the other\n")[1]
    block = chapter.split("```sh\n")[1].split("```\n")[0]
    return [re.split(r"\s{2,}", line)[0] for line in block.splitlines()]


def test_fault_44_the_documented_rolling_restart_stops_before_the_first_broker(
    hung: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    # A minute of an operator's patience passes in a second.
    monkeypatch.setattr(cluster_status, "now", lambda: began + 60 * (time.monotonic() - began))
    followed = []
    for command in documented_restart():
        followed.append(command)
        if command.startswith("headrace ") and hung.command(*command.split()[1:]).exit_code:
            break
    assert followed == ["headrace cluster status --wait 60"]
    assert any(command.startswith("systemctl restart") for command in documented_restart())
