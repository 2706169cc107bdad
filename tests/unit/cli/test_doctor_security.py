"""`doctor security`: findings of brokers, of rules and of files, and when they are serious."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.config.security_findings import Finding, Level
from headrace.protocol.error_codes import ErrorCode
from headrace.security.acl import Operation, Permission, ResourceType
from tests.broker_process import write_properties
from tests.certificates import Authority
from tests.ports import own_port
from tests.unit.cli.remembering import Remembering, rule
from tests.unit.cli.serving import Run, runner, serving


@pytest.fixture
def script() -> Iterator[Remembering]:
    broker = Remembering()
    with serving(broker):
        yield broker


@pytest.fixture
def run(script: Remembering) -> Run:
    return runner(script.address)


def test_a_broker_that_does_not_answer_is_serious(run: Run, script: Remembering) -> None:
    script.name_beside_itself(4, own_port())
    (silent,) = json.loads(run("doctor", "security", "-o", "json", code=1).stdout)
    assert (silent["where"], silent["text"]) == ("broker 4", "it does not answer")


def test_findings_of_brokers_and_rules(run: Run, script: Remembering) -> None:
    advice = Finding(Level.ADVICE, "headrace.metrics.listener", "open", "close it")
    script.configs["headrace.security.finding.0"] = json.dumps(advice)
    assert "close it" in run("doctor", "security").stdout, "advice is not serious"
    anonymous = rule(Operation.READ, "User:ANONYMOUS")
    dead = rule(Operation.READ)._replace(host="::1", permission=Permission.DENY)
    script.rules = {rule(Operation.READ), rule(Operation.READ, "User:*"), anonymous, dead}
    found = json.loads(run("doctor", "security", "-o", "json", code=1).stdout)
    assert [(each["level"], each["where"]) for each in found] == [
        *[("serious", "rules")] * 3,
        ("advice", "broker 0"),
    ]
    texts = " ".join(each["text"] for each in found)
    assert all(word in texts for word in ("everybody may", "whoever does not say", "it denies nothing"))


def test_an_ordinary_user_with_an_administrators_rights_is_named(run: Run, script: Remembering) -> None:
    """A rule that somebody planted says so before it counts."""
    power = rule(Operation.ALTER)._replace(resource_type=ResourceType.CLUSTER, name="kafka-cluster")
    script.rules = {power, power._replace(principal="User:root"), rule(Operation.WRITE)}
    (found,) = json.loads(run("doctor", "security", "-o", "json").stdout)
    assert (found["level"], found["subject"]) == ("advice", power.principal)
    assert "power over the cluster" in found["text"]
    assert found["cure"].startswith("if that is not meant: headrace acl remove")


def test_without_an_authorizer_there_are_no_rules_to_look_at(run: Run, script: Remembering) -> None:
    script.denied = ErrorCode.SECURITY_DISABLED
    assert "nothing was found" in run("doctor", "security").output
    script.denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    run("doctor", "security", code=1)


def test_a_file_is_looked_at_before_anybody_starts_it(run: Run, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    (tmp_path / "data").mkdir(mode=0o700)
    identity = authority.issue("broker")
    identity.chmod(0o600)
    file = tmp_path / "server.properties"
    properties = {
        "listeners": "SSL://10.0.0.5:9093",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.location": str(identity),
        "ssl.truststore.location": str(authority.trust_store),
        "ssl.client.auth": "required",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:CN=broker",
        "log.dirs": str(tmp_path / "data"),
    }
    write_properties(file, properties)
    assert "nothing was found" in run("doctor", "security", "--config", str(file)).output
    identity.chmod(0o644)
    write_properties(file, {**properties, "ssl.key.password": "secret"})
    file.chmod(0o644)
    found = json.loads(run("doctor", "security", "--config", str(file), "-o", "json", code=1).stdout)
    assert {each["subject"] for each in found} == {str(identity), str(file)}
    assert all("chmod" in each["cure"] for each in found)
