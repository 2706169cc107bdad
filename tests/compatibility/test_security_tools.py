"""ACLs, SCRAM credentials, quotas and delegation tokens through Kafka's own tools and through librdkafka.

The broker has an authorizer in name only, and a key for delegation tokens: here it matters what is stored,
described and removed. `asking` says who asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from headrace.security.principal import ANONYMOUS, Principal, user
from headrace.security.scram_credential import ScramCredential
from headrace.security.scram_credential import ScramMechanism as Mechanism
from headrace.testing.cluster import Cluster
from tests.apache_kafka import KafkaTools
from tests.claimed_principals import believe
from tests.compatibility.log_dump import complaints

SECONDS = 30


class Asking:
    def __init__(self) -> None:
        self.principal: Principal = ANONYMOUS


@pytest.fixture(scope="module")
def asking() -> Asking:
    return Asking()


@pytest.fixture(scope="module")
def cluster(asking: Asking) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        believe(patch, lambda: asking.principal)
        with Cluster() as secured:
            yield secured


Run = Callable[..., str]


@pytest.fixture
def run(tools: KafkaTools, cluster: Cluster) -> Run:
    def run(tool: str, *arguments: str, fails: bool = False) -> str:
        result = tools.run(tool, "--bootstrap-server", cluster.bootstrap, *arguments)
        text = result.output + result.errors
        assert (result.status != 0) == fails, text
        return text

    return run


def test_acl_command(run: Run) -> None:
    alice = ("--allow-principal", "User:alice")
    run("acls", "--add", *alice, "--producer", "--topic", "orders")
    run(
        "acls",
        "--add",
        *alice,
        "--consumer",
        "--topic",
        "bills-",
        "--group",
        "*",
        "--resource-pattern-type",
        "prefixed",
    )
    run(
        "acls",
        "--add",
        "--deny-principal",
        "User:bob",
        "--operation",
        "All",
        "--cluster",
        "--deny-host",
        "10.0.0.1",
    )
    listed = run("acls", "--list")
    assert listed.count("principal=User:alice") == 6
    assert "patternType=PREFIXED" in listed
    assert "(principal=User:bob, host=10.0.0.1, operation=ALL, permissionType=DENY)" in listed
    again = run("acls", "--add", *alice, "--producer", "--topic", "orders")
    assert run("acls", "--list").count("principal=User:alice") == 6, again
    matching = run("acls", "--list", "--topic", "bills-2026", "--resource-pattern-type", "match")
    assert matching.count("principal=User:alice") == 2
    assert "orders" not in matching
    run("acls", "--remove", "--topic", "orders", "--force")
    assert "orders" not in run("acls", "--list")
    for kind in (("--topic", "bills-"), ("--group", "*")):
        run("acls", "--remove", *kind, "--resource-pattern-type", "prefixed", "--force")
    run("acls", "--remove", "--cluster", "--force")
    assert "principal=" not in run("acls", "--list")


def test_configs_of_users(run: Run, cluster: Cluster) -> None:
    entity = ("--entity-type", "users", "--entity-name", "alice")
    run("configs", "--alter", *entity, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=secret]")
    run("configs", "--alter", *entity, "--add-config", "SCRAM-SHA-512=[password=secret]")
    described = run("configs", "--describe", *entity)
    assert "SCRAM-SHA-256=iterations=8192" in described
    assert "SCRAM-SHA-512=iterations=4096" in described
    stored = cluster.broker.context.metadata.image.scram.find("alice", Mechanism.SHA_256)
    assert stored is not None
    assert stored == ScramCredential.of_password(Mechanism.SHA_256, "secret", stored.salt, 8192)
    run("configs", "--alter", *entity, "--delete-config", "SCRAM-SHA-512")
    assert "SCRAM-SHA-512" not in run("configs", "--describe", *entity)
    missing = run("configs", "--alter", *entity, "--delete-config", "SCRAM-SHA-512", fails=True)
    assert "ResourceNotFoundException" in missing
    weak = run(
        "configs",
        "--alter",
        *entity,
        "--add-config",
        "SCRAM-SHA-256=[iterations=20000,password=x]",
        fails=True,
    )
    assert "UnacceptableCredentialException" in weak
    run("configs", "--alter", *entity, "--delete-config", "SCRAM-SHA-256")


def test_quotas(run: Run) -> None:
    both = ("--entity-type", "users", "--entity-name", "bob", "--entity-type", "clients", "--entity-default")
    run("configs", "--alter", *both, "--add-config", "producer_byte_rate=1024,request_percentage=12.5")
    described = run("configs", "--describe", *both)
    assert "producer_byte_rate=1024.0" in described
    assert "request_percentage=12.5" in described
    host = ("--entity-type", "ips", "--entity-name", "10.0.0.1")
    run("configs", "--alter", *host, "--add-config", "connection_creation_rate=5")
    assert "connection_creation_rate=5.0" in run("configs", "--describe", "--entity-type", "ips")
    run("configs", "--alter", *both, "--delete-config", "producer_byte_rate")
    assert "producer_byte_rate" not in run("configs", "--describe", *both)
    refused = run("configs", "--alter", *both, "--add-config", "producer_byte_rate=0", fails=True)
    assert "InvalidRequestException" in refused


def test_delegation_tokens(run: Run, asking: Asking, tmp_path_factory: pytest.TempPathFactory) -> None:
    properties = tmp_path_factory.mktemp("client") / "client.properties"
    properties.write_text("client.id=tokens\n")
    asked = ("--command-config", str(properties))
    asking.principal = ANONYMOUS
    refused = run("delegation-tokens", *asked, "--describe", fails=True)
    assert "UnsupportedByAuthenticationException" in refused
    asking.principal = user("alice")
    life = ("--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    created = run("delegation-tokens", *asked, "--create", *life)
    fields = created.strip().splitlines()[-1].split()
    token_id, hmac = fields[0], fields[1]
    assert "User:alice" in created
    described = run("delegation-tokens", *asked, "--describe", "--owner-principal", "User:alice")
    assert token_id in described
    asking.principal = user("mallory")
    assert token_id not in run("delegation-tokens", *asked, "--describe", "--owner-principal", "User:alice")
    mismatch = run(
        "delegation-tokens", *asked, "--renew", "--renew-time-period", "-1", "--hmac", hmac, fails=True
    )
    assert "DelegationTokenOwnerMismatchException" in mismatch
    asking.principal = user("bob")
    run("delegation-tokens", *asked, "--renew", "--renew-time-period", "1000000", "--hmac", hmac)
    run("delegation-tokens", *asked, "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    gone = run(
        "delegation-tokens", *asked, "--renew", "--renew-time-period", "-1", "--hmac", hmac, fails=True
    )
    assert re.search("DelegationTokenNotFoundException", gone)


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap})


def binding(name: str, pattern: ResourcePatternType = ResourcePatternType.LITERAL) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC, name, pattern, "User:carol", "*", AclOperation.READ, AclPermissionType.ALLOW
    )


def test_acls_of_librdkafka(admin: AdminClient) -> None:
    rules = [binding("one"), binding("two", ResourcePatternType.PREFIXED)]
    for future in admin.create_acls(rules).values():
        future.result(SECONDS)
    (refused,) = admin.create_acls(
        [
            AclBinding(
                ResourceType.TOPIC,
                "three",
                ResourcePatternType.LITERAL,
                "carol",
                "*",
                AclOperation.READ,
                AclPermissionType.ALLOW,
            )
        ]
    ).values()
    with pytest.raises(KafkaException) as failure:
        refused.result(SECONDS)
    assert failure.value.args[0].code() == 42
    anything: Any = None  # librdkafka takes it where its stubs say str
    mine = AclBindingFilter(
        ResourceType.ANY,
        anything,
        ResourcePatternType.ANY,
        "User:carol",
        anything,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert set(admin.describe_acls(mine).result(SECONDS)) == set(rules)
    (deleted,) = admin.delete_acls([mine]).values()
    assert set(deleted.result(SECONDS)) == set(rules)
    assert list(admin.describe_acls(mine).result(SECONDS)) == []


def described(admin: AdminClient, user: str) -> Any:
    futures = admin.describe_user_scram_credentials([user])
    assert isinstance(futures, dict)
    return futures[user].result(SECONDS)


def test_credentials_of_librdkafka(admin: AdminClient) -> None:
    strong = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 10_000)
    upsertion = UserScramCredentialUpsertion("dave", strong, b"secret", b"0123456789abcdef")
    admin.alter_user_scram_credentials([upsertion])["dave"].result(SECONDS)
    (info,) = described(admin, "dave").scram_credential_infos
    assert (info.mechanism, info.iterations) == (ScramMechanism.SCRAM_SHA_512, 10_000)
    deletion = UserScramCredentialDeletion("dave", ScramMechanism.SCRAM_SHA_512)
    admin.alter_user_scram_credentials([deletion])["dave"].result(SECONDS)
    with pytest.raises(KafkaException) as failure:
        described(admin, "dave")
    assert failure.value.args[0].code() == 91


def test_kafka_decodes_the_records(
    tools_431: KafkaTools, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    believe(monkeypatch)
    with Cluster(directory=tmp_path) as cluster:

        def run(tool: str, *arguments: str) -> None:
            result = tools_431.run(tool, "--bootstrap-server", cluster.bootstrap, *arguments)
            assert result.status == 0, result.output + result.errors

        entity = ("--entity-type", "users", "--entity-name", "alice")
        run("acls", "--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders")
        run("acls", "--remove", "--topic", "orders", "--force")
        run("configs", "--alter", *entity, "--add-config", "SCRAM-SHA-256=[password=secret]")
        run("configs", "--alter", *entity, "--delete-config", "SCRAM-SHA-256")
        run("configs", "--alter", *entity, "--add-config", "producer_byte_rate=1024")
        properties = tmp_path / "client.properties"
        properties.write_text("client.id=tokens\n")
        run(
            "delegation-tokens",
            "--command-config",
            str(properties),
            "--create",
            "--max-life-time-period",
            "-1",
            "--renewer-principal",
            "User:bob",
        )
    assert complaints(tools_431, tmp_path) == []
    (segment,) = tmp_path.glob("**/__cluster_metadata-0/*.log")
    printed = tools_431.run("dump-log", "--cluster-metadata-decoder", "--files", str(segment)).output
    for kind in (
        "ACCESS_CONTROL_ENTRY_RECORD",
        "REMOVE_ACCESS_CONTROL_ENTRY_RECORD",
        "USER_SCRAM_CREDENTIAL_RECORD",
        "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
        "CLIENT_QUOTA_RECORD",
        "DELEGATION_TOKEN_RECORD",
    ):
        assert f'"type":"{kind}"' in printed
