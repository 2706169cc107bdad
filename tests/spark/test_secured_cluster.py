"""A standalone Spark cluster, and secured brokers of either kind. Workers have a token and nothing else.

The driver has a password, and a certificate with a key. Neither gets to a worker: not into its files, its
environment or its memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.both_brokers import TARGETS
from tests.broker_process import BrokerProcess, write_properties
from tests.certificates import Authority
from tests.ports import own_port
from tests.secured_broker import identity, make_users, secured_properties
from tests.spark import processes
from tests.spark.connector.topics import create
from tests.spark.driver_process import DriverProcess
from tests.spark.heaps import held_in_memory
from tests.spark.secured_job import RECORDS, SPARK_S_OWN, Orders
from tests.spark.shown import kept
from tests.spark.standalone import Standalone

PASSWORD: Final = "canary-password-41d7"
STORE_PASSWORD: Final = "canary-store-90ce"
_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Secured(NamedTuple):
    broker: BrokerProcess
    by_password: Path
    by_certificate: Path


@pytest.fixture(scope="module", params=list(TARGETS))
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    authority = Authority(directory)
    properties = secured_properties(authority, {"alice": PASSWORD})
    properties["delegation.token.secret.key"] = "the same on every broker"
    broker = TARGETS[request.param](directory / "broker", properties)
    broker.secured_ports = {"SSL": own_port(), "SASL_SSL": own_port()}
    with broker:
        make_users(broker.bootstrap, {"alice": PASSWORD})
        yield Secured(broker, *_client_files(broker, authority))


def _client_files(broker: BrokerProcess, authority: Authority) -> tuple[Path, Path]:
    """Of alice. Only the driver knows where they are."""
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority.trust_store)}
    by_password, by_certificate = (authority.directory / f"{name}.properties" for name in ("scram", "tls"))
    write_properties(
        by_password,
        {
            "bootstrap.servers": f"127.0.0.1:{broker.secured_ports['SASL_SSL']}",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{_MODULE} required username="alice" password="{PASSWORD}";',
            **trust,
        },
    )
    store = authority.as_pkcs12(identity(authority, "alice"), STORE_PASSWORD)
    write_properties(
        by_certificate,
        {
            "bootstrap.servers": f"127.0.0.1:{broker.secured_ports['SSL']}",
            "security.protocol": "SSL",
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(store),
            "ssl.keystore.password": STORE_PASSWORD,
            **trust,
        },
    )
    return by_password, by_certificate


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with Standalone(tmp_path_factory.mktemp("cluster") / "spark") as cluster:
        yield cluster


@pytest.fixture
def run(
    cluster: Standalone, secured: Secured, new_topic: Callable[[], str], tmp_path: Path
) -> Callable[..., dict[str, object]]:
    def run(*parts: str) -> dict[str, object]:
        """What the job tells, when nothing secret was found anywhere."""
        processes.wait_until(lambda: not cluster.executors(), 60, "the executors of the last job end")
        topic, directory, held = new_topic(), tmp_path / "job", tmp_path / "held"
        for name in (topic, *(f"{topic}-{how}" for how in ("connector", "source", "stream"))):
            create(secured.broker.bootstrap, name, partitions=2)
        directory.mkdir()
        held.touch()
        orders = Orders(
            cluster.url,
            cluster.session_settings(),
            str(directory),
            str(held),
            str(secured.by_password),
            str(secured.by_certificate),
            str(tmp_path / "token"),
            topic,
            list(parts),
        )
        out = directory / "driver.out"
        with DriverProcess("tests.spark.secured_job", orders.to_json(), out) as driver:
            results = directory / "results.json"
            processes.wait_until(lambda: results.exists() or driver.status is not None, 300, "the job ends")
            assert results.exists(), driver.tail()
            _look_into_workers(cluster, tmp_path)
            held.unlink()
            assert driver.wait(60) == 0, driver.tail()
        files = kept(directory)
        assert topic.encode() in files
        for secret in (PASSWORD, STORE_PASSWORD, (tmp_path / "token").read_text()):
            assert secret.encode() not in files
        found: dict[str, object] = json.loads(results.read_text())
        return found

    return run


def _look_into_workers(cluster: Standalone, directory: Path) -> None:
    token = (directory / "token").read_text()
    executors = cluster.executors()
    assert len(executors) == 2
    secrets = (PASSWORD, STORE_PASSWORD, token)
    memories = [held_in_memory(pid, secrets, directory / "heap.hprof") for pid in executors]
    # The token is a sign that what is there would be found.
    assert set().union(*memories) == {token}
    for worker in cluster.workers:
        for pid in (worker.pid, *processes.descendants(worker.pid)):
            told = " ".join((*processes.command_line(pid), processes.environment(pid)))
            assert "canary" not in told
            assert token not in told
    logged = kept(cluster.directory)
    assert b"sasl.jaas.config = [hidden]" in logged, "else no canary could be seen there"
    assert b"canary" not in logged
    assert token.encode() not in logged


def test_workers_read_and_write_with_a_token_and_know_nothing_else(
    run: Callable[..., dict[str, object]],
) -> None:
    found = run("sink", "source", SPARK_S_OWN)
    assert (found["sink"], found["source"], found["by certificate"]) == (RECORDS, RECORDS, RECORDS)
    assert found["owner"] == "User:alice"
    assert "Authentication failed" in str(found["afterwards"]), "a token that was expired logs in nobody"
    # docs/security.md says what Spark does itself on such a cluster.
    assert found["made by Spark itself"] is False
    assert found[SPARK_S_OWN] == RECORDS


def test_streams_lake_table_and_audit_with_a_token(run: Callable[..., dict[str, object]]) -> None:
    parts = ("sink", "stream", "connector", "lake", "table", "audit")
    found = run(*parts)
    assert {name: found[name] for name in parts} == dict.fromkeys(parts, RECORDS)
