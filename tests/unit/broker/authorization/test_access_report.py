"""What a broker tells of accesses and of its protection: to whoever asks by name and may describe it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.authorization.access_memory import AccessMemory
from headrace.broker.security.self_examination import open_files
from headrace.client.configs import ResourceType as ConfigOf
from headrace.config.security_findings import Level
from headrace.config.security_report import ACCESS, SECURITY
from headrace.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headrace.security.acl import AclRule, Operation, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.acl_usage import Access
from headrace.security.rights import Authorizer
from tests.unit.broker.authorization.realm import Realm, on_cluster, rights_by

BOTH = [*on_cluster(Operation.DESCRIBE_CONFIGS), *on_cluster(Operation.DESCRIBE)]
WRITE = Access("User:bob", Operation.WRITE, ResourceType.TOPIC, "täler")


@pytest.fixture
def memory(realm: Realm) -> Iterator[AccessMemory]:
    security = realm.context.security
    before = security.memory, security.authorizer
    security.memory, security.authorizer = AccessMemory(77), Authorizer(AclIndex(), mode="shadow")
    yield security.memory
    security.memory, security.authorizer = before


def ask(realm: Realm, rules: list[AclRule] | None, name: str, broker: int | None = None) -> Any:
    broker = realm.context.runtime.broker_id if broker is None else broker
    resource = DescribeConfigsResource(
        resource_type=int(ConfigOf.BROKER), resource_name=str(broker), configuration_keys=[name]
    )
    rights = None if rules is None else rights_by(rules)
    (result,) = realm.ask(DescribeConfigsRequest(resources=[resource]), 4, rights).results
    return result


def figures(result: Any) -> dict[str, str]:
    assert result.error_code == 0
    return {entry.name: entry.value for entry in result.configs}


def test_what_is_remembered_is_told(realm: Realm, memory: AccessMemory) -> None:
    memory.denied.note(WRITE, "10.0.0.1", 5)
    memory.denied.note(WRITE, "10.0.0.2", 9)
    memory.used.note(WRITE._replace(operation=Operation.READ), "10.0.0.3", 7)
    memory.used.overflow = 3
    told = figures(ask(realm, BOTH, ACCESS))
    assert {name: told[name] for name in told if "d." not in name} == {
        "headrace.access.mode": "shadow",
        "headrace.access.since.ms": "77",
        "headrace.access.overflow": "3",
    }
    assert json.loads(told["headrace.access.denied.0"]) == [
        "User:bob", "WRITE", "TOPIC", "täler", "10.0.0.2", 2, 5, 9,
    ]  # fmt: skip
    assert json.loads(told["headrace.access.used.0"])[1:5] == ["READ", "TOPIC", "täler", "10.0.0.3"]


def test_without_an_authorizer_that_is_told(realm: Realm) -> None:
    assert figures(ask(realm, None, ACCESS)) == {"headrace.access.mode": "none"}


@pytest.mark.parametrize("name", [ACCESS, SECURITY])
@pytest.mark.parametrize("right", [Operation.DESCRIBE_CONFIGS, Operation.DESCRIBE])
def test_both_rights_are_needed(realm: Realm, name: str, right: Operation) -> None:
    denied = ask(realm, on_cluster(right), name)
    assert (denied.error_code, denied.configs) == (31, [])
    assert ask(realm, on_cluster(Operation.DESCRIBE_CONFIGS), "log.dirs").error_code == 0


def test_another_broker_is_not_told_of(realm: Realm, memory: AccessMemory) -> None:
    assert [
        entry.name for entry in ask(realm, BOTH, ACCESS, broker=99).configs if "access" in entry.name
    ] == []


def test_a_broker_examines_itself(realm: Realm) -> None:
    findings = [json.loads(value) for value in figures(ask(realm, BOTH, SECURITY)).values()]
    assert ["advice", "authorizer.class.name"] in [finding[:2] for finding in findings]
    assert all(len(finding) == 4 for finding in findings)


def test_many_are_told_in_slices(realm: Realm, memory: AccessMemory) -> None:
    for number in range(900):
        memory.denied.note(WRITE._replace(name=f"t{number}"), "h", number)
    assert len([name for name in figures(ask(realm, BOTH, ACCESS)) if ".denied." in name]) == 900


def test_files_that_others_can_open(tmp_path: Path) -> None:
    private, shared, missing = (tmp_path / name for name in ("private", "sha red", "missing"))
    for path, mode in ((private, 0o600), (shared, 0o640)):
        path.touch()
        path.chmod(mode)
    (found,) = open_files(map(str, (private, shared, missing)))
    assert (found.level, found.subject) == (Level.SERIOUS, str(shared))
    assert "640" in found.text
    assert f"'{shared}'" in found.cure
