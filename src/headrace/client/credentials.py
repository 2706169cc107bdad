"""A user and a password for SASL, as `sasl.jaas.config` gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headrace.config.secret import Secret
from headrace.core.errors import ConfigError
from headrace.security.jaas import parse_login_module

LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
MECHANISMS: Final = tuple(LOGIN_MODULES)


@dataclass(frozen=True, slots=True)
class Credentials:
    mechanism: str
    username: str
    password: Secret
    is_token: bool = False
    """A delegation token: the id and its HMAC."""


def credentials_of(mechanism: str, jaas: Secret) -> Credentials:
    """Raises ConfigError, which repeats nothing of the text."""
    login = parse_login_module(jaas.reveal())
    expected = LOGIN_MODULES[mechanism]
    if login.class_name != expected:
        raise ConfigError(f"sasl.jaas.config: the login module of {mechanism} is {expected}")
    username, password = login.options.get("username"), login.options.get("password")
    if not username or not password:
        raise ConfigError('sasl.jaas.config: username="..." and password="..." are needed')
    is_token = login.options.get("tokenauth", "false").lower() == "true"
    if is_token and mechanism == "PLAIN":
        raise ConfigError("sasl.jaas.config: delegation tokens need SCRAM")
    return Credentials(mechanism, username, Secret(password), is_token)
