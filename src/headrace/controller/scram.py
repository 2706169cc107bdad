"""SCRAM credentials: who gets one, and who loses one.

The request brings the salted password, with which anybody could log in. The records hold the two keys that
follow from it: enough to verify a client, not enough to be one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from headrace.controller.image import MetadataImage
from headrace.controller.operations import RecordGroup, Result
from headrace.controller.scram_image import MECHANISMS
from headrace.controller.security_operations import AlteredScramUser, ScramDeletion, ScramUpsertion
from headrace.controller.security_records import scram_record
from headrace.core.errors import HeadraceError
from headrace.protocol.message import Message
from headrace.protocol.stored.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from headrace.security.errors import DuplicateResource, ResourceNotFound, UnsupportedSaslMechanism
from headrace.security.mechanism import MAX_NAME_BYTES
from headrace.security.scram_credential import ScramCredential, ScramMechanism, UnacceptableCredential

MAX_SALT_BYTES: Final = 1024
"""Every broker keeps it, and sends it to whoever claims to be the user."""


def alter_credentials(
    image: MetadataImage, deletions: Sequence[ScramDeletion], upsertions: Sequence[ScramUpsertion]
) -> Result[list[AlteredScramUser]]:
    """Each user has one outcome. A user who is named twice keeps all credentials as they are."""
    changes: list[ScramDeletion | ScramUpsertion] = [*deletions, *upsertions]
    named = Counter(change.user for change in changes)
    group: RecordGroup = []
    outcomes: list[AlteredScramUser] = []
    for change in changes:
        if named[change.user] > 1:
            continue
        try:
            group.append(_record(image, change))
        except HeadraceError as error:
            outcomes.append(AlteredScramUser(change.user, error))
        else:
            outcomes.append(AlteredScramUser(change.user))
    for user, mentions in named.items():
        if mentions > 1:
            twice = DuplicateResource("one request can alter one credential of a user")
            outcomes.append(AlteredScramUser(user, twice))
    return Result([group] if group else [], outcomes)


def _record(image: MetadataImage, change: ScramDeletion | ScramUpsertion) -> Message:
    mechanism = _check(change.user, change.mechanism)
    if isinstance(change, ScramDeletion):
        if image.scram.find(change.user, mechanism) is None:
            raise ResourceNotFound(f"the user has no {mechanism.value} credential")
        return RemoveUserScramCredentialRecord(name=change.user, mechanism=mechanism.wire_type)
    if len(change.salt) > MAX_SALT_BYTES:
        raise UnacceptableCredential(f"a salt has at most {MAX_SALT_BYTES} bytes")
    credential = ScramCredential.derive(mechanism, change.salted_password, change.salt, change.iterations)
    return scram_record(change.user, mechanism, credential)


def _check(user: str, number: int) -> ScramMechanism:
    if not user:
        raise UnacceptableCredential("the user has no name")
    if len(user.encode()) > MAX_NAME_BYTES:
        raise UnacceptableCredential(f"a user's name has at most {MAX_NAME_BYTES} bytes")
    mechanism = MECHANISMS.get(number)
    if mechanism is None:
        raise UnsupportedSaslMechanism(f"{number} is no SCRAM mechanism")
    return mechanism
