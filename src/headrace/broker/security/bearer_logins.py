"""OAUTHBEARER on a listener. Its library is loaded only where a listener has it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib.util import find_spec

from headrace.broker.runtime.runtime import Runtime
from headrace.config.listener_security import ListenerSecurity
from headrace.core.errors import ConfigError
from headrace.security.mechanism import Exchange


def bearer_logins(
    runtime: Runtime, security: ListenerSecurity, stops: AsyncExitStack
) -> Callable[[], Exchange] | None:
    """Makes an exchange for each peer; None for a listener without OAUTHBEARER. Raises ConfigError."""
    if security.bearer is None:
        return None
    if find_spec("jwt") is None:
        raise ConfigError(
            f"the listener {security.listener} has OAUTHBEARER, which needs PyJWT: install headrace[oauth]"
        )
    from headrace.broker.oauth.fetching import source_of
    from headrace.broker.oauth.key_set import KeySet

    source = source_of(security.bearer, security.jaas.get("OAUTHBEARER"))
    keys = KeySet(runtime, security.listener, security.bearer, source)
    keys.open()
    stops.callback(keys.stop)
    return keys.exchange
