"""How a client proves to a secured broker who it is, in the words of each library."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import Any, NamedTuple

VARIABLE = "COMPATIBILITY_ACCESS"
"""Programs in other languages read this from their environment, as JSON."""


class Access(NamedTuple):
    """A mechanism with user and password, or a certificate."""

    authority: Path
    """Whom to trust, as PEM."""
    mechanism: str = ""
    """PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; empty: TLS alone."""
    user: str = ""
    password: str = ""
    certificate: Path | None = None
    key: Path | None = None

    @property
    def protocol(self) -> str:
        return "SASL_SSL" if self.mechanism else "SSL"

    def for_librdkafka(self) -> dict[str, Any]:
        found = {"security.protocol": self.protocol, "ssl.ca.location": str(self.authority)}
        if self.mechanism:
            found |= {"sasl.mechanism": self.mechanism}
            found |= {"sasl.username": self.user, "sasl.password": self.password}
        if self.certificate is not None:
            found |= {"ssl.certificate.location": str(self.certificate), "ssl.key.location": str(self.key)}
        return found

    def for_kafka_python(self) -> dict[str, Any]:
        found: dict[str, Any] = {"security_protocol": self.protocol, "ssl_cafile": str(self.authority)}
        if self.mechanism:
            found |= {"sasl_mechanism": self.mechanism}
            found |= {"sasl_plain_username": self.user, "sasl_plain_password": self.password}
        if self.certificate is not None:
            found |= {"ssl_certfile": str(self.certificate), "ssl_keyfile": str(self.key)}
        return found

    def for_aiokafka(self) -> dict[str, Any]:
        context = ssl.create_default_context(cafile=str(self.authority))
        if self.certificate is not None:
            context.load_cert_chain(str(self.certificate), str(self.key))
        found: dict[str, Any] = {"security_protocol": self.protocol, "ssl_context": context}
        if self.mechanism:
            found |= {"sasl_mechanism": self.mechanism}
            found |= {"sasl_plain_username": self.user, "sasl_plain_password": self.password}
        return found

    def for_programs(self) -> dict[str, str]:
        """Variables of the environment."""
        return {
            VARIABLE: json.dumps(
                {
                    "protocol": self.protocol,
                    "mechanism": self.mechanism,
                    "user": self.user,
                    "password": self.password,
                    "authority": str(self.authority),
                    "certificate": "" if self.certificate is None else str(self.certificate),
                    "key": "" if self.key is None else str(self.key),
                }
            )
        }
