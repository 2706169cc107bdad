"""GSSAPI with other people's clients: Kafka's own, and librdkafka by Cyrus SASL."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation

from tests.apache_kafka import KafkaTools, ToolResult
from tests.broker_process import write_properties
from tests.kerberos.conftest import MODULE, KerberosBroker
from tests.kerberos.realm import NAME, Realm

SECONDS = 120


@pytest.fixture(scope="module")
def users(realm: Realm, broker: KerberosBroker) -> dict[str, Path]:
    """Keytabs. Alice may use the topic `t`, mallory nothing."""
    broker.create_topic("t")
    for operation in (AclOperation.DESCRIBE, AclOperation.READ, AclOperation.WRITE):
        broker.allow("User:alice", "t", operation)
    return {each: realm.add(each) for each in ("alice", "mallory", "admin")}


# --- Java ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tools(realm: Realm) -> Iterator[KafkaTools]:
    """In a JVM that knows the realm: its environment is there already."""
    with KafkaTools("4.3.1") as running:
        yield running


Run = Callable[..., ToolResult]


@pytest.fixture
def run(tools: KafkaTools, users: dict[str, Path], broker: KerberosBroker, tmp_path: Path) -> Run:
    def run(user: str, tool: str, *arguments: str, as_option: str = "--command-config") -> ToolResult:
        properties = tmp_path / "client.properties"
        keytab = users[user]
        write_properties(
            properties,
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "GSSAPI",
                "sasl.kerberos.service.name": "kafka",
                "sasl.jaas.config": f'{MODULE} keyTab="{keytab}" principal="{user}@{NAME}";',
                "default.api.timeout.ms": "60000",
            },
        )
        return tools.run(tool, "--bootstrap-server", broker.bootstrap, *arguments, as_option, str(properties))

    return run


def test_java_logs_in_with_a_keytab_and_has_its_own_rights(run: Run) -> None:
    for user, seen in (("alice", ["t"]), ("mallory", [])):
        listed = run(user, "topics", "--list")
        assert listed.status == 0, listed.output + listed.errors
        assert listed.output.split() == seen
    made = run("admin", "topics", "--create", "--topic", "by-admin", "--partitions", "1")
    assert made.status == 0, made.output + made.errors
    denied = run("mallory", "topics", "--create", "--topic", "by-mallory", "--partitions", "1")
    assert denied.status != 0
    assert "TopicAuthorizationException" in denied.errors


def test_java_produces(run: Run) -> None:
    count = ("--topic", "t", "--num-records", "100", "--record-size", "10", "--throughput", "-1")
    done = run("alice", "producer-perf-test", *count)
    assert done.status == 0, done.output + done.errors
    assert "100 records sent" in done.output


# --- librdkafka ---------------------------------------------------------------------------------------------


def _no_kcat() -> str | None:
    if shutil.which("kcat") is None:
        return "no kcat: apt-get install kcat"
    if not [*Path("/usr/lib").glob("**/sasl2/libgssapiv2.so")]:
        return "Cyrus SASL has no GSSAPI: apt-get install libsasl2-modules-gssapi-mit"
    return None


@pytest.fixture
def kcat(users: dict[str, Path], broker: KerberosBroker) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    why = _no_kcat()
    if why is not None:
        pytest.skip(why)

    def kcat(user: str, *arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        tickets = users[user].with_suffix(".kcat-tickets")
        settings = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.keytab": str(users[user]),
            "sasl.kerberos.principal": f"{user}@{NAME}",
        }
        options = [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]
        return subprocess.run(
            ["kcat", "-b", broker.bootstrap, *options, *arguments],
            input=data,
            capture_output=True,
            timeout=SECONDS,
            env={**os.environ, "KRB5CCNAME": f"FILE:{tickets}"},
        )

    return kcat


def test_librdkafka_produces_and_consumes(kcat: Callable[..., subprocess.CompletedProcess[bytes]]) -> None:
    produced = kcat("alice", "-P", "-t", "t", data=b"by kcat")
    assert produced.returncode == 0, produced.stderr
    consumed = kcat("alice", "-C", "-t", "t", "-o", "-1", "-e", "-q")
    assert consumed.returncode == 0, consumed.stderr
    assert consumed.stdout == b"by kcat\n"


def test_librdkafka_has_the_rights_of_its_user(
    kcat: Callable[..., subprocess.CompletedProcess[bytes]],
) -> None:
    denied = kcat("mallory", "-P", "-t", "t", data=b"x")
    assert b"authorization failed" in denied.stderr.lower(), denied.stderr
