"""Who sends an HTTP request. Nobody comes past it without an answer to that: one gate for all routes, those
that do not exist too."""

from __future__ import annotations

from typing import Final

from headrace.config.http_listener import BASIC, BEARER, MTLS, HttpListener
from headrace.core.errors import ClientError, HeadraceError
from headrace.http.authorization import Basic, Bearer, parse_authorization
from headrace.http.passwords import Passwords
from headrace.http.tokens import Tokens
from headrace.security.distinguished_name import rendered, subject_of
from headrace.security.mapping_rules import MappingRules
from headrace.security.principal import ANONYMOUS, Principal, user

_CHALLENGES: Final = {BASIC: 'Basic realm="headrace", charset="UTF-8"', BEARER: 'Bearer realm="headrace"'}


class Unauthenticated(HeadraceError):
    """Does not tell which part was wrong."""


class Forbidden(HeadraceError):
    """Who it is was clear, and they may not. Says which right is missing."""


class Gate:
    def __init__(
        self, listener: HttpListener, passwords: Passwords | None = None, tokens: Tokens | None = None
    ) -> None:
        """What the listener's methods need has to be there. Raises ConfigError for its mapping rules."""
        self._methods = frozenset(listener.methods)
        assert (BASIC in self._methods) <= (passwords is not None), "basic needs somebody who knows passwords"
        assert (BEARER in self._methods) <= (tokens is not None), "bearer needs tokens"
        self._passwords = passwords
        self._tokens = tokens
        tls = None if listener.security is None else listener.security.tls
        self._mapping = None if tls is None else MappingRules.parse(tls.mapping_rules)

    @property
    def challenge(self) -> str:
        """For the header `WWW-Authenticate` of a refusal."""
        found = [text for method, text in _CHALLENGES.items() if method in self._methods]
        return ", ".join(found) or "Mutual"

    async def admit(self, authorization: str | None, certificate: bytes | None) -> Principal:
        """From the header, if there is one, else from the certificate (DER), which TLS has verified.

        Raises Unauthenticated; TooBusy and what checks of passwords raise.
        """
        if not self._methods:
            return ANONYMOUS
        if authorization is not None and not self._methods.isdisjoint((BASIC, BEARER)):
            found = await self._by_header(authorization)
        elif certificate is not None and MTLS in self._methods:
            found = self._by_certificate(certificate)
        else:
            found = None
        if found is None:
            raise Unauthenticated("say who you are")
        return found

    async def _by_header(self, authorization: str) -> Principal | None:
        given = parse_authorization(authorization)
        if isinstance(given, Basic) and BASIC in self._methods and self._passwords is not None:
            is_right = await self._passwords.are_right(given.user, given.password)
            return user(given.user) if is_right else None
        if isinstance(given, Bearer) and BEARER in self._methods and self._tokens is not None:
            name = self._tokens.user_of(given.token)
            return None if name is None else user(name)
        return None

    def _by_certificate(self, certificate: bytes) -> Principal | None:
        assert self._mapping is not None, "a certificate comes with TLS"
        try:
            return user(self._mapping.principal_name(rendered(subject_of(certificate))))
        except ClientError:
            return None  # it names nobody here
