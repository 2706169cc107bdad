"""How the peers of one listener can prove who they are: an exchange of each mechanism that it offers."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.security.token_logins import TokenLogins
from headrace.config.listener_security import ListenerSecurity
from headrace.core.errors import ConfigError
from headrace.security.gssapi import MECHANISM as GSSAPI
from headrace.security.jaas import parse_login_module
from headrace.security.mechanism import Exchange
from headrace.security.oauth import MECHANISM as OAUTHBEARER
from headrace.security.plain import PlainExchange, passwords
from headrace.security.scram import ScramExchange
from headrace.security.scram_credential import ScramCredential, ScramMechanism

NONCE_BYTES: Final = 24
SCRAM: Final = frozenset(each.value for each in ScramMechanism)
_PURPOSE: Final = b"salts of users that do not exist"

Mechanisms = Mapping[str, Callable[[], Exchange]]


def mechanisms_of(
    security: ListenerSecurity,
    metadata: MetadataCache,
    tokens: TokenLogins | None = None,
    bearer: Callable[[], Exchange] | None = None,
    kerberos: Callable[[], Exchange] | None = None,
) -> Mechanisms:
    """Without `tokens` nobody logs in with a delegation token; `bearer` makes an exchange of OAUTHBEARER,
    `kerberos` one of GSSAPI. Raises ConfigError for a mechanism that is not there.
    """
    found: dict[str, Callable[[], Exchange]] = {}
    credentials = ScramCredentials(metadata, tokens)
    for name in security.mechanisms:
        if name == "PLAIN":
            module = parse_login_module(security.jaas[name].reveal())
            found[name] = partial(PlainExchange, passwords(module.options))
        elif name in SCRAM:
            found[name] = partial(credentials.exchange, ScramMechanism(name))
        elif name == OAUTHBEARER and bearer is not None:
            found[name] = bearer
        elif name == GSSAPI and kerberos is not None:
            found[name] = kerberos
        else:
            raise ConfigError(f"sasl.enabled.mechanisms: {name} is not served")
    return found


class ScramCredentials:
    """Of the cluster's users and tokens, as the metadata has them."""

    def __init__(self, metadata: MetadataCache, tokens: TokenLogins | None = None) -> None:
        self._metadata = metadata
        self._tokens = tokens
        self._secret = secrets.token_bytes(32)
        self._epoch = -1

    def exchange(self, mechanism: ScramMechanism) -> ScramExchange:
        tokens = self._tokens
        return ScramExchange(
            mechanism,
            partial(self._find, mechanism),
            secrets.token_hex(NONCE_BYTES),
            self._secret_now(),
            None if tokens is None else partial(tokens.find, mechanism),
            None if tokens is None else partial(tokens.derive, mechanism),
        )

    def _find(self, mechanism: ScramMechanism, name: str) -> ScramCredential | None:
        return self._metadata.image.scram.find(name, mechanism)

    def _secret_now(self) -> bytes:
        """A user that exists has the same salt at every broker, and after a restart. One that does not has to
        look the same. So the secret comes from what all brokers know and nobody else: the key of some user.
        """
        table = self._metadata.image.scram
        if table.epoch != self._epoch and len(table):
            self._epoch = table.epoch
            first = min(table.users())
            key = next(iter(table.of(first).values())).server_key
            self._secret = hmac.digest(key, _PURPOSE, "sha256")
        return self._secret
