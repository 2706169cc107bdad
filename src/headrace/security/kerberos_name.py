"""The name of a Kerberos principal: `service/host@REALM`, or `user@REALM`.

Stricter than Kafka: a part that is empty or escaped, a third part and a name without a realm are nobody's. A
slash that belongs to a part is written with a backslash, and would be read as the end of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from headrace.core.errors import ClientError
from headrace.security.mechanism import MAX_NAME_BYTES

_NAME: Final = re.compile(r"([^/@\\]+)(?:/([^/@\\]+))?@([^/@\\]+)")
_WELL_KNOWN: Final = "WELLKNOWN"
"""RFC 6111: names that stand for no one in particular, as that of anonymous tickets does."""


class UnknownKerberosName(ClientError):
    """The text is for the broker's log: the peer is told nothing of names and rules."""


@dataclass(frozen=True, slots=True)
class KerberosName:
    service: str
    """Of a user: their name."""
    host: str | None
    realm: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises UnknownKerberosName."""
        if len(text.encode(errors="replace")) > MAX_NAME_BYTES:
            raise UnknownKerberosName(f"the name has more than {MAX_NAME_BYTES} bytes")
        found = _NAME.fullmatch(text)
        if found is None or not text.isprintable():
            raise UnknownKerberosName(f"{text!r} is not a name of the form user@REALM or service/host@REALM")
        if found[1] == _WELL_KNOWN or found[3].startswith(f"{_WELL_KNOWN}:"):
            raise UnknownKerberosName("the ticket is anonymous")
        return cls(found[1], found[2], found[3])

    @property
    def parameters(self) -> tuple[str, ...]:
        """What `$0`, `$1` and `$2` of a rule stand for."""
        parts = (self.realm, self.service)
        return parts if self.host is None else (*parts, self.host)

    def __str__(self) -> str:
        host = "" if self.host is None else f"/{self.host}"
        return f"{self.service}{host}@{self.realm}"
