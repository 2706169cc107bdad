"""What a broker stores of a SCRAM password (RFC 5802, section 3): enough to verify it, not to log in.

Like Kafka, no password is prepared by SASLprep: its UTF-8 bytes are what is hashed.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from enum import Enum
from typing import Final, Self

from headrace.core.errors import ClientError

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
"""A client hashes as often as a server asks it to: without a cap the server could freeze it."""
DEFAULT_ITERATIONS: Final = 4096
DEFAULT_SALT_BYTES: Final = 16
"""New credentials have this much salt, and so have the invented ones of unknown users: they must look
alike."""


class ScramMechanism(Enum):
    """The value is the mechanism's name."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def hash_name(self) -> str:
        return "sha256" if self is ScramMechanism.SHA_256 else "sha512"

    @property
    def key_bytes(self) -> int:
        return 32 if self is ScramMechanism.SHA_256 else 64

    @property
    def wire_type(self) -> int:
        """Its number in AlterUserScramCredentials and in stored records."""
        return 1 if self is ScramMechanism.SHA_256 else 2

    def digest(self, data: bytes) -> bytes:
        return hashlib.new(self.hash_name, data).digest()

    def hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self.hash_name)


class UnacceptableCredential(ClientError):
    """A credential that no broker stores. The text names what is wrong, never a value."""


@dataclass(frozen=True, slots=True, repr=False)
class ScramCredential:
    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations}, redacted)"

    def fits(self, mechanism: ScramMechanism) -> bool:
        """Whether it can be a credential of `mechanism`; one that was stored wrongly authenticates nobody."""
        return (
            len(self.salt) > 0
            and MIN_ITERATIONS <= self.iterations <= MAX_ITERATIONS
            and len(self.stored_key) == len(self.server_key) == mechanism.key_bytes
        )

    def is_of(self, mechanism: ScramMechanism, password: str) -> bool:
        """Whether it was made from this password. Takes milliseconds: not for an event loop."""
        salted = salted_password(mechanism, password, self.salt, self.iterations)
        return hmac.compare_digest(stored_key(mechanism, salted), self.stored_key)

    @classmethod
    def of_password(cls, mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> Self:
        """Takes milliseconds: not for an event loop. Raises UnacceptableCredential."""
        _check(salt, iterations)
        return cls.derive(mechanism, salted_password(mechanism, password, salt, iterations), salt, iterations)

    @classmethod
    def derive(cls, mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int) -> Self:
        """From the salted password that AlterUserScramCredentials carries. Raises UnacceptableCredential."""
        _check(salt, iterations)
        if len(salted) != mechanism.key_bytes:
            raise UnacceptableCredential(
                f"A salted password of {mechanism.value} has {mechanism.key_bytes} bytes, not {len(salted)}"
            )
        return cls(salt, iterations, stored_key(mechanism, salted), server_key(mechanism, salted))


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def client_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    return mechanism.hmac(salted, b"Client Key")


def stored_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    return mechanism.digest(client_key(mechanism, salted))


def server_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    return mechanism.hmac(salted, b"Server Key")


def _check(salt: bytes, iterations: int) -> None:
    if not salt:
        raise UnacceptableCredential("A SCRAM credential needs a salt")
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise UnacceptableCredential(
            f"A SCRAM credential has {MIN_ITERATIONS} to {MAX_ITERATIONS} iterations, not {iterations}"
        )
