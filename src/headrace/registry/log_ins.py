"""Passwords of the registry's users: the brokers know them, so the registry logs in with them."""

from __future__ import annotations

from headrace.client.cluster import Cluster
from headrace.client.errors import NotTrusted
from headrace.client.security import ClientSecurity
from headrace.config.secret import Secret
from headrace.core.errors import ConfigError
from headrace.http.passwords import Check

_SECONDS = 10.0


def log_in_check(bootstrap: str, security: ClientSecurity) -> Check:
    """By the registry's own mechanism and listener. Raises ConfigError where that has no users."""
    if security.credentials is None:
        raise ConfigError(
            "basic: passwords are checked at the brokers, and the registry does not come to a listener with "
            "SASL; set security.protocol=SASL_SSL and sasl.mechanism in the file of --command-config"
        )

    async def are_right(user: str, password: Secret) -> bool:
        if not password:
            return False
        cluster = Cluster(
            bootstrap,
            client_id="headrace-registry-log-in",
            connect_timeout=_SECONDS,
            request_timeout=_SECONDS,
            security=security.as_user(user, password),
        )
        async with cluster:
            try:
                await cluster.metadata([])
            except NotTrusted:
                return False
        return True

    return are_right
