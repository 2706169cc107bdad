"""What every generated message, and every structure inside one, has in common."""

from __future__ import annotations

import struct
from typing import Any, ClassVar, Final, Self

from headrace.core.errors import UnsupportedVersion
from headrace.core.ports import Buffer
from headrace.protocol.primitives import Reader, Writer

NEVER: Final = 1 << 15
"""FIRST_FLEXIBLE of a message that has no flexible version."""
OMITTED: Final[Any] = object()
"""Default of arguments whose true default is a new list or structure, and which may be None."""


SECRETS: Final = frozenset(
    {"auth_bytes", "hmac", "request_data", "response_data", "salted_password", "server_key", "stored_key"}
)
"""Fields that nobody may read in a log or a traceback: with each of them somebody could log in, or find out
with what. A forwarded request and its answer may hold any of the others."""


class Structure:
    """Plain fields in slots; equal if of the same class and all fields are equal."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    # Fields can be set, so a structure must not be a key.
    __hash__ = None  # type: ignore[assignment]  # how Python spells "unhashable"; typeshed disagrees

    def __repr__(self) -> str:
        fields = ", ".join(
            f"{name}={'(hidden)' if name in SECRETS else repr(getattr(self, name))}"
            for name in self.__slots__
        )
        return f"{self.__class__.__name__}({fields})"

    @classmethod
    def decode(cls, reader: Reader, version: int) -> Self:
        raise NotImplementedError

    def encode(self, writer: Writer, version: int) -> None:
        raise NotImplementedError

    def unsupported(self, field: str, version: int) -> ValueError:
        """The error for a field that has a value, but not in this version."""
        return ValueError(f"{self.__class__.__name__}.{field} cannot be written in version {version}")


class Message(Structure):
    """A request, a response, a stored record or another thing that has versions of its own."""

    __slots__: tuple[str, ...] = ()
    API_KEY: ClassVar[int] = -1
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FIRST_FLEXIBLE: ClassVar[int] = NEVER

    def to_bytes(self, version: int) -> bytes:
        """Raises ValueError where a field cannot be said in this version or does not fit its type."""
        self.check_version(version)
        writer = Writer()
        try:
            self.encode(writer, version)
        except struct.error as error:
            raise ValueError(f"{self.__class__.__name__}: {error}") from error
        return writer.getvalue()

    @classmethod
    def from_bytes(cls, buf: Buffer, version: int) -> Self:
        """Raises ProtocolError unless `buf` is one such message, whole and nothing else."""
        cls.check_version(version)
        reader = Reader(buf)
        message = cls.decode(reader, version)
        reader.finish()
        return message

    @classmethod
    def check_version(cls, version: int) -> None:
        if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
            raise UnsupportedVersion(
                f"{cls.__name__} has versions {cls.MIN_VERSION} to {cls.MAX_VERSION}, not {version}"
            )
