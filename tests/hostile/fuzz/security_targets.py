"""What strangers send before anybody knows who they are, and what decides who they are.

A contradiction here is somebody who gets in without having proved anything.
"""

from __future__ import annotations

import json
import socket
import ssl
from functools import cache
from typing import Final

from headrace.broker.oauth.keys import Keys, read_keys
from headrace.broker.oauth.validation import key_name, validate
from headrace.broker.security.acl_filters import filter_of
from headrace.config.bearer_properties import BearerProperties
from headrace.network.tls import TlsSocket
from headrace.protocol.messages.delete_acls_request import DeleteAclsRequest
from headrace.protocol.messages.describe_acls_request import DescribeAclsRequest
from headrace.protocol.primitives import Reader
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.acl_filter import check_filter
from headrace.security.distinguished_name import rendered, subject_of
from headrace.security.forwarded_principal import decode_principal
from headrace.security.hosts import decode_host
from headrace.security.jaas import parse_login_module
from headrace.security.mapping_rules import MappingRules
from headrace.security.oauth import BearerIdentity, OAuthExchange
from headrace.security.plain import PlainExchange
from headrace.security.sasl_session import SaslSession
from headrace.security.scram import ScramExchange
from headrace.security.scram_credential import ScramCredential, ScramMechanism

PASSWORD: Final = "not-in-any-input-7f3a91"
NONCE: Final = "server-nonce"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_SEPARATOR: Final = b"\xff\xfe"
_NOW_MS: Final = 1_700_000_000_000


class GotIn(AssertionError):
    """Somebody did, who has no password and no token."""


@cache
def _credential(mechanism: ScramMechanism) -> ScramCredential:
    return ScramCredential.of_password(mechanism, PASSWORD, b"salt" * 4, 4096)


@cache
def _keys() -> Keys:
    """Of an issuer whose private key nobody has kept."""
    from tests.token_issuer import issuers_keys

    return read_keys(issuers_keys())


_EXPECTED: Final = BearerProperties(
    "https://issuer.example/keys", None, "https://issuer.example", ("kafka",), "sub", 0, 1000, 1000, 1000
)


def _bearer(token: str) -> BearerIdentity:
    key_name(token)
    return validate(token, _keys(), _EXPECTED, _NOW_MS)


def _session() -> SaslSession:
    def scram(mechanism: ScramMechanism) -> ScramExchange:
        def find(name: str) -> ScramCredential | None:
            return _credential(mechanism) if name == "alice" else None

        return ScramExchange(mechanism, find, NONCE, b"secret of the cluster")

    return SaslSession(
        {
            "PLAIN": lambda: PlainExchange({"alice": PASSWORD.encode()}),
            "SCRAM-SHA-256": lambda: scram(ScramMechanism.SHA_256),
            "SCRAM-SHA-512": lambda: scram(ScramMechanism.SHA_512),
            "OAUTHBEARER": lambda: OAuthExchange(_bearer),
        },
        reauth_ms=1000,
    )


def sasl(data: bytes) -> None:
    """The events of one connection: the first byte of each says which, the rest is what it carries."""
    session, now_ms = _session(), 0
    for event in data.split(_SEPARATOR)[:50]:
        kind, rest = event[:1], event[1:]
        number = kind[0] if kind else 0
        if number % 4 == 0:
            mechanism = MECHANISMS[number // 4 % 4] if number < 128 else rest.decode(errors="replace")
            session.on_handshake(number >> 6 & 1, mechanism, now_ms)
        elif number % 4 == 1:
            session.on_authenticate(number >> 2 & 1, rest, now_ms)
        elif number % 4 == 2:
            session.on_raw_token(rest, now_ms)
        else:
            now_ms += number
            if session.on_other_request(now_ms):
                raise GotIn(f"a request is served: {data!r}")
        if session.authenticated is not None:
            raise GotIn(f"{session.authenticated} by {data!r}")


def names(data: bytes) -> None:
    """Certificates, mapping rules, JAAS options, forwarded principals. The first byte chooses which."""
    chosen, rest = (data[0] % 6 if data else 0), data[1:]
    if chosen == 0:
        rendered(subject_of(rest))
    elif chosen == 1:
        rendered(rest)
    elif chosen == 2:
        rules, _, name = rest.decode(errors="replace").partition("\n")
        MappingRules.parse(rules).principal_name(name)
    elif chosen == 3:
        parse_login_module(rest.decode(errors="replace"))
    elif chosen == 4:
        decode_principal(rest)
    else:
        try:
            decode_host(rest)
        except ValueError:
            pass  # what it says it raises


_RULES: Final = tuple(
    AclRule(kind, name, pattern, "User:alice", "*", operation, permission)
    for kind in (ResourceType.TOPIC, ResourceType.GROUP)
    for name in ("orders", "*", "o")
    for pattern in (PatternType.LITERAL, PatternType.PREFIXED)
    for operation in (Operation.READ, Operation.ALL)
    for permission in (Permission.ALLOW, Permission.DENY)
)


def acl_filters(data: bytes) -> None:
    """Requests about rules, as they come; each filter that is accepted is compared with some rules."""
    if not data:
        return
    version = 1 + data[0] % 3
    if data[0] & 0x80:
        request = DescribeAclsRequest.decode(Reader(memoryview(data), 1), version)
        filters = [filter_of(request)]
    else:
        filters = [
            filter_of(each)
            for each in DeleteAclsRequest.decode(Reader(memoryview(data), 1), version).filters[:100]
        ]
    for wanted in filters:
        check_filter(wanted)
        for rule in _RULES:
            wanted.matches(rule)


def key_sets(data: bytes) -> None:
    """What the server of an issuer may answer: keys, or a token with its keys behind it."""
    keys = read_keys(data)
    if len(keys) < 1:
        raise GotIn("a key set without keys was accepted")
    json.loads(data)


@cache
def _server() -> ssl.SSLContext:
    from tests.unit.network import tls_material

    return tls_material.settings().context


def tls(data: bytes) -> None:
    """Records from a stranger: to a handshake, and to what would be a connection if that went well."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    engine = _server().wrap_bio(incoming, outgoing, server_side=True)
    incoming.write(data)
    try:
        engine.do_handshake()
    except ssl.SSLError:
        pass
    else:
        raise GotIn("a handshake of one message went well")
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    try:
        theirs.sendall(data[:4096])
        theirs.close()
        TlsSocket(ours, engine, incoming, outgoing).recv_into(bytearray(1024))
    except OSError:
        pass  # what connections expect of a socket
    finally:
        ours.close()
        theirs.close()


SECURITY_TARGETS: Final = (sasl, names, acl_filters, key_sets, tls)
