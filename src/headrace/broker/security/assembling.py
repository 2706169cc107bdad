"""Puts the parts of security together, as the configuration says."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from headrace.broker.authorization.denials import Denials
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.fetch.delayed_fetch import FetchPurgatory
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.security.acl_follower import AclFollower
from headrace.broker.security.authentication import SaslListener
from headrace.broker.security.bearer_logins import bearer_logins
from headrace.broker.security.delegation_tokens import tokens_of
from headrace.broker.security.kerberos_logins import kerberos_logins
from headrace.broker.security.sasl_mechanisms import mechanisms_of
from headrace.broker.security.security import Security
from headrace.broker.security.token_logins import TokenLogins
from headrace.config.security_checks import broker_listeners
from headrace.network.connection import FrameHandler


def make_security(runtime: Runtime, metadata: MetadataCache) -> tuple[Security, AclFollower | None]:
    config = runtime.config
    follower = memory = None
    if config.authorizer_class_name:
        denials = Denials(runtime.log, runtime.metrics.authorizer, runtime.clock)
        memory = denials.memory
        follower = AclFollower(metadata, config, denials.on_denial, denials.on_shadow_denial, denials.on_use)
    authorizer = None if follower is None else follower.authorizer
    security = Security(
        *broker_listeners(config),
        authorizer=authorizer,
        memory=memory,
        tokens=tokens_of(runtime.static_config),
    )
    return security, follower


def guard_connections(
    runtime: Runtime,
    metadata: MetadataCache,
    network: Any,
    security: Security,
    dispatcher: FrameHandler,
    stops: AsyncExitStack,
) -> None:
    """From now on each new connection gets its rights, or has to authenticate first. Raises ConfigError."""
    tokens = None if security.tokens is None else TokenLogins(runtime, metadata, security.tokens)
    for name, listener in runtime.config.listener_security.items():
        if listener.has_sasl:
            bearer = bearer_logins(runtime, listener, stops)
            kerberos = kerberos_logins(runtime.loop, listener, stops)
            mechanisms = mechanisms_of(listener, metadata, tokens, bearer, kerberos)
            sasl = SaslListener(runtime, security, dispatcher, mechanisms, listener)
            security.authenticate[name] = sasl.begin
    network.on_connected = security.on_connected


def wake_fetches(follower: AclFollower | None, purgatory: FetchPurgatory) -> None:
    """Consumers that wait are told at once if they may not read any more."""
    if follower is not None:
        follower.on_change = purgatory.wake
