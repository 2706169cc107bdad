"""Kerberos by the system's own library (MIT's libgssapi_krb5). Blocking: threads call this.

The library reads the keytab at each login, so a new key counts from the moment that it is in the file. It
remembers tickets in a replay cache, which is a file too: what somebody has overheard logs nobody in.

Only its plain calls are used. Its class of contexts keeps an error until the next call, and returns a token
as if all were well.
"""

from __future__ import annotations

from typing import Any, Final

from gssapi import raw
from gssapi.exceptions import GSSError

from headrace.core.errors import ConfigError
from headrace.security.gssapi import ContextRefused

MAX_REASON: Final = 300
_KERBEROS: Final = raw.MechType.kerberos
_ANONYMOUS: Final = raw.RequirementFlag.anonymity


class Acceptor:
    """What a listener has of Kerberos: the key of `principal` in the file `keytab`."""

    def __init__(self, keytab: str, principal: str) -> None:
        """Raises ConfigError."""
        try:
            name = raw.import_name(principal.encode(), raw.NameType.kerberos_principal)
            store: dict[bytes | str, bytes | str] = {b"keytab": f"FILE:{keytab}".encode()}
            self._credentials = raw.acquire_cred_from(store, name, None, [_KERBEROS], "accept").creds
        except GSSError as error:
            raise ConfigError(f"no key of {principal} in the keytab {keytab}: {reason(error)}") from None

    def context(self) -> KerberosContext:
        return KerberosContext(self._credentials)


def default_realm() -> str:
    """That of krb5.conf: the realm of a name that is given without one. Raises ConfigError."""
    try:
        name = raw.import_name(b"nobody", raw.NameType.kerberos_principal)
        shown = raw.display_name(raw.canonicalize_name(name, _KERBEROS), False).name
    except GSSError as error:
        raise ConfigError(f"Kerberos is not configured: {reason(error)}") from None
    _, at, realm = shown.decode().rpartition("@")
    if not at or not realm:
        raise ConfigError("Kerberos is not configured: krb5.conf has no default_realm")
    return str(realm)


class KerberosContext:
    """`headrace.security.gssapi.SecurityContext`."""

    __slots__ = ("_context", "_credentials", "_peer")

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials
        self._context: Any = None
        self._peer: str | None = None

    @property
    def peer(self) -> str | None:
        return self._peer

    def accept(self, token: bytes) -> bytes:
        try:
            done = raw.accept_sec_context(token, self._credentials, self._context)
            self._context = done.context
            if done.more_steps:
                # For a token of another kind the library asks for a further one, by an error that names the
                # broker's principal. A ticket never needs one.
                raise ContextRefused("a token that is no ticket")
            self._peer = self._proved(done)
        except GSSError as error:
            raise ContextRefused(reason(error)) from None
        return done.token or b""

    def _proved(self, done: Any) -> str:
        if done.mech != _KERBEROS:
            raise ContextRefused("the mechanism is not Kerberos")
        if _ANONYMOUS in done.flags:
            raise ContextRefused("the peer is anonymous")
        try:
            return str(raw.display_name(done.initiator_name, False).name.decode())
        except UnicodeDecodeError:
            raise ContextRefused("the name of the principal is not UTF-8") from None

    def wrap(self, message: bytes) -> bytes:
        try:
            return bytes(raw.wrap(self._context, message, False).message)
        except GSSError as error:
            raise ContextRefused(reason(error)) from None

    def unwrap(self, token: bytes) -> bytes:
        try:
            return bytes(raw.unwrap(self._context, token).message)
        except GSSError as error:
            raise ContextRefused(reason(error)) from None


def reason(error: GSSError) -> str:
    """The library's own words. They may repeat names that the peer has sent, so that they are cut."""
    try:
        text = "; ".join(
            (*error.get_all_statuses(error.maj_code, True), *error.get_all_statuses(error.min_code, False))
        )
    except Exception:  # of the library, about its own codes
        text = f"error {error.maj_code}, {error.min_code}"
    return "".join(each if each.isprintable() else "?" for each in text[:MAX_REASON])
