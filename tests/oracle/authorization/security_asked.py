"""ACLs, SCRAM credentials and client quotas, by those who may not and those who may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from headrace.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from headrace.protocol.messages.create_acls_request import CreateAclsRequest
from headrace.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from headrace.protocol.messages.describe_acls_request import DescribeAclsRequest
from headrace.protocol.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from headrace.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from headrace.protocol.messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
)
from headrace.security.acl import Operation, ResourceType
from tests.oracle.authorization.person import Person
from tests.oracle.authorization.rules import rule
from tests.oracle.authorization.world import World
from tests.oracle.conversation import versions

SHA_256 = 1
EXACT = 0
CLUSTER_AUTHORIZATION_FAILED = 31


def ask(person: Person, world: World) -> None:
    del world
    _rules(person)
    _credentials(person)
    _quotas(person)


def _rules(person: Person) -> None:
    """About somebody who never comes, and topics that never are."""
    for version in versions(CreateAclsRequest):
        name = person.fresh("rule-")
        wanted = [
            rule("nobody", Operation.READ, ResourceType.TOPIC, name),
            rule("nobody", Operation.READ, ResourceType.TOPIC, ""),
            rule("nobody", Operation.WRITE, ResourceType.TOPIC, f"{name}*", deny=True),
        ]
        created = person.ask("create rules", CreateAclsRequest(creations=wanted), version)
        both: dict[str, Any] = {
            "resource_type_filter": ResourceType.TOPIC,
            "resource_name_filter": name,
            "principal_filter": "User:nobody",
            "host_filter": None,
            "operation": 1,
            "permission_type": 1,
        }
        described = DescribeAclsRequest(**both, pattern_type_filter=1)
        if not created.results[0].error_code:
            _wait(person, lambda: len(person.admin.quietly(described, 3).resources) == 2)  # noqa: B023 - at once
        person.ask("describe rules", described, version)
        filters = [DeleteAclsFilter(**both, pattern_type_filter=kind) for kind in (3, 4, 3)]
        person.ask("delete rules", DeleteAclsRequest(filters=filters), version)


def _credentials(person: Person) -> None:
    name = person.fresh("user-")
    wanted = AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name="stranger", mechanism=SHA_256)],
        upsertions=[
            ScramCredentialUpsertion(
                name=each,
                mechanism=SHA_256,
                iterations=iterations,
                salt=b"salt" * 4,
                salted_password=b"p" * 32,
            )
            for each, iterations in ((name, 4096), ("weak", 5))
        ],
    )
    altered = person.ask("alter credentials", wanted, 0)
    denied = {each.error_code for each in altered.results} == {CLUSTER_AUTHORIZATION_FAILED}
    own = DescribeUserScramCredentialsRequest(users=[UserName(name=name)])
    if not denied:
        _wait(person, lambda: not person.admin.quietly(own, 0).results[0].error_code)
    for step, users in (("named", [name, "stranger"]), ("twice", [name, name])):
        names = [UserName(name=each) for each in users]
        answer = person.ask(
            f"describe credentials, {step}", DescribeUserScramCredentialsRequest(users=names), 0
        )
    if not answer.error_code:
        person.ask("describe all credentials", DescribeUserScramCredentialsRequest(users=None), 0)
    elif person.label == "nothing-alice":
        _describe_all_credentials(person)
    gone = AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name=name, mechanism=SHA_256)])
    person.ask("delete credentials", gone, 0)


def _describe_all_credentials(person: Person) -> None:
    """Kafka never answers those whom it denies this. It is asked once, with little patience."""
    wire = person.user.another(2.0)
    try:
        answer = wire.ask(
            DescribeUserScramCredentialsRequest(users=None), 0, DescribeUserScramCredentialsResponse
        )
        person.note("describe all credentials, denied", error_code=answer.error_code)
    except TimeoutError:
        person.note("describe all credentials, denied", connection="silent")


def _wait(person: Person, settled: Callable[[], bool]) -> None:
    """Kafka's controller answers before its brokers know."""
    person.admin.wait_until(settled)


def _quotas(person: Person) -> None:
    for version in versions(AlterClientQuotasRequest):
        name = person.fresh("user-")
        entries = [
            EntryData(
                entity=[EntityData(entity_type="user", entity_name=each)],
                ops=[OpData(key="producer_byte_rate", value=1000.0)],
            )
            for each in (name, f"{name}-too")
        ]
        altered = person.ask("alter quotas", AlterClientQuotasRequest(entries=entries), version)
        component = ComponentData(entity_type="user", match_type=EXACT, match=name)
        described = DescribeClientQuotasRequest(components=[component])
        if not altered.entries[0].error_code:
            _wait(person, lambda: bool(person.admin.quietly(described, 1).entries))  # noqa: B023 - at once
        person.ask("describe quotas", described, version)
        for entry in entries:
            entry.ops = [OpData(key="producer_byte_rate", remove=True)]
        person.ask("remove quotas", AlterClientQuotasRequest(entries=entries), version)
