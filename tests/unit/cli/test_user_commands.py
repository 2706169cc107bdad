"""The commands for users: what reaches the broker, what is printed, and what is in no output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.client.security import ClientSecurity
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.scram_credential import ScramCredential, ScramMechanism
from tests.unit.cli.serving import Run, runner, serving
from tests.unit.client.scripted_security import ScriptedSecurity

CANARY = 'canary "c7e2" \\ ä='
SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512


@pytest.fixture
def script() -> Iterator[ScriptedSecurity]:
    broker = ScriptedSecurity()
    with serving(broker):
        yield broker


@pytest.fixture
def run(script: ScriptedSecurity) -> Run:
    return runner(script.address)


def accepts(credential: ScramCredential, mechanism: ScramMechanism, password: str) -> bool:
    made = ScramCredential.of_password(mechanism, password, credential.salt, credential.iterations)
    return made.stored_key == credential.stored_key


def test_a_new_user_has_a_password_that_is_printed_once(run: Run, script: ScriptedSecurity) -> None:
    created, password = run("user", "create", "alice").stdout.splitlines()
    assert created == "created alice mechanism=SCRAM-SHA-512"
    assert accepts(script.users["alice"][SHA_512], SHA_512, password.removeprefix("password "))
    assert password.removeprefix("password ") not in run("user", "list").output


def test_two_users_have_different_passwords_and_salts(run: Run, script: ScriptedSecurity) -> None:
    passwords = {
        json.loads(run("user", "create", name, "-o", "json").stdout)["password"] for name in ("a", "b")
    }
    assert len(passwords) == 2
    assert script.users["a"][SHA_512].salt != script.users["b"][SHA_512].salt


def test_a_password_that_is_given_is_not_repeated(run: Run, script: ScriptedSecurity) -> None:
    result = run(
        "user", "create", "alice", "--mechanism", "scram-sha-256", "--password-stdin", stdin=CANARY + "\n"
    )
    assert accepts(script.users["alice"][SHA_256], SHA_256, CANARY)
    assert CANARY not in result.output + result.stderr


def test_no_password_and_too_long_a_password_are_refused(run: Run, script: ScriptedSecurity) -> None:
    assert "no password" in run("user", "create", "a", "--password-stdin", stdin="", code=1).stderr
    assert "too long" in run("user", "create", "a", "--password-stdin", stdin="x" * 5000, code=1).stderr
    assert script.users == {}


def test_a_user_that_exists_keeps_the_password(run: Run, script: ScriptedSecurity) -> None:
    run("user", "create", "alice")
    before = script.users["alice"][SHA_512]
    result = run("user", "create", "alice", code=1)
    assert "error: user alice exists already" in result.stderr
    assert "headrace user passwd alice" in result.stderr
    assert script.users["alice"][SHA_512] == before


def test_passwd_changes_every_mechanism_of_the_user(run: Run, script: ScriptedSecurity) -> None:
    salt = bytes(16)
    script.users["alice"] = {
        each: ScramCredential.of_password(each, "old", salt, 4096) for each in (SHA_256, SHA_512)
    }
    password = json.loads(run("user", "passwd", "alice", "--json").stdout)["password"]
    for mechanism in (SHA_256, SHA_512):
        assert accepts(script.users["alice"][mechanism], mechanism, password)
    assert "does not exist" in run("user", "passwd", "bob", code=1).stderr


def test_delete_takes_every_credential_and_tells_of_rules(run: Run, script: ScriptedSecurity) -> None:
    run("user", "create", "alice")
    script.rules = {
        AclRule(
            ResourceType.TOPIC, "t", PatternType.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW
        )
    }
    result = run("user", "delete", "alice")
    assert result.stdout == "deleted alice\n"
    assert "rules left for User:alice: 1" in result.stderr
    assert script.users == {}
    assert "user alice does not exist" in run("user", "delete", "alice", code=1).stderr
    assert run("user", "delete", "alice", "--if-exists").stdout == ""


def test_delete_of_one_mechanism_leaves_the_other(run: Run, script: ScriptedSecurity) -> None:
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        credential = ScramCredential.of_password(ScramMechanism(mechanism), "p", bytes(16), 4096)
        script.users.setdefault("alice", {})[ScramMechanism(mechanism)] = credential
    run("user", "delete", "alice", "--mechanism", "SCRAM-SHA-256")
    assert set(script.users["alice"]) == {SHA_512}


def test_list(run: Run) -> None:
    assert "no users yet" in run("user", "list").stderr
    run("user", "create", "bob", "--iterations", "8192")
    assert run("user", "list").stdout.split()[3:] == ["bob", "SCRAM-SHA-512", "8192"]
    (told,) = json.loads(run("user", "list", "-o", "json").stdout)
    assert told == {"name": "bob", "mechanisms": {"SCRAM-SHA-512": 8192}}


def test_client_files_connect_with_the_password(run: Run, script: ScriptedSecurity, tmp_path: Path) -> None:
    file = tmp_path / "alice.properties"
    result = run(
        "user",
        "create",
        "alice",
        "--password-stdin",
        "--client-config",
        str(file),
        "--client-bootstrap",
        "broker:9093",
        stdin=CANARY + "\n",
    )
    assert "canary" not in result.output + result.stderr
    security = ClientSecurity.read(str(file))
    assert security.credentials is not None
    assert security.credentials.username == "alice"
    assert security.credentials.password.reveal() == CANARY
    librdkafka = (tmp_path / "alice-librdkafka.properties").read_text()
    assert f"sasl.password={CANARY}\n" in librdkafka
    assert "bootstrap.servers=broker:9093\n" in librdkafka
    assert "kafka.security.protocol=SASL_PLAINTEXT\n" in (tmp_path / "alice-spark.properties").read_text()
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_files_without_an_address_are_refused_before_anything_changes(
    run: Run, script: ScriptedSecurity, tmp_path: Path
) -> None:
    result = run("user", "create", "alice", "--client-config", str(tmp_path / "a.properties"), code=1)
    assert "--client-bootstrap" in result.stderr
    assert script.users == {}


def test_an_open_connection_is_warned_of(run: Run) -> None:
    assert "not encrypted" in run("user", "create", "alice").stderr
