"""What the image knows about security, said again in records, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from headrace.controller.image import MetadataImage
from headrace.controller.quota_image import QuotaEntity
from headrace.controller.token_image import DelegationToken
from headrace.protocol.message import Message
from headrace.protocol.stored.access_control_entry_record import AccessControlEntryRecord
from headrace.protocol.stored.client_quota_record import ClientQuotaRecord, EntityData
from headrace.protocol.stored.delegation_token_record import DelegationTokenRecord
from headrace.protocol.stored.user_scram_credential_record import UserScramCredentialRecord
from headrace.security.acl import AclRule
from headrace.security.scram_credential import ScramCredential, ScramMechanism


def security_records(image: MetadataImage) -> Iterator[Message]:
    for user in sorted(image.scram.users()):
        for mechanism, credential in sorted(image.scram.of(user).items(), key=lambda each: each[0].wire_type):
            yield scram_record(user, mechanism, credential)
    for acl_id in sorted(image.acls.by_id):
        yield acl_record(acl_id, image.acls.by_id[acl_id])
    for entity in sorted(image.quotas, key=_order):
        for key, value in sorted(image.quotas.of(entity).items()):
            yield quota_record(entity, key, value)
    for token_id in sorted(image.tokens.by_id):
        yield token_record(image.tokens.by_id[token_id])


def _order(entity: QuotaEntity) -> tuple[tuple[str, bool, str], ...]:
    """The default before the names."""
    return tuple((kind, name is not None, name or "") for kind, name in entity)


def acl_record(acl_id: UUID, rule: AclRule) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=rule.resource_type,
        resource_name=rule.name,
        pattern_type=rule.pattern,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission,
    )


def scram_record(
    user: str, mechanism: ScramMechanism, credential: ScramCredential
) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism.wire_type,
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )


def quota_record(entity: QuotaEntity, key: str, value: float | None) -> ClientQuotaRecord:
    """None removes the value."""
    return ClientQuotaRecord(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        key=key,
        value=0.0 if value is None else value,
        remove=value is None,
    )


def token_record(token: DelegationToken) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=str(token.owner),
        requester=str(token.requester),
        renewers=[str(renewer) for renewer in token.renewers],
        issue_timestamp=token.issue_ms,
        max_timestamp=token.max_ms,
        expiration_timestamp=token.expiry_ms,
        token_id=token.token_id,
    )
