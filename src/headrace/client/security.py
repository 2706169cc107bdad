"""How a client connects, from Kafka's client properties: the file that `--command-config` names.

What reads properties is imported when there are some: most commands have none, and start sooner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from headrace.core.errors import ConfigError

if TYPE_CHECKING:
    from headrace.client.credentials import Credentials
    from headrace.config.secret import Secret
    from headrace.config.tls_properties import TlsProperties


class ClientSecurity(NamedTuple):
    protocol: str = "PLAINTEXT"
    tls: TlsProperties | None = None
    credentials: Credentials | None = None

    @classmethod
    def parse(cls, properties: Mapping[str, str]) -> Self:
        """Others than those of security are passed over. Raises ConfigError."""
        from headrace.client.security_properties import parse

        return cls(*parse(properties))

    @classmethod
    def read(cls, path: str) -> Self:
        """From a properties file. Raises ConfigError."""
        from headrace.config.properties_file import read_properties

        try:
            properties = read_properties(path)
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from None
        try:
            return cls.parse(properties)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None

    def as_user(self, user: str, password: Secret) -> Self:
        """The same way, by the same mechanism, as somebody else. There have to be credentials."""
        from headrace.client.credentials import Credentials

        assert self.credentials is not None, "whoever logs in does it by a mechanism"
        return self._replace(credentials=Credentials(self.credentials.mechanism, user, password))


PLAINTEXT: Final = ClientSecurity()
