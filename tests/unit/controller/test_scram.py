from __future__ import annotations

import hashlib

import pytest

from headrace.controller.scram import MAX_SALT_BYTES
from headrace.controller.security_operations import ScramDeletion, ScramUpsertion
from headrace.security.errors import DuplicateResource, ResourceNotFound, UnsupportedSaslMechanism
from headrace.security.scram_credential import ScramCredential, ScramMechanism, UnacceptableCredential
from tests.unit.controller.cluster import Cluster

SALT = b"0123456789abcdef"
SALTED = hashlib.pbkdf2_hmac("sha256", b"secret", SALT, 4096)


def upsertion(
    user: str = "alice", mechanism: int = 1, iterations: int = 4096, salt: bytes = SALT
) -> ScramUpsertion:
    return ScramUpsertion(user, mechanism, iterations, salt, SALTED if mechanism == 1 else SALTED * 2)


def test_the_keys_are_stored_and_the_salted_password_is_not() -> None:
    cluster = Cluster()
    result = cluster.machine.alter_scram_credentials([], [upsertion()])
    (outcome,) = cluster.do(result)
    assert outcome == ("alice", None)
    stored = cluster.image.scram.find("alice", ScramMechanism.SHA_256)
    assert stored == ScramCredential.of_password(ScramMechanism.SHA_256, "secret", SALT, 4096)
    assert SALTED not in b"".join(record.to_bytes(0) for record in result.records)


def test_a_credential_is_replaced_and_removed() -> None:
    cluster = Cluster()
    cluster.do(cluster.machine.alter_scram_credentials([], [upsertion(), upsertion("bob", 2)]))
    cluster.do(cluster.machine.alter_scram_credentials([], [upsertion(iterations=8192)]))
    stored = cluster.image.scram.find("alice", ScramMechanism.SHA_256)
    assert stored is not None
    assert stored.iterations == 8192
    (outcome,) = cluster.do(cluster.machine.alter_scram_credentials([ScramDeletion("alice", 1)], []))
    assert outcome.error is None
    assert cluster.image.scram.users() == ["bob"]


@pytest.mark.parametrize(
    ("deletions", "upsertions"),
    [
        ([], [upsertion(), upsertion()]),
        ([], [upsertion(), upsertion(mechanism=2)]),
        ([ScramDeletion("alice", 1)], [upsertion()]),
        ([ScramDeletion("alice", 1), ScramDeletion("alice", 1)], []),
    ],
)
def test_a_user_who_is_named_twice_is_refused_once(
    deletions: list[ScramDeletion], upsertions: list[ScramUpsertion]
) -> None:
    cluster = Cluster()
    cluster.do(cluster.machine.alter_scram_credentials([], [upsertion()]))
    result = cluster.machine.alter_scram_credentials(deletions, [*upsertions, upsertion("bob")])
    outcomes = {outcome.user: outcome.error for outcome in result.response}
    assert len(result.response) == 2
    assert isinstance(outcomes["alice"], DuplicateResource)
    assert outcomes["bob"] is None
    assert len(result.records) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        upsertion(iterations=4095),
        upsertion(iterations=16385),
        upsertion(user=""),
        upsertion(user="n" * 1025),
        upsertion(salt=b""),
        upsertion(salt=b"s" * (MAX_SALT_BYTES + 1)),
        ScramUpsertion("alice", 1, 4096, SALT, SALTED * 2),
    ],
)
def test_an_unacceptable_credential_is_refused_alone(wrong: ScramUpsertion) -> None:
    cluster = Cluster()
    result = cluster.machine.alter_scram_credentials([], [wrong, upsertion("bob")])
    outcomes = {outcome.user: outcome.error for outcome in cluster.do(result)}
    assert isinstance(outcomes[wrong.user], UnacceptableCredential)
    assert cluster.image.scram.users() == ["bob"]


@pytest.mark.parametrize("iterations", [4096, 16384])
def test_the_bounds_of_iterations_are_accepted(iterations: int) -> None:
    (outcome,) = Cluster().machine.alter_scram_credentials([], [upsertion(iterations=iterations)]).response
    assert outcome.error is None


def test_what_does_not_exist_is_not_deleted() -> None:
    cluster = Cluster()
    cluster.do(cluster.machine.alter_scram_credentials([], [upsertion()]))
    for deletion, error in (
        (ScramDeletion("alice", 2), ResourceNotFound),
        (ScramDeletion("bob", 1), ResourceNotFound),
        (ScramDeletion("", 1), UnacceptableCredential),
        (ScramDeletion("alice", 0), UnsupportedSaslMechanism),
        (ScramDeletion("alice", 3), UnsupportedSaslMechanism),
    ):
        result = cluster.machine.alter_scram_credentials([deletion], [])
        assert type(result.response[0].error) is error
        assert result.groups == []


def test_no_secret_is_printed() -> None:
    change = ScramUpsertion("alice", 1, 4096, b"salt", b"CANARY-of-a-wrong-length")
    (outcome,) = Cluster().machine.alter_scram_credentials([], [change]).response
    assert "CANARY" not in f"{change!r}{change}{outcome!r}"
