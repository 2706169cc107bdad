"""A real broker process for each worker, and the clients that are connected to it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from tests.apache_kafka import TOOL_VERSIONS, KafkaTools
from tests.both_brokers import TARGETS
from tests.broker_process import BrokerProcess
from tests.compatibility.clients.all import CLIENTS, connect
from tests.compatibility.clients.client import Client
from tests.compatibility.clients.confluent import ConfluentClient
from tests.compatibility.log_dump import complaints
from tests.compatibility.members.all import Programs

Run = Callable[..., str]
StartBroker = Callable[[Path, Mapping[str, str]], BrokerProcess]
#: Rebalances of one or two members need not wait for more, and heartbeats notice them soon.
_QUICK_GROUPS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.assignment.interval.ms": "0",
}
_numbers = itertools.count()


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--target"))


@pytest.fixture(scope="session")
def new_broker(target: str) -> StartBroker:
    """Makes a broker of the chosen kind; the caller starts and stops it."""
    return lambda directory, properties: TARGETS[target](directory, properties)


@pytest.fixture(scope="session")
def tools_431() -> Iterator[KafkaTools]:
    with KafkaTools("4.3.1") as tools:
        yield tools


@pytest.fixture(scope="session")
def broker(
    new_broker: StartBroker, tmp_path_factory: pytest.TempPathFactory, tools_431: KafkaTools
) -> Iterator[BrokerProcess]:
    """One broker for all tests of a worker. Kafka's own tool must accept every file that it leaves."""
    process = new_broker(tmp_path_factory.mktemp("broker"), _QUICK_GROUPS)
    with process:
        yield process
    assert complaints(tools_431, process.log_dir) == []


@pytest.fixture(scope="session", params=list(CLIENTS))
def client(request: pytest.FixtureRequest, broker: BrokerProcess) -> Iterator[Client]:
    """Each client under test in turn."""
    connected = connect(request.param, broker.bootstrap)
    yield connected
    connected.close()


@pytest.fixture(scope="session")
def programs() -> Iterator[Programs]:
    """Programs around clients of other languages, each started when it is needed."""
    with Programs() as running:
        yield running


@pytest.fixture(scope="session")
def librdkafka(broker: BrokerProcess) -> Iterator[ConfluentClient]:
    """One client that is always there, to prepare what another client is tested on."""
    connected = ConfluentClient(broker.bootstrap)
    yield connected
    connected.close()


@pytest.fixture(scope="session", params=TOOL_VERSIONS)
def tools(request: pytest.FixtureRequest) -> Iterator[KafkaTools]:
    with KafkaTools(request.param) as connected:
        yield connected


@pytest.fixture
def topic() -> str:
    """A name that no other test, nor any other worker, uses."""
    return f"t-{os.getpid()}-{next(_numbers)}"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(operation): runs for the clients that have this operation")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a client's own library does not offer: it says nothing about the broker."""
    impossible = []
    for item in items:
        needs = item.get_closest_marker("needs")
        call = getattr(item, "callspec", None)
        if call is None or "client" not in call.params:
            continue
        kind = CLIENTS[call.params["client"]]
        no_operation = needs is not None and needs.args[0] not in kind.operations
        if no_operation or call.params.get("compression") in kind.lacks:
            impossible.append(item)
    if impossible:
        config.hook.pytest_deselected(items=impossible)
        items[:] = [item for item in items if item not in impossible]


@pytest.fixture(scope="session")
def run(broker: BrokerProcess) -> Run:
    """Runs a command against the broker, and returns what it prints."""

    def invoke(*arguments: str, stdin: str | None = None, code: int | None = 0) -> str:
        environment = {"HEADRACE_BOOTSTRAP": broker.bootstrap}
        done = CliRunner().invoke(cli, arguments, input=stdin, env=environment, prog_name="headrace")
        assert code in (None, done.exit_code), (arguments, done.output, done.exception)
        return done.stdout

    return invoke
