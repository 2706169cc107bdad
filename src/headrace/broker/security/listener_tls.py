"""The TLS of one listener, loaded from its files and proved. Blocking: threads call this."""

from __future__ import annotations

import ssl
from typing import NamedTuple

from headrace.broker.security.principals import principal_by
from headrace.config.listener_security import ListenerSecurity
from headrace.config.tls_properties import TlsProperties
from headrace.core.errors import ConfigError
from headrace.network.tls import TlsSettings
from headrace.tls.certificate import CertificateFacts, facts_of
from headrace.tls.contexts import client_context, server_context
from headrace.tls.file_stamps import Stamp, stamp_of
from headrace.tls.handshake import prove
from headrace.tls.stores import read_identity, read_trusted


class ListenerTls(NamedTuple):
    settings: TlsSettings
    client: ssl.SSLContext
    """For this broker as a client of others, with the same certificate."""
    facts: CertificateFacts
    stamp: Stamp


def load(security: ListenerSecurity, now: float, previous: CertificateFacts | None = None) -> ListenerTls:
    """`now` in seconds since 1970; `previous` is what the new certificate replaces. Raises ConfigError."""
    properties = security.tls
    assert properties is not None
    try:
        stamp = stamp_of(properties)  # before the files are read: a change meanwhile is seen next time
        identity = read_identity(properties.key_store)
        facts = facts_of(identity.chain)
        _check_times(facts, now)
        if previous is not None:
            _check_change(properties, previous, facts)
        trusted = read_trusted(properties.trust_store) if properties.trust_store.is_there else None
        prove(properties, identity)
        settings = TlsSettings(
            server_context(properties, identity, trusted), principal_by(properties.mapping_rules)
        )
        return ListenerTls(settings, client_context(properties), facts, stamp)
    except ConfigError as error:
        raise ConfigError(f"the listener {security.listener}: {error}") from None
    except Exception as error:  # of a library, about a file that is stranger than any we know
        raise ConfigError(
            f"the listener {security.listener}: its certificates cannot be used: {type(error).__name__}"
        ) from error


def _check_times(facts: CertificateFacts, now: float) -> None:
    if facts.not_after <= now:
        raise ConfigError(f"its certificate ({facts.subject}) has expired: renew it")
    if facts.not_before > now:
        raise ConfigError(f"its certificate ({facts.subject}) is not valid yet: is the clock right?")


def _check_change(properties: TlsProperties, old: CertificateFacts, new: CertificateFacts) -> None:
    """A file that was mixed up with another broker's is noticed."""
    if new.subject != old.subject and not properties.allows_dn_changes:
        raise ConfigError(
            f"the new certificate is of {new.subject}, and the old one of {old.subject}; set"
            " ssl.allow.dn.changes=true if that is meant"
        )
    lost = old.names - new.names
    if lost and not properties.allows_san_changes:
        raise ConfigError(
            f"the new certificate does not name {', '.join(sorted(lost))} any more; set"
            " ssl.allow.san.changes=true if that is meant"
        )
