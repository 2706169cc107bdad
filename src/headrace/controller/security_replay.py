"""Applying committed records about security: ACLs, SCRAM credentials, client quotas, delegation tokens.

A code that this version does not know stops the broker. If it passed over a rule that denies something,
everybody would be allowed to do it here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from headrace.controller.delta import AclChange, MetadataDelta
from headrace.controller.image import MetadataImage
from headrace.controller.quota_image import entity_of
from headrace.controller.scram_image import MECHANISMS
from headrace.controller.token_image import DelegationToken
from headrace.core.errors import CorruptLog
from headrace.protocol.message import Message
from headrace.protocol.stored.access_control_entry_record import AccessControlEntryRecord
from headrace.protocol.stored.client_quota_record import ClientQuotaRecord
from headrace.protocol.stored.delegation_token_record import DelegationTokenRecord
from headrace.protocol.stored.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from headrace.protocol.stored.remove_delegation_token_record import RemoveDelegationTokenRecord
from headrace.protocol.stored.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from headrace.protocol.stored.user_scram_credential_record import UserScramCredentialRecord
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.principal import InvalidPrincipal, Principal, parse_principal
from headrace.security.scram_credential import ScramCredential, ScramMechanism

Applier = Callable[[MetadataImage, Any, MetadataDelta], None]


def _apply_acl(image: MetadataImage, record: AccessControlEntryRecord, delta: MetadataDelta) -> None:
    if record.id in image.acls.by_id:
        raise CorruptLog(f"ACL {record.id} is created twice")
    rule = AclRule(
        ResourceType(record.resource_type),
        record.resource_name,
        PatternType(record.pattern_type),
        record.principal,
        record.host,
        Operation(record.operation),
        Permission(record.permission_type),
    )
    codes = (rule.resource_type, rule.pattern, rule.operation, rule.permission)
    if not all(codes):
        raise CorruptLog(f"ACL {record.id} has a code that this version does not know")
    if image.acls.add(record.id, rule):
        delta.acls.append(AclChange(rule, added=True))


def _apply_remove_acl(
    image: MetadataImage, record: RemoveAccessControlEntryRecord, delta: MetadataDelta
) -> None:
    rule = image.acls.by_id.get(record.id)
    if rule is None:
        raise CorruptLog(f"ACL {record.id} is removed, which does not exist")
    if image.acls.remove(record.id):
        delta.acls.append(AclChange(rule, added=False))


def _mechanism(number: int) -> ScramMechanism:
    mechanism = MECHANISMS.get(number)
    if mechanism is None:
        raise CorruptLog(f"a credential of SCRAM mechanism {number}, which this version does not know")
    return mechanism


def _apply_scram(image: MetadataImage, record: UserScramCredentialRecord, delta: MetadataDelta) -> None:
    credential = ScramCredential(record.salt, record.iterations, record.stored_key, record.server_key)
    image.scram.put(record.name, _mechanism(record.mechanism), credential)
    delta.scram_users.add(record.name)


def _apply_remove_scram(
    image: MetadataImage, record: RemoveUserScramCredentialRecord, delta: MetadataDelta
) -> None:
    mechanism = _mechanism(record.mechanism)
    if image.scram.find(record.name, mechanism) is None:
        raise CorruptLog(f"a {mechanism.value} credential of {record.name!r} is removed, who has none")
    image.scram.remove(record.name, mechanism)
    delta.scram_users.add(record.name)


def _apply_quota(image: MetadataImage, record: ClientQuotaRecord, delta: MetadataDelta) -> None:
    entity = entity_of({part.entity_type: part.entity_name for part in record.entity}.items())
    if record.remove:
        image.quotas.remove(entity, record.key)
    else:
        image.quotas.put(entity, record.key, record.value)
    delta.quotas.add(entity)


def _apply_token(image: MetadataImage, record: DelegationTokenRecord, delta: MetadataDelta) -> None:
    image.tokens.put(
        DelegationToken(
            record.token_id,
            _principal(record.owner),
            _principal(record.requester),
            tuple(_principal(renewer) for renewer in record.renewers),
            record.issue_timestamp,
            record.max_timestamp,
            record.expiration_timestamp,
        )
    )
    delta.tokens.add(record.token_id)


def _principal(text: str) -> Principal:
    try:
        return parse_principal(text)
    except InvalidPrincipal as error:
        raise CorruptLog(f"a delegation token: {error}") from error


def _apply_remove_token(
    image: MetadataImage, record: RemoveDelegationTokenRecord, delta: MetadataDelta
) -> None:
    image.tokens.remove(record.token_id)
    delta.tokens.add(record.token_id)


SECURITY_APPLIERS: Final[Mapping[type[Message], Applier]] = {
    AccessControlEntryRecord: _apply_acl,
    RemoveAccessControlEntryRecord: _apply_remove_acl,
    UserScramCredentialRecord: _apply_scram,
    RemoveUserScramCredentialRecord: _apply_remove_scram,
    ClientQuotaRecord: _apply_quota,
    DelegationTokenRecord: _apply_token,
    RemoveDelegationTokenRecord: _apply_remove_token,
}
