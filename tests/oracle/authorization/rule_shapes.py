"""CreateAcls, DescribeAcls and DeleteAcls by the administrator: which rules there can be."""

from __future__ import annotations

from typing import Any

from headrace.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from headrace.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from headrace.protocol.messages.describe_acls_request import DescribeAclsRequest
from headrace.security.acl import Operation as O
from tests.oracle.authorization.person import User
from tests.oracle.authorization.rules import EVERYTHING, C, D, G, T, U, X, rule

_GOOD = rule("shape", O.READ, T, "shape")


def _changed(**fields: object) -> AclCreation:
    made = rule("shape", O.READ, T, "shape")
    for name, value in fields.items():
        setattr(made, name, value)
    return made


SHAPES: dict[str, list[AclCreation]] = {
    "operations that a topic does not have": [
        rule("shape", each, T, "shape")
        for each in (O.CLUSTER_ACTION, O.IDEMPOTENT_WRITE, O.CREATE_TOKENS, O.DESCRIBE_TOKENS)
    ],
    "operations that a group does not have": [
        rule("shape", each, G, "shape") for each in (O.WRITE, O.CREATE, O.ALTER, O.CLUSTER_ACTION)
    ],
    "operations that the cluster does not have": [
        rule("shape", each, C) for each in (O.READ, O.WRITE, O.DELETE)
    ],
    "operations that a transactional id does not have": [
        rule("shape", each, X, "shape") for each in (O.READ, O.CREATE, O.DELETE)
    ],
    "operations of others": [rule("shape", O.WRITE, D, "shape"), rule("shape", O.READ, U, "User:shape")],
    "two-phase commit": [rule("shape", O.TWO_PHASE_COMMIT, X, "shape")],
    "a name beside the cluster's": [rule("shape", O.DESCRIBE, C, "another"), _GOOD],
    "a prefix of the cluster's name": [rule("shape", O.DESCRIBE, C, "kafka*"), _GOOD],
    "no name": [_changed(resource_name=""), _GOOD],
    "no type of principal": [_changed(principal="shape"), _GOOD],
    "no principal": [_changed(principal=""), _GOOD],
    "another type of principal": [_changed(principal="Role:shape"), _GOOD],
    "no host": [_changed(host=""), _GOOD],
    "a host that no address is": [_changed(host="localhost"), _changed(host="10.0.0.0/8"), _GOOD],
    "any operation": [_changed(operation=O.ANY), _GOOD],
    "an unknown operation": [_changed(operation=77), _GOOD],
    "any permission": [_changed(permission_type=1), _GOOD],
    "an unknown permission": [_changed(permission_type=77), _GOOD],
    "any type": [_changed(resource_type=1), _GOOD],
    "an unknown type": [_changed(resource_type=77), _GOOD],
    "any pattern": [_changed(resource_pattern_type=1), _GOOD],
    "a matching pattern": [_changed(resource_pattern_type=2), _GOOD],
    "an unknown pattern": [_changed(resource_pattern_type=77), _GOOD],
    "a name that no topic has": [_changed(resource_name="not a name"), _GOOD],
    "a long name": [_changed(resource_name="x" * 300), _GOOD],
    "a rule twice": [_GOOD, _GOOD],
    "no rules": [],
}


def ask(admin: User) -> None:
    for step, creations in SHAPES.items():
        admin.ask(f"shapes: {step}", CreateAclsRequest(creations=creations), 3)
    made = [0]

    def still() -> bool:
        before, described = made[0], admin.quietly(DescribeAclsRequest(**EVERYTHING), 3)
        made[0] = sum(len(resource.acls) for resource in described.resources)
        return made[0] == before > 0

    admin.wait_until(still)
    filters: dict[str, dict[str, Any]] = {
        "all": {},
        "by name": {"resource_name_filter": "shape"},
        "matching a name": {"resource_name_filter": "shape-x", "pattern_type_filter": 2},
        "prefixed": {"pattern_type_filter": 4},
        "of a principal": {"principal_filter": "Role:shape"},
        "of a principal without a type": {"principal_filter": "shape"},
        "of a host": {"host_filter": "localhost"},
        "of the cluster": {"resource_type_filter": 4},
        "of an unknown type": {"resource_type_filter": 77},
        "of an unknown operation": {"operation": 77},
        "of an unknown permission": {"permission_type": 77},
        "of an unknown pattern": {"pattern_type_filter": 77},
        "with an empty name": {"resource_name_filter": ""},
    }
    for step, fields in filters.items():
        asked = DescribeAclsRequest(**{**EVERYTHING, **fields})
        admin.ask(f"shapes: describe {step}", asked, 3)
    wanted = [DeleteAclsFilter(**{**EVERYTHING, **fields}) for fields in filters.values()]
    for (step, _), each in zip(filters.items(), wanted, strict=True):
        if step != "all":
            admin.ask(f"shapes: delete {step}", DeleteAclsRequest(filters=[each]), 3)
    admin.ask("shapes: delete all, twice", DeleteAclsRequest(filters=[wanted[0], wanted[0]]), 3)
