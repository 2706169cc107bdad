from __future__ import annotations

from typing import Any

import pytest

from headrace.broker.handlers import create_acls, delete_acls
from headrace.broker.security.security import Security
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from headrace.protocol.messages.create_acls_response import CreateAclsResponse
from headrace.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from headrace.protocol.messages.delete_acls_response import DeleteAclsResponse
from headrace.protocol.messages.describe_acls_request import DescribeAclsRequest
from headrace.protocol.messages.describe_acls_response import DescribeAclsResponse
from headrace.protocol.stored.access_control_entry_record import AccessControlEntryRecord
from tests.unit.broker.security.controller_context import Server

ALLOW, DENY = 3, 2


def creation(name: str = "orders", permission: int = ALLOW, **changes: Any) -> AclCreation:
    made = AclCreation(
        resource_type=2,
        resource_name=name,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=permission,
    )
    for field, value in changes.items():
        setattr(made, field, value)
    return made


def everything(**changes: object) -> DeleteAclsFilter:
    made = DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    for field, value in changes.items():
        setattr(made, field, value)
    return made


def description_of(wanted: DeleteAclsFilter) -> DescribeAclsRequest:
    return DescribeAclsRequest(**{name: getattr(wanted, name) for name in wanted.__slots__})


async def create(server: Server, *creations: AclCreation) -> list[int]:
    answer = await server.ask(CreateAclsRequest(creations=list(creations)), CreateAclsResponse)
    return [result.error_code for result in answer.results]


async def described(server: Server, wanted: DeleteAclsFilter | None = None) -> set[tuple[str, int]]:
    request = description_of(everything() if wanted is None else wanted)
    answer = await server.ask(request, DescribeAclsResponse)
    assert answer.error_code == 0
    return {(each.resource_name, acl.permission_type) for each in answer.resources for acl in each.acls}


async def test_rules_are_created_described_and_deleted() -> None:
    server = Server()
    assert await create(server, creation(), creation(permission=DENY), creation("bills")) == [0, 0, 0]
    assert await described(server) == {("orders", ALLOW), ("orders", DENY), ("bills", ALLOW)}
    assert await described(server, everything(resource_name_filter="orders")) == {
        ("orders", ALLOW),
        ("orders", DENY),
    }
    filters = [everything(permission_type=DENY), everything(resource_name_filter="none"), everything()]
    answer = await server.ask(DeleteAclsRequest(filters=filters), DeleteAclsResponse)
    rows = [[row.resource_name for row in result.matching_acls] for result in answer.filter_results]
    assert [result.error_code for result in answer.filter_results] == [0, 0, 0]
    assert (rows[0], rows[1], sorted(rows[2])) == (["orders"], [], ["bills", "orders", "orders"])
    assert await described(server) == set()


async def test_a_row_says_all_of_its_rule() -> None:
    server = Server()
    await create(server, creation(resource_pattern_type=4, host="10.0.0.1", operation=8))
    answer = await server.ask(description_of(everything()), DescribeAclsResponse, version=1)
    (resource,) = answer.resources
    (acl,) = resource.acls
    assert (resource.resource_type, resource.resource_name, resource.pattern_type) == (2, "orders", 4)
    assert (acl.principal, acl.host, acl.operation, acl.permission_type) == (
        "User:alice",
        "10.0.0.1",
        8,
        ALLOW,
    )


async def test_results_stand_where_their_rules_do() -> None:
    server = Server()
    codes = await create(
        server, creation(""), creation(permission=DENY), creation(principal="alice"), creation(), creation()
    )
    assert codes == [42, 0, 42, 0, 0]
    assert len(server.cluster.image.acls) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"resource_type": 1},
        {"resource_pattern_type": 2},
        {"operation": 1},
        {"permission_type": 1},
    ],
)
async def test_what_only_a_filter_may_say_refuses_all_of_the_request(change: dict[str, Any]) -> None:
    server = Server()
    many = [creation(f"topic-{n}") for n in range(create_acls.CREATED_AT_ONCE)]
    codes = await create(server, *many, creation(**change))
    assert set(codes) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert len(codes) == len(many) + 1
    assert len(server.cluster.image.acls) == 0


@pytest.mark.parametrize("field", ["resource_type", "resource_pattern_type", "operation", "permission_type"])
async def test_an_unknown_code_refuses_its_rule_alone(field: str) -> None:
    server, unknown = Server(), creation("strange")
    setattr(unknown, field, 99)
    assert await create(server, unknown, creation("good")) == [42, 0]
    assert len(server.cluster.image.acls) == 1


async def test_many_rules_are_created_in_slices_and_those_that_deny_first() -> None:
    server = Server()
    size = create_acls.CREATED_AT_ONCE
    asked = [creation(f"t{n}", DENY if n % 2 else ALLOW) for n in range(2 * size)]
    assert set(await create(server, *asked)) == {0}
    first, second = server.controller.commits
    permissions = [
        {record.permission_type for record in commit if isinstance(record, AccessControlEntryRecord)}
        for commit in (first, second)
    ]
    assert permissions == [{DENY}, {ALLOW}]
    assert server.turns.waited > 0
    assert len(await described(server)) == 2 * size


async def test_many_rules_are_deleted_in_slices_and_those_that_allow_first() -> None:
    server = Server()
    size = delete_acls.DELETED_AT_ONCE
    await create(server, *(creation(f"t{n}", DENY if n % 2 else ALLOW) for n in range(2 * size)))
    denying = {acl_id for acl_id, rule in server.cluster.image.acls.by_id.items() if rule.permission == DENY}
    server.controller.commits.clear()
    answer = await server.ask(DeleteAclsRequest(filters=[everything()]), DeleteAclsResponse)
    assert len(answer.filter_results[0].matching_acls) == 2 * size
    first, second = server.controller.commits
    assert {getattr(record, "id", None) for record in first}.isdisjoint(denying)
    assert {getattr(record, "id", None) for record in second} == denying
    assert len(server.cluster.image.acls) == 0


async def test_filters_that_match_too_much_together_delete_only_what_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delete_acls, "MOST_MATCHES", 3)
    server = Server()
    await create(server, creation("a"), creation("b"), creation("c"))
    filters = [everything(resource_name_filter="a"), everything(), everything(resource_name_filter="b")]
    answer = await server.ask(DeleteAclsRequest(filters=filters), DeleteAclsResponse)
    assert [result.error_code for result in answer.filter_results] == [0, 42, 42]
    assert await described(server) == {("b", ALLOW), ("c", ALLOW)}


@pytest.mark.parametrize(
    "field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"]
)
async def test_an_unknown_code_in_a_filter_is_refused(field: str) -> None:
    server = Server()
    await create(server, creation())
    wrong = everything(**{field: 77})
    described = await server.ask(description_of(wrong), DescribeAclsResponse)
    assert (described.error_code, described.resources) == (42, [])
    deleted = await server.ask(DeleteAclsRequest(filters=[wrong]), DeleteAclsResponse)
    assert [result.error_code for result in deleted.filter_results] == [42]
    assert len(server.cluster.image.acls) == 1


async def test_without_an_authorizer_nothing_is_served() -> None:
    server = Server(Security(""))
    assert await create(server, creation(), creation("b")) == [54, 54]
    described = await server.ask(description_of(everything()), DescribeAclsResponse)
    assert described.error_code == 54
    deleted = await server.ask(DeleteAclsRequest(filters=[everything()] * 2), DeleteAclsResponse)
    assert [result.error_code for result in deleted.filter_results] == [54, 54]
    assert len(server.cluster.image.acls) == 0


async def test_a_controller_that_cannot_decide_is_told_for_each() -> None:
    server = Server()
    await create(server, creation())
    server.controller.time_out()
    assert await create(server, creation("b"), creation("c")) == [7, 7]
    deleted = await server.ask(DeleteAclsRequest(filters=[everything()] * 2), DeleteAclsResponse)
    assert [result.error_code for result in deleted.filter_results] == [7, 7]
