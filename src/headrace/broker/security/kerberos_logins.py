"""GSSAPI on a listener. Its library is loaded only where a listener has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple

from headrace.broker.security.threaded_exchange import LoginThread, ThreadedExchange
from headrace.config.listener_security import ListenerSecurity
from headrace.core.errors import ConfigError
from headrace.security.gssapi import MECHANISM, GssapiExchange
from headrace.security.jaas import parse_login_module
from headrace.security.kerberos_rules import KerberosRules
from headrace.security.mechanism import Exchange


def kerberos_logins(
    loop: asyncio.AbstractEventLoop, security: ListenerSecurity, stops: AsyncExitStack
) -> Callable[[], Exchange] | None:
    """Makes an exchange for each peer; None for a listener without GSSAPI. Raises ConfigError."""
    if security.kerberos is None:
        return None
    if find_spec("gssapi") is None:
        raise ConfigError(
            f"the listener {security.listener} has GSSAPI, which needs the package gssapi: install"
            " headrace[gssapi]; it is built with libkrb5-dev and gcc"
        )
    try:
        from headrace.broker.kerberos.acceptor import Acceptor, default_realm
    except ImportError as error:
        raise ConfigError(
            f"the listener {security.listener} has GSSAPI, and the library of Kerberos cannot be loaded:"
            f" {error}"
        ) from None
    try:
        own = own_key(security)
        rules = KerberosRules.parse(security.kerberos.rules, default_realm())
        acceptor = Acceptor(own.keytab, own.principal)
    except ConfigError as error:
        raise ConfigError(f"the listener {security.listener}: GSSAPI: {error}") from None
    thread = LoginThread(loop, "kerberos")
    stops.callback(thread.stop)

    def exchange() -> Exchange:
        return ThreadedExchange(GssapiExchange(acceptor.context(), rules.local_name), thread)

    return exchange


class OwnKey(NamedTuple):
    keytab: str
    principal: str


def own_key(security: ListenerSecurity) -> OwnKey:
    """From the options that Java's Krb5LoginModule has; those about tickets of one's own say nothing here.
    Raises ConfigError.
    """
    assert security.kerberos is not None
    options = parse_login_module(security.jaas[MECHANISM].reveal()).options
    wrong = partial(_wrong, security.listener)
    if options.get("useKeyTab", "true").lower() != "true":
        raise wrong("useKeyTab has to be true: a broker has no other key")
    keytab, principal = options.get("keyTab", ""), options.get("principal", "")
    if not keytab or not principal:
        raise wrong('it needs keyTab="/path/of/kafka.keytab" and principal="kafka/host@REALM"')
    kind, colon, path = keytab.partition(":")
    if colon and kind.lower() == "file":
        keytab = path
    if not keytab.startswith("/"):
        raise wrong("keyTab has to be the whole path of a file")
    service_name = security.kerberos.service_name
    if options.get("serviceName", service_name) != service_name:
        raise wrong("serviceName is not sasl.kerberos.service.name")
    if principal.partition("@")[0].partition("/")[0] != service_name:
        raise wrong(f"principal has to begin with sasl.kerberos.service.name, which is {service_name}")
    return OwnKey(keytab, principal)


def _wrong(listener: str, problem: str) -> ConfigError:
    return ConfigError(f"listener.name.{listener.lower()}.gssapi.sasl.jaas.config: {problem}")
