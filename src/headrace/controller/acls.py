"""ACLs: which rules are stored, and which are removed.

A rule is stored once, however often it is created. The id under which it is stored says which rule is meant
for as long as the rule exists: no rule ever changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from headrace.controller.image import MetadataImage
from headrace.controller.operations import RecordGroup, Result
from headrace.controller.security_operations import CreatedAcl
from headrace.controller.security_records import acl_record
from headrace.core.ports import Random
from headrace.protocol.stored.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from headrace.security.acl import AclRule, InvalidAcl, InvalidAclRequest, check_rule


def create_acls(
    image: MetadataImage, rules: Sequence[AclRule], *, random: Random
) -> Result[list[CreatedAcl]]:
    """All rules that can be are stored together. Operations that a resource type does not have are stored, as
    Kafka's brokers store them."""
    group: RecordGroup = []
    outcomes: list[CreatedAcl] = []
    new: set[AclRule] = set()
    for rule in rules:
        try:
            check_rule(rule, operations=False)
        except InvalidAcl as error:
            outcomes.append(CreatedAcl(rule, error))
            continue
        if rule not in image.acls and rule not in new:
            new.add(rule)
            group.append(acl_record(_new_id(image, random), rule))
        outcomes.append(CreatedAcl(rule))
    return Result([group] if group else [], outcomes)


def refusal_of(rule: AclRule) -> InvalidAclRequest | None:
    """Why no rule of the request that has this one can be created, as Kafka has it."""
    try:
        check_rule(rule, operations=False)
    except InvalidAclRequest as error:
        return error
    except InvalidAcl:
        return None
    return None


def _new_id(image: MetadataImage, random: Random) -> UUID:
    while (acl_id := UUID(bytes=random.randbytes(16), version=4)) in image.acls.by_id:
        pass
    return acl_id


def delete_acls(image: MetadataImage, acl_ids: Iterable[UUID]) -> Result[frozenset[UUID]]:
    """Removes those that still exist, together, and answers which they were."""
    found = frozenset(acl_id for acl_id in acl_ids if acl_id in image.acls.by_id)
    group: RecordGroup = [RemoveAccessControlEntryRecord(id=acl_id) for acl_id in sorted(found)]
    return Result([group] if group else [], found)
