"""A real ZooKeeper with TLS and ACLs: who gets in, what is said to who does not, and whose the nodes are."""

from __future__ import annotations

import asyncio
import itertools
import logging
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.handlers.threading import KazooTimeoutError

from headrace.cli.main import cli
from headrace.client.certificates import Authority
from headrace.config.broker import BrokerConfig
from headrace.coordination.restore import restore
from headrace.coordination.zookeeper import ZooKeeperCoordination
from headrace.core.errors import ConfigError
from headrace.core.ids import BrokerEpoch, BrokerId, ControllerEpoch
from headrace.core.ports_coordination import ControllerFenced, CoordinationUnavailable, SessionState
from headrace.testing.zookeeper import free_ports
from tests.broker_process import HeadraceProcess, write_properties
from tests.unit.coordination.worlds import batch
from tests.zookeeper_server import SecureZooKeeper

_numbers = itertools.count()
OWNER = "CN=brokers"
CANARY = "canary-digest-77aa"


@pytest.fixture(scope="module")
def plain_port() -> int:
    (port,) = free_ports("127.0.0.1", 1)
    return port


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, plain_port: int) -> Iterator[SecureZooKeeper]:
    """Beside TLS it listens without, as servers do while a cluster migrates."""
    made = SecureZooKeeper(
        tmp_path_factory.mktemp("secured"), f"clientPort={plain_port}", "clientPortAddress=127.0.0.1"
    )
    with made.server:
        yield made


@pytest.fixture
def chroot() -> str:
    return f"/tls{next(_numbers)}"


def coordination_of(
    connect: str, properties: dict[str, str], session_timeout_ms: int = 6_000
) -> ZooKeeperCoordination:
    config = BrokerConfig.parse({"zookeeper.connect": connect, **properties})
    assert config.zookeeper is not None
    return ZooKeeperCoordination(
        config.zookeeper,
        session_timeout_ms=session_timeout_ms,
        connection_timeout_ms=20_000,
        security=config.zookeeper_security,
    )


async def use(coordination: ZooKeeperCoordination) -> None:
    """Make every kind of node that a cluster has."""
    await coordination.claim_cluster_id("a-cluster", directories_empty=True)
    await coordination.register(BrokerId(1), b"{}")
    await coordination.note_versions(BrokerId(1), {})
    epoch = await coordination.claim_controller(BrokerId(1))
    end = await coordination.end()
    await coordination.append(end, batch(end, b"record", epoch=epoch), epoch)


async def start_fails(connect: str, properties: dict[str, str]) -> str:
    config = BrokerConfig.parse({"zookeeper.connect": connect, **properties})
    assert config.zookeeper is not None
    coordination = ZooKeeperCoordination(
        config.zookeeper, connection_timeout_ms=2_000, security=config.zookeeper_security
    )
    with pytest.raises(CoordinationUnavailable) as raised:
        await coordination.start()
    return str(raised.value)


class Foreigner:
    """Another program's client. kazoo's own TLS, where a context is given to it."""

    def __init__(self, port: int, identity: Path | None = None, trust: Path | None = None) -> None:
        keys: dict[str, Any] = {}
        if trust is not None:
            keys = {"use_ssl": True, "ca": str(trust), "certfile": identity and str(identity)}
            keys["keyfile"] = keys["certfile"]
        self.client = KazooClient(hosts=f"127.0.0.1:{port}", timeout=5, **keys)

    def __enter__(self) -> KazooClient:
        self.client.start(10)
        return self.client

    def __exit__(self, *_: object) -> None:
        self.client.stop()
        self.client.close()


def nodes_below(client: KazooClient, path: str) -> Iterator[str]:
    yield path
    for name in client.get_children(path):
        yield from nodes_below(client, f"{path}/{name}")


# --- who gets in --------------------------------------------------------------------------------------------


async def test_a_strange_authority_is_not_trusted(secured: SecureZooKeeper, tmp_path: Path) -> None:
    strange = Authority.at(tmp_path / "strange")
    told = await start_fails(
        secured.connect, secured.properties(zookeeper_ssl_truststore_location=str(strange.path))
    )
    assert "its certificate is not trusted" in told
    assert "zookeeper.ssl.truststore.location needs the authority that signed it" in told


def test_a_broker_ends_with_what_to_do(secured: SecureZooKeeper, tmp_path: Path) -> None:
    broker = HeadraceProcess(tmp_path / "broker")
    broker.properties = {
        **secured.properties(zookeeper_ssl_truststore_location=str(Authority.at(tmp_path / "other").path)),
        "zookeeper.connect": secured.connect,
        "zookeeper.connection.timeout.ms": "1000",
    }
    done = subprocess.run(broker.command(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "zookeeper.ssl.truststore.location needs the authority that signed it" in said


async def test_a_certificate_for_another_host_is_not_accepted(secured: SecureZooKeeper) -> None:
    port = secured.server.nodes[0].port
    told = await start_fails(f"localhost:{port}", secured.properties())
    assert "its certificate is not for localhost" in told
    assert "headrace cert create zookeeper --host localhost" in told


async def test_without_a_certificate_nobody_gets_in(secured: SecureZooKeeper) -> None:
    properties = secured.properties(zookeeper_set_acl="false")
    del properties["zookeeper.ssl.keystore.location"]
    told = await start_fails(secured.connect, properties)
    assert "zookeeper.ssl.keystore.location" in told, told


async def test_a_certificate_of_a_strange_authority_is_refused(
    secured: SecureZooKeeper, tmp_path: Path
) -> None:
    stranger = Authority.at(tmp_path / "strange").issue("brokers", ()).keystore
    told = await start_fails(secured.connect, secured.properties(stranger))
    assert "zookeeper.ssl.keystore.location needs one that its ssl.trustStore.location trusts" in told, told


async def test_a_port_without_tls_is_told(secured: SecureZooKeeper, plain_port: int) -> None:
    told = await start_fails(f"127.0.0.1:{plain_port}", secured.properties())
    assert "secureClientPort" in told


async def test_no_tls_on_a_port_with_it_is_told(secured: SecureZooKeeper) -> None:
    told = await start_fails(secured.connect, {})
    assert "a secureClientPort needs zookeeper.ssl.client.enable" in told


async def test_a_store_that_cannot_be_read_is_told_before_anything(secured: SecureZooKeeper) -> None:
    coordination = coordination_of(secured.connect, secured.properties(Path("/no/such.pem")))
    with pytest.raises(ConfigError, match=r"zookeeper\.ssl\.\*: cannot read /no/such\.pem"):
        await coordination.start()


async def test_a_pkcs12_store_does_as_well(secured: SecureZooKeeper, tmp_path: Path, chroot: str) -> None:
    from tests.certificates import Authority as Stores

    store = tmp_path / "brokers.pem"
    store.write_bytes(secured.tls.own.read_bytes())
    keys = Stores(tmp_path).as_pkcs12(store, CANARY)
    properties = secured.properties(
        keys, zookeeper_ssl_keystore_password=CANARY, zookeeper_ssl_keystore_type="PKCS12"
    )
    coordination = coordination_of(secured.connect + chroot, properties)
    await coordination.start()
    await coordination.close()


async def test_a_renewed_certificate_counts_from_the_next_connection_on(
    tmp_path: Path, secured: SecureZooKeeper, chroot: str
) -> None:
    store = tmp_path / "brokers.pem"
    store.write_bytes(Authority.at(tmp_path / "strange").issue("brokers", ()).keystore.read_bytes())
    config = BrokerConfig.parse({"zookeeper.connect": secured.connect + chroot, **secured.properties(store)})
    assert config.zookeeper is not None
    coordination = ZooKeeperCoordination(
        config.zookeeper, connection_timeout_ms=30_000, security=config.zookeeper_security
    )

    async def renew() -> None:
        await asyncio.sleep(1.0)
        store.write_bytes(secured.tls.own.read_bytes())

    await asyncio.gather(coordination.start(), renew())
    await coordination.close()


# --- what goes over it --------------------------------------------------------------------------------------


async def test_much_is_read_and_written_without_a_pause(secured: SecureZooKeeper, chroot: str) -> None:
    """Several answers in one record of TLS, and one answer in many."""
    coordination = coordination_of(secured.connect + chroot, secured.properties())
    await coordination.start()
    try:
        epoch = await coordination.claim_controller(BrokerId(1))
        for at in range(100):
            size = 400_000 if at % 10 == 0 else 30
            await coordination.append(at, batch(at, bytes(size), epoch=epoch), epoch)
        began = time.monotonic()
        found: list[int] = []
        while len(found) < 100:
            found += [each.sequence for each in await coordination.read(len(found))]
        assert found == list(range(100))
        assert time.monotonic() - began < 5.0, "it waited for a ping to wake it"
    finally:
        await coordination.close()


async def test_a_session_outlives_a_restart_of_the_server(tmp_path: Path) -> None:
    own = SecureZooKeeper(tmp_path)
    with own.server:
        coordination = coordination_of(own.connect, own.properties(), session_timeout_ms=40_000)
        await coordination.start()
        await use(coordination)
        states: list[SessionState] = []
        coordination.watch_session(states.append)
        await asyncio.to_thread(own.server.nodes[0].restart)
        deadline = time.monotonic() + 80
        while SessionState.CONNECTED not in states and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        assert states == [SessionState.SUSPENDED, SessionState.CONNECTED]
        assert BrokerId(1) in await coordination.members()
        await use(coordination)
        await coordination.close()


# --- whose the nodes are ------------------------------------------------------------------------------------


async def test_every_node_belongs_to_the_brokers_alone(
    secured: SecureZooKeeper, plain_port: int, chroot: str
) -> None:
    coordination = coordination_of(secured.connect + chroot, secured.properties())
    await coordination.start()
    await use(coordination)
    try:
        with Foreigner(secured.server.nodes[0].port, secured.tls.own, secured.tls.truststore) as owner:
            nodes = list(nodes_below(owner, chroot))
            assert {node.removeprefix(chroot).split("/")[1] for node in nodes if node != chroot} == {
                "brokers",
                "cluster",
                "controller",
                "controller_epoch",
                "metadata",
            }
            for node in nodes:
                ((_, scheme, name),) = [
                    (entry.perms, entry.id.scheme, entry.id.id) for entry in owner.get_acls(node)[0]
                ]
                assert (scheme, name) == ("x509", OWNER), node
        other = secured.authority.issue(f"other{next(_numbers)}", ()).keystore
        for foreigner in (
            Foreigner(plain_port),
            Foreigner(secured.server.nodes[0].port, other, secured.tls.truststore),
        ):
            with foreigner as client:
                for node in nodes:
                    refuse_all(client, node)
    finally:
        await coordination.close()


def refuse_all(client: KazooClient, node: str) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: client.get(node),
        lambda: client.get_children(node),
        lambda: client.get_acls(node),
        lambda: client.set(node, b"x"),
        lambda: client.create(f"{node}/planted", b"x"),
        lambda: client.set_acls(node, client.get_acls("/")[0]),
    ]
    for attempt in attempts:
        with pytest.raises(NoAuthError):
            attempt()
    if node.count("/") > 1:
        with pytest.raises(NoAuthError):
            client.delete(node, recursive=False)


def test_a_client_without_a_certificate_does_not_connect(secured: SecureZooKeeper) -> None:
    foreigner = Foreigner(secured.server.nodes[0].port, None, secured.tls.truststore)
    with pytest.raises((KazooTimeoutError, ssl.SSLError)), foreigner:
        pass


async def test_what_is_restored_belongs_to_the_brokers_too(secured: SecureZooKeeper, chroot: str) -> None:
    config = BrokerConfig.parse({"zookeeper.connect": secured.connect + chroot, **secured.properties()})
    assert config.zookeeper is not None
    await restore(
        config.zookeeper,
        [batch(0, b"record")],
        cluster_id="a-cluster",
        broker_epoch=BrokerEpoch(7),
        security=config.zookeeper_security,
    )
    with Foreigner(secured.server.nodes[0].port, secured.tls.own, secured.tls.truststore) as owner:
        nodes = list(nodes_below(owner, chroot))
        owners = {entry.id.id for node in nodes for entry in owner.get_acls(node)[0]}
    assert f"{chroot}/metadata/log/{0:020d}" in nodes
    assert owners == {OWNER}


def test_a_restoration_is_told_which_zookeeper(tmp_path: Path) -> None:
    words = ("cluster", "recover-metadata", "--from", str(tmp_path))
    assert "--config FILE with zookeeper.connect, or --zookeeper" in CliRunner().invoke(cli, words).stderr


async def test_brokers_may_share_a_user_instead(
    secured: SecureZooKeeper, chroot: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    first, second = (
        coordination_of(
            secured.connect + chroot,
            secured.properties(
                secured.authority.issue(f"own{next(_numbers)}", ()).keystore,
                headrace_zookeeper_digest=f"brokers:{CANARY}",
            ),
        )
        for _ in range(2)
    )
    await first.start()
    await use(first)
    await second.start()
    await use(second)
    await first.close()
    await second.close()
    assert CANARY not in caplog.text


async def test_a_server_that_asks_for_no_certificates(tmp_path: Path) -> None:
    own = SecureZooKeeper(tmp_path, "ssl.clientAuth=none")
    with own.server:
        told = await start_fails(f"{own.connect}/a", own.properties())
        assert "its servers must ask for certificates" in told
        properties = own.properties(headrace_zookeeper_digest=f"brokers:{CANARY}")
        del properties["zookeeper.ssl.keystore.location"]
        coordination = coordination_of(f"{own.connect}/b", properties)
        await coordination.start()
        await use(coordination)
        with Foreigner(own.server.nodes[0].port, None, own.tls.truststore) as client:
            refuse_all(client, "/b/cluster/id")
            client.add_auth("digest", f"brokers:{CANARY}")
            assert b"a-cluster" in client.get("/b/cluster/id")[0]
        await coordination.close()


async def test_a_broker_of_another_subject_is_told_why_it_is_kept_out(
    secured: SecureZooKeeper, chroot: str
) -> None:
    coordination = coordination_of(secured.connect + chroot, secured.properties())
    await coordination.start()
    await coordination.close()
    other = secured.authority.issue(f"other{next(_numbers)}", ()).keystore
    told = await start_fails(secured.connect + chroot, secured.properties(other))
    assert "All brokers need a certificate of the same subject" in told


# --- from open to closed, and back --------------------------------------------------------------------------


def secure(tmp_path: Path, connect: str, properties: dict[str, str], *words: str) -> Result:
    file = tmp_path / "server.properties"
    write_properties(file, {"zookeeper.connect": connect, **properties})
    return CliRunner().invoke(cli, ("cluster", "secure-zookeeper", "--config", str(file), *words))


async def test_a_cluster_is_migrated(
    secured: SecureZooKeeper,
    plain_port: int,
    chroot: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = coordination_of(f"127.0.0.1:{plain_port}{chroot}", {})
    await before.start()
    await use(before)
    caplog.clear()
    after = coordination_of(secured.connect + chroot, secured.properties())
    await after.start()
    (told,) = [each.getMessage() for each in caplog.records if "open to everybody" in each.getMessage()]
    assert "headrace cluster secure-zookeeper --config FILE" in told

    refused = await asyncio.to_thread(
        secure, tmp_path, secured.connect + chroot, secured.properties(zookeeper_set_acl="false")
    )
    assert refused.exit_code == 1
    assert "zookeeper.set.acl is not true" in refused.stderr
    done = await asyncio.to_thread(secure, tmp_path, secured.connect + chroot, secured.properties())
    assert done.exit_code == 0, done.output
    assert "closed to others" in done.stdout

    with Foreigner(plain_port) as client, pytest.raises(NoAuthError):
        client.get(f"{chroot}/cluster/id")
    caplog.clear()
    another = coordination_of(secured.connect + chroot, secured.properties())
    await another.start()
    assert not [each for each in caplog.records if "open to everybody" in each.getMessage()]
    await another.close()
    caplog.clear()
    for _ in range(3):
        with pytest.raises(CoordinationUnavailable, match="does not let this broker in"):
            await before.latest_epoch()
    assert [each.levelname for each in caplog.records] == ["ERROR"], "told once"
    with pytest.raises(ControllerFenced, match="does not let this broker in"):
        await before.append(1, batch(1, b"record"), ControllerEpoch(0))

    undone = await asyncio.to_thread(
        secure, tmp_path, secured.connect + chroot, secured.properties(), "--undo"
    )
    assert undone.exit_code == 0, undone.output
    await before.latest_epoch()
    with Foreigner(plain_port) as client:
        assert all(
            entry.id.scheme == "world"
            for node in nodes_below(client, chroot)
            for entry in client.get_acls(node)[0]
        )
    await before.close()
    await after.close()


async def test_while_brokers_are_restarted_with_acls_the_others_go_on(
    secured: SecureZooKeeper, chroot: str
) -> None:
    """Who has the certificate sees both kinds of nodes, whether it makes closed ones itself or not."""
    ports = {
        sets: coordination_of(secured.connect + chroot, secured.properties(zookeeper_set_acl=sets))
        for sets in ("true", "false")
    }
    for port in ports.values():
        await port.start()
    for port in (*ports.values(), *ports.values()):
        await use(port)
    assert await ports["true"].latest_epoch() == await ports["false"].latest_epoch() == 3
    for port in ports.values():
        assert len(await port.read(0)) == 4
        await port.close()


def test_where_there_is_no_cluster_it_is_said(secured: SecureZooKeeper, chroot: str, tmp_path: Path) -> None:
    done = secure(tmp_path, secured.connect + chroot, secured.properties())
    assert done.exit_code == 1
    assert "has no cluster" in done.stderr


@pytest.mark.parametrize("is_shared", [False, True])
def test_without_a_chroot_the_root_is_closed_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_shared: bool
) -> None:
    """Children are deleted by the right of their parent: an open root would give the controller away. Brokers
    close it where nobody else is at home; else it takes the command."""
    (port,) = free_ports("127.0.0.1", 1)
    own = SecureZooKeeper(tmp_path, f"clientPort={port}", "clientPortAddress=127.0.0.1")

    async def begin() -> None:
        coordination = coordination_of(own.connect, own.properties())
        await coordination.start()
        await use(coordination)
        await coordination.close()

    with own.server:
        if is_shared:
            with Foreigner(port) as client:
                client.create("/somebody", b"")
        asyncio.run(begin())
        assert ("open to everybody" in caplog.text) == is_shared
        if is_shared:
            with Foreigner(port) as client:
                client.create("/planted", b"")
            done = secure(tmp_path, own.connect, own.properties())
            assert done.exit_code == 0, done.output
        with Foreigner(port) as client:
            attempts: list[Callable[[], object]] = [
                lambda: client.delete("/controller_epoch"),
                lambda: client.create("/controller", b"x"),
                lambda: client.get_children("/"),
            ]
            for attempt in attempts:
                with pytest.raises(NoAuthError):
                    attempt()
        asyncio.run(begin())
