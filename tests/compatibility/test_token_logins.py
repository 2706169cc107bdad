"""Delegation tokens with Kafka's own tools: made by kafka-delegation-tokens, used by the Java client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AclOperation, NewTopic, ResourceType, ScramMechanism

from headrace.cli.main import cli
from tests.apache_kafka import KafkaTools
from tests.broker_process import write_properties
from tests.guarded_broker import PASSWORD, SECONDS, Guarded

KEY = "canary-key-of-all-tokens"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    made = Guarded(tmp_path_factory.mktemp("tokens"), **{"delegation.token.secret.key": KEY})
    with made.broker:
        for future in made.admin.create_topics([NewTopic("t", 1, 1)]).values():
            future.result(SECONDS)
        for name in ("alice", "bob", "carol"):
            made.add_user(name)
        made.allow(ResourceType.TOPIC, "t", AclOperation.DESCRIBE)
        yield made


class Token(NamedTuple):
    token_id: str
    hmac: str


Run = Callable[..., str]
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def client_file(guarded: Guarded, by: str | Token, mechanism: str) -> str:
    """Of a user with a password, or of whoever has a token."""
    name, password = by if isinstance(by, Token) else (by, PASSWORD)
    token = ' tokenauth="true"' if isinstance(by, Token) else ""
    path = guarded.authority.directory / "client.properties"
    write_properties(
        path,
        {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(guarded.authority.trust_store),
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{MODULE} required username="{name}" password="{password}"{token};',
        },
    )
    return str(path)


@pytest.fixture
def run(tools_431: KafkaTools, guarded: Guarded) -> Run:
    def run(
        tool: str,
        *arguments: str,
        by: str | Token = "alice",
        mechanism: str = "SCRAM-SHA-512",
        fails: bool = False,
    ) -> str:
        where = ("--bootstrap-server", f"127.0.0.1:{guarded.port}")
        properties = ("--command-config", client_file(guarded, by, mechanism))
        result = tools_431.run(tool, *where, *properties, *arguments)
        assert (result.status != 0) == fails, result.output + result.errors
        return result.output + result.errors if fails else result.output

    return run


CREATE = ("delegation-tokens", "--create", "--max-life-time-period", "-1")

DESCRIBE = ("delegation-tokens", "--describe", "--owner-principal")


def created(printed: str) -> Token:
    fields = printed.strip().splitlines()[-1].split()
    return Token(fields[0], fields[1])


@pytest.mark.parametrize("mechanism", [each.name.replace("_", "-") for each in ScramMechanism if each.value])
def test_a_token_is_its_owner(run: Run, guarded: Guarded, mechanism: str) -> None:
    token = created(run(*CREATE))
    ours = CliRunner().invoke(
        cli,
        (
            *("topic", "list", "-b", f"127.0.0.1:{guarded.port}"),
            *("--command-config", client_file(guarded, token, mechanism)),
        ),
    )
    assert ours.exit_code == 0, ours.output
    assert [line.split()[0] for line in ours.output.splitlines()] == ["NAME", "t"]
    listed = run("topics", "--list", by=token, mechanism=mechanism)
    assert listed.split() == ["t"], "alice may describe it"
    assert run("topics", "--list", by="bob").split() == []
    wrong = Token(token.token_id, created(run(*CREATE, by="bob")).hmac)
    refused = run("topics", "--list", by=wrong, mechanism=mechanism, fails=True)
    assert "SaslAuthenticationException" in refused


def test_whoever_came_by_a_token_makes_and_sees_none(run: Run) -> None:
    token = created(run(*CREATE))
    renew = ("--renew", "--renew-time-period", "-1", "--hmac", token.hmac)
    expire = ("--expire", "--expiry-time-period", "-1", "--hmac", token.hmac)
    for words in (CREATE, *(("delegation-tokens", *each) for each in (["--describe"], renew, expire))):
        assert "UnsupportedByAuthenticationException" in run(*words, by=token, fails=True)
    assert token.token_id in run(*DESCRIBE, "User:alice")


def test_a_token_that_was_expired_does_not_log_in(run: Run) -> None:
    token = created(run(*CREATE))
    run("topics", "--list", by=token)
    run("delegation-tokens", "--expire", "--expiry-time-period", "-1", "--hmac", token.hmac)
    assert "SaslAuthenticationException" in run("topics", "--list", by=token, fails=True)


def test_a_token_for_another_needs_a_right(run: Run, guarded: Guarded, tools_431: KafkaTools) -> None:
    for_bob = (*CREATE, "--owner-principal", "User:bob")
    assert "DelegationTokenAuthorizationException" in run(*for_bob, fails=True)
    admin = guarded.authority.directory / "admin.properties"
    write_properties(
        admin,
        {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(guarded.authority.trust_store),
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(guarded.authority.as_pkcs12(guarded.admin_identity, "store")),
            "ssl.keystore.password": "store",
        },
    )
    where = ("--bootstrap-server", guarded.broker.bootstrap, "--command-config", str(admin))
    rule = ("--add", "--allow-principal", "User:alice", "--user-principal", "User:bob")
    for operation in ("CreateTokens", "DescribeTokens"):
        done = tools_431.run("acls", *where, *rule, "--operation", operation)
        assert done.status == 0, done.output + done.errors
    token = created(run(*for_bob))
    assert run("topics", "--list", by=token).split() == [], "it is bob's, who may see nothing"
    own = created(run(*CREATE, by="bob"))
    assert own.token_id in run(*DESCRIBE, "User:bob"), "alice may describe bob's tokens"
    assert own.token_id not in run(*DESCRIBE, "User:bob", by="carol")


def test_no_secret_is_in_a_file_or_a_line(run: Run, guarded: Guarded) -> None:
    token = created(run(*CREATE))
    run("topics", "--list", by=token)
    files = [path for path in guarded.broker.directory.rglob("*") if path.is_file()]
    own = guarded.broker.directory / "server.properties"
    for secret in (KEY, token.hmac):
        holding = [path for path in files if secret.encode() in path.read_bytes()]
        assert holding == ([own] if secret == KEY else [])
