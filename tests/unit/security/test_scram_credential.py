"""What is stored of a SCRAM password, and what is not accepted for it."""

from __future__ import annotations

import pytest

from headrace.security.scram_credential import (
    ScramCredential,
    ScramMechanism,
    UnacceptableCredential,
    salted_password,
)

SALT = bytes(range(16))


@pytest.mark.parametrize("mechanism", ScramMechanism, ids=lambda each: each.value)
def test_a_credential_comes_from_the_salted_password_alone(mechanism: ScramMechanism) -> None:
    salted = salted_password(mechanism, "pencil", SALT, 4096)
    assert ScramCredential.derive(mechanism, salted, SALT, 4096) == ScramCredential.of_password(
        mechanism, "pencil", SALT, 4096
    )


@pytest.mark.parametrize(
    ("salt", "iterations", "size"), [(SALT, 4095, 32), (SALT, 16385, 32), (b"", 4096, 32), (SALT, 4096, 64)]
)
def test_an_unacceptable_credential_is_refused(salt: bytes, iterations: int, size: int) -> None:
    with pytest.raises(UnacceptableCredential):
        ScramCredential.derive(ScramMechanism.SHA_256, bytes(size), salt, iterations)
    if size == 32:
        with pytest.raises(UnacceptableCredential):
            ScramCredential.of_password(ScramMechanism.SHA_256, "x", salt, iterations)


def test_the_numbers_of_the_mechanisms_are_kafkas() -> None:
    assert {each.value: each.wire_type for each in ScramMechanism} == {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
