"""What a file may ask for and this broker cannot do yet. Then it does not start: nobody gets an open one."""

from __future__ import annotations

from headrace.config.broker import BrokerConfig
from headrace.core.errors import ConfigError


def require_served(config: BrokerConfig, *, has_authentication: bool, has_authorization: bool) -> None:
    """Raises ConfigError. The flags say which parts the broker was assembled with."""
    for security in config.listener_security.values():
        if security.has_sasl and not has_authentication:
            raise ConfigError(
                f"the listener {security.listener} speaks {security.protocol}: authentication by SASL is not"
                " there yet; use SSL with ssl.client.auth=required"
            )
    if config.authorizer_class_name and not has_authorization:
        raise ConfigError(
            "authorizer.class.name: authorization is not there yet, and without it everybody who connects may"
            " do everything; remove it if only trusted clients can connect"
        )
