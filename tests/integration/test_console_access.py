"""Page Access before real rules: it says what another client is told, and no more than brokers would."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest
from click.testing import CliRunner
from confluent_kafka import TopicCollection
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from headrace.cli.main import cli
from headrace.client.cluster import Cluster as Client
from headrace.client.security import ClientSecurity
from headrace.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from headrace.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from headrace.testing.cluster import Cluster
from tests.integration.test_console_rights import PASSWORD, SECONDS, Viewer, until_seen

HOSTILE = "<b>eve</b>"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    properties = {
        "offsets.topic.num.partitions": "1",
        "delegation.token.secret.key": "a key of this test",
    }
    with Cluster(properties, secure=True) as cluster:
        yield cluster


async def make_token(cluster: Cluster) -> CreateDelegationTokenResponse:
    security = ClientSecurity.read(str(cluster.client_files.java))
    async with Client(cluster.bootstrap, client_id="test", security=security) as client:
        made = await client.ask_controller(
            CreateDelegationTokenRequest(max_lifetime_ms=3_600_000), CreateDelegationTokenResponse
        )
    assert made.error_code == 0
    return made


@pytest.fixture(scope="module")
def token(cluster: Cluster) -> CreateDelegationTokenResponse:
    return asyncio.run(make_token(cluster))


@pytest.fixture(scope="module")
def url(cluster: Cluster, token: CreateDelegationTokenResponse) -> Iterator[str]:
    properties = str(cluster.client_files.java)
    environment = {"HEADRACE_BOOTSTRAP": cluster.bootstrap, "HEADRACE_COMMAND_CONFIG": properties}

    def run(*args: str, stdin: str | None = None) -> None:
        result = CliRunner().invoke(cli, args, input=stdin, env=environment)
        assert result.exit_code == 0, (args, result.output)

    for topic in ("orders", "salaries"):
        cluster.create_topic(topic)
    for user in ("alice", "auditor"):
        run("user", "create", user, "--password-stdin", stdin=f"{PASSWORD}\n")
    run("acl", "grant", "alice", "consume", "orders", "--group", "billing")
    run("acl", "add", "--allow-principal", HOSTILE, "--operation", "write", "--topic", "salaries")
    for operation in ("describe", "describe-configs"):
        run("acl", "add", "--allow-principal", "auditor", "--operation", operation, "--cluster")
    run("acl", "add", "--allow-principal", "auditor", "--operation", "describe", "--topic", "*")
    run("quota", "set", "--user", "alice", "producer_byte_rate=10MB")
    words = ["console", "-b", cluster.bootstrap, "--command-config", properties, "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", *words, "--authentication", "basic", "--interval", "1"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    address = process.stdout.readline().strip().removeprefix("ready url=")
    try:
        until_seen(Viewer(address, "auditor"))
        yield address
    finally:
        process.terminate()
        process.wait(SECONDS)
        process.stdout.close()


def of_user(cluster: Cluster, user: str) -> AdminClient:
    config: dict[str, str | int | float | bool] = {
        **cluster.client_config,
        "sasl.username": user,
        "sasl.password": PASSWORD,
    }
    return AdminClient(config)


EVERY_RULE: Final[Any] = (None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)


def test_rules_users_and_quotas_are_what_another_client_is_told(url: str, cluster: Cluster) -> None:
    auditor = Viewer(url, "auditor")
    other = of_user(cluster, "auditor")
    every = AclBindingFilter(ResourceType.ANY, *EVERY_RULE)
    told = {
        (each.restype.name, each.name, each.principal, each.operation.name, each.host)
        for each in other.describe_acls(every).result(SECONDS)
    }
    resources = {"cluster": "BROKER"}  # librdkafka calls the cluster a broker
    shown = {
        (
            resources.get(rule["kind"], rule["kind"].upper()),
            rule["name"],
            rule["principal"],
            operation,
            rule["host"],
        )
        for row in auditor.json("/access/rules")["listing"]["rows"]
        for rule in row["rules"]
        for operation in rule["operations"]
    }
    assert shown == told
    asked: Any = other.describe_user_scram_credentials()
    credentials = asked.result(SECONDS)
    rows = {row["name"]: row for row in auditor.json("/access")["listing"]["rows"]}
    assert {name for name, row in rows.items() if row["mechanisms"]} == {
        f"User:{user}" for user in credentials
    }
    alice = auditor.json("/access/principals/User:alice")
    assert [count for _, count in alice["credentials"]] == [
        info.iterations for info in credentials["alice"].scram_credential_infos
    ]
    assert alice["quotas"] == [{"entity": "user alice", "values": [["producer_byte_rate", "10.0 MB/s"]]}]
    status, page = auditor.get("/access/rules")
    assert (status, HOSTILE in page, "&lt;b&gt;eve" in page) == (200, False, True)


def test_a_viewer_is_shown_its_own_rights_and_why_not_the_rest(url: str, cluster: Cluster) -> None:
    alice = Viewer(url, "alice")
    view = alice.json("/access")
    assert view["listing"]["rows"] == []
    assert view["principal"] == "User:alice"
    assert "Rules are not shown: to see them takes DESCRIBE on the cluster." in view["not_shown"]
    other = of_user(cluster, "alice")
    described = other.describe_topics(TopicCollection(["orders"]), include_authorized_operations=True)
    operations = {each.name for each in described["orders"].result(SECONDS).authorized_operations}
    mine = {(row["kind"], row["name"]): set(row["operations"]) for row in view["mine"]}
    assert mine["topic", "orders"] == operations == {"READ", "DESCRIBE"}
    for path in ("/access", "/access/rules", "/access/others", "/topics/orders/access"):
        text = alice.get(path)[1]
        for hidden in ("auditor", "eve", "salaries", "10.0 MB/s", "SCRAM"):
            assert hidden not in text, (path, hidden)


def test_tokens_are_shown_to_whom_brokers_show_them_and_never_what_logs_in(
    url: str, token: CreateDelegationTokenResponse, cluster: Cluster
) -> None:
    def tokens(viewer: Viewer) -> list[Any]:
        found: list[Any] = viewer.json("/access/others")["tokens"]
        return found

    assert tokens(Viewer(url, "auditor")) == [], "DESCRIBE on the cluster is not enough"
    environment = {
        "HEADRACE_BOOTSTRAP": cluster.bootstrap,
        "HEADRACE_COMMAND_CONFIG": str(cluster.client_files.java),
    }
    words = ["--allow-principal", "auditor", "--operation", "describe", "--delegation-token", token.token_id]
    assert CliRunner().invoke(cli, ["acl", "add", *words], env=environment).exit_code == 0
    auditor = Viewer(url, "auditor")
    deadline = time.monotonic() + SECONDS
    while not (found := tokens(auditor)):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert [each["token_id"] for each in found] == [token.token_id]
    assert found[0]["expires_ms"] == token.expiry_timestamp_ms
    text = auditor.get("/access/others")[1] + auditor.get("/access/others?format=json")[1]
    assert base64.b64encode(token.hmac).decode() not in text
    assert token.hmac.hex() not in text
