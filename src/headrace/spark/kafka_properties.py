"""The properties of Kafka's clients that a user gives, with passwords and keys that nothing shows.

They have Kafka's names, with or without the `kafka.` that Spark's connector wants before them. So the options
of its source and sink, the lines of a client file and a section of lake.toml are the same here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from headrace.client.security import ClientSecurity
from headrace.client.security_properties import refuse_foreign
from headrace.config.properties_file import read_properties
from headrace.config.secret import HIDDEN
from headrace.core.errors import ConfigError
from headrace.security.jaas import parse_login_module

PREFIX: Final = "kafka."
_JAAS: Final = "sasl.jaas.config"
_SECRET: Final = re.compile(r"(?i)^s(s|as)l[.]|password|secret|token|credential")
"""Names whose values are not shown: everything about TLS and SASL, harmless or not."""
_CONCEALED: Final = re.compile(r"(?i)jaas|password|secret|token|credential|keystore[.]key$")
"""Of them, those whose values must not come back in the words of Kafka's client either. Not locations: where
a file is missing, its name has to be said."""
_LEAST: Final = 4
"""Shorter ones are in any text by chance, and replacing them would only make it unreadable."""


class KafkaProperties(Mapping[str, str]):
    """Sent to tasks as part of a plan, as Spark's own connector does; otherwise only its items show them."""

    __slots__ = ("_values",)

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        """Raises ConfigError, which repeats no value: for names of other clients, for one that is given
        twice, and where nobody could read the JAAS configuration."""
        self._values: dict[str, str] = {}
        for written, value in (given or {}).items():
            name = written.removeprefix(PREFIX)
            if name in self._values:
                raise ConfigError(f"{name} is given with and without {PREFIX}: keep one of them")
            self._values[name] = value
        refuse_foreign(self._values)
        if self._values.get(_JAAS, "").strip():
            # Kafka's client would repeat a word of it: where a quote is missing, a part of the password.
            parse_login_module(self._values[_JAAS])

    @classmethod
    def read(cls, path: str | Path) -> KafkaProperties:
        """A file of client properties, as `headrace user create` and `up --secure` write it for Java."""
        try:
            found = read_properties(str(path))
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from None
        try:
            return cls(found)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None

    @property
    def options(self) -> dict[str, str]:
        """For `.options(**...)` of Spark's source and sink `kafka`, and of ours."""
        return {f"{PREFIX}{name}": value for name, value in self._values.items()}

    @property
    def bootstrap(self) -> str:
        return self._values.get("bootstrap.servers", "")

    def security(self) -> ClientSecurity:
        """For this project's own client. Raises ConfigError for what only Kafka's client can do."""
        return ClientSecurity.parse(self._values)

    def conceal(self, text: str) -> str:
        """The text without any secret of these."""
        for secret in sorted(self._secrets(), key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text

    def _secrets(self) -> Iterator[str]:
        for name, value in self._values.items():
            if _CONCEALED.search(name) and len(value) >= _LEAST:
                yield value
        if jaas := self._values.get(_JAAS, "").strip():
            for option, value in parse_login_module(jaas).options.items():
                if _SECRET.search(option) and len(value) >= _LEAST:
                    yield value

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        shown = {name: HIDDEN if _SECRET.search(name) else value for name, value in self._values.items()}
        return f"KafkaProperties({shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        return KafkaProperties, (self._values,)
