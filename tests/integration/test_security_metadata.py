"""ACLs, credentials and quotas on a real broker: kept over a restart, and very many of them hold no loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.protocol.messages import alter_client_quotas_request as alter_quotas
from headrace.protocol.messages import alter_user_scram_credentials_request as alter_scram
from headrace.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from headrace.protocol.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from headrace.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from headrace.protocol.messages.create_acls_response import CreateAclsResponse
from headrace.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from headrace.protocol.messages.delete_acls_response import DeleteAclsResponse
from headrace.protocol.messages.describe_acls_request import DescribeAclsRequest
from headrace.protocol.messages.describe_acls_response import DescribeAclsResponse
from headrace.protocol.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from headrace.protocol.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from headrace.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
)
from headrace.protocol.messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
)
from headrace.testing.cluster import Cluster
from tests.claimed_principals import believe
from tests.loop_turns import turns_of
from tests.wire import Wire

LONGEST_MS = 50.0
RULES, USERS = 10_000, 1_000
EVERYTHING = DeleteAclsFilter(
    resource_type_filter=1,
    resource_name_filter=None,
    pattern_type_filter=1,
    principal_filter=None,
    host_filter=None,
    operation=1,
    permission_type=1,
)
DESCRIBE_ALL = DescribeAclsRequest(**{name: getattr(EVERYTHING, name) for name in EVERYTHING.__slots__})
ALL_USERS = DescribeUserScramCredentialsRequest(users=None)
ALL_QUOTAS = DescribeClientQuotasRequest()


def creations(count: int) -> CreateAclsRequest:
    return CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=2,
                resource_name=f"topic-{n % (count // 2)}",
                principal=f"User:user-{n}",
                host="*",
                operation=3,
                permission_type=2 + n % 2,
            )
            for n in range(count)
        ]
    )


def credentials(count: int) -> alter_scram.AlterUserScramCredentialsRequest:
    return alter_scram.AlterUserScramCredentialsRequest(
        upsertions=[
            alter_scram.ScramCredentialUpsertion(
                name=f"user-{n}", mechanism=2, iterations=4096, salt=b"s" * 16, salted_password=b"p" * 64
            )
            for n in range(count)
        ]
    )


def quotas(count: int) -> alter_quotas.AlterClientQuotasRequest:
    return alter_quotas.AlterClientQuotasRequest(
        entries=[
            alter_quotas.EntryData(
                entity=[alter_quotas.EntityData(entity_type="user", entity_name=f"user-{n}")],
                ops=[alter_quotas.OpData(key="producer_byte_rate", value=1.0 + n)],
            )
            for n in range(count)
        ]
    )


@pytest.fixture
def secured(monkeypatch: pytest.MonkeyPatch) -> None:
    believe(monkeypatch)


def connect(cluster: Cluster) -> Wire:
    return Wire(int(cluster.bootstrap.rpartition(":")[2]), timeout=60)


def described(wire: Wire) -> tuple[int, int, int]:
    rules: DescribeAclsResponse = wire.ask(DESCRIBE_ALL, 3, DescribeAclsResponse)
    users: DescribeUserScramCredentialsResponse = wire.ask(ALL_USERS, 0, DescribeUserScramCredentialsResponse)
    limits: DescribeClientQuotasResponse = wire.ask(ALL_QUOTAS, 1, DescribeClientQuotasResponse)
    return (
        sum(len(resource.acls) for resource in rules.resources),
        len(users.results),
        len(limits.entries or ()),
    )


@pytest.mark.usefixtures("secured")
def test_what_is_stored_is_there_after_a_restart(tmp_path: Path) -> None:
    with Cluster(directory=tmp_path) as cluster, connect(cluster) as wire:
        wire.ask(creations(20), 3, CreateAclsResponse)
        wire.ask(credentials(3), 0, AlterUserScramCredentialsResponse)
        wire.ask(quotas(2), 1, AlterClientQuotasResponse)
        before = described(wire)
    with Cluster(directory=tmp_path) as cluster, connect(cluster) as wire:
        assert described(wire) == before == (20, 3, 2)


def test_without_an_authorizer_acls_are_refused() -> None:
    with Cluster() as cluster, connect(cluster) as wire:
        answer: CreateAclsResponse = wire.ask(creations(2), 3, CreateAclsResponse)
        assert {result.error_code for result in answer.results} == {54}


@pytest.fixture
def cluster(secured: None) -> Iterator[Cluster]:
    """`secured` has to be there before."""
    with Cluster() as cluster:
        yield cluster


def test_very_many_rules_users_and_quotas_leave_the_loop_to_others(cluster: Cluster) -> None:
    took: dict[str, float] = {}
    with connect(cluster) as wire:
        for label, request, version, response, rows in (
            ("create rules", creations(RULES), 3, CreateAclsResponse, "results"),
            ("create them again", creations(RULES), 3, CreateAclsResponse, "results"),
            ("describe rules", DESCRIBE_ALL, 3, DescribeAclsResponse, "resources"),
            ("set passwords", credentials(USERS), 0, AlterUserScramCredentialsResponse, "results"),
            ("describe users", ALL_USERS, 0, DescribeUserScramCredentialsResponse, "results"),
            ("set quotas", quotas(RULES), 1, AlterClientQuotasResponse, "entries"),
            ("describe quotas", ALL_QUOTAS, 1, DescribeClientQuotasResponse, "entries"),
            (
                "delete one by one",
                DeleteAclsRequest(filters=_named(1000)),
                3,
                DeleteAclsResponse,
                "filter_results",
            ),
            ("delete all", DeleteAclsRequest(filters=[EVERYTHING]), 3, DeleteAclsResponse, "filter_results"),
        ):
            with turns_of(cluster) as turns:
                answer = wire.ask(request, version, response)
            assert len(getattr(answer, rows)) >= 1
            took[label] = turns.longest_ms
        assert described(wire) == (0, USERS, RULES)
    assert {label: longest for label, longest in took.items() if longest > LONGEST_MS} == {}


def _named(count: int) -> list[DeleteAclsFilter]:
    filters = []
    for n in range(count):
        values = {name: getattr(EVERYTHING, name) for name in EVERYTHING.__slots__}
        values["resource_name_filter"] = f"topic-{n}"
        filters.append(DeleteAclsFilter(**values))
    return filters
