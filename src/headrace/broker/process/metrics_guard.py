"""Who may see metrics: whoever the gate admits and, where ACLs are on, has DESCRIBE on the cluster."""

from __future__ import annotations

import asyncio
from typing import Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.security.security import Security
from headrace.config.http_listener import BASIC, BEARER, HttpListener
from headrace.config.secret import Secret
from headrace.http.gate import Forbidden, Gate
from headrace.http.passwords import Passwords
from headrace.http.tokens import Tokens
from headrace.security.acl import CLUSTER_NAME, Operation, ResourceType
from headrace.security.scram_credential import DEFAULT_ITERATIONS, ScramCredential, ScramMechanism

_NOBODYS: Final = ScramCredential(bytes(16), DEFAULT_ITERATIONS, b"", b"")
"""For users that do not exist: as much work, and no password fits."""


class MetricsGuard:
    def __init__(self, gate: Gate, security: Security) -> None:
        self._gate = gate
        self._security = security

    @property
    def challenge(self) -> str:
        return self._gate.challenge

    async def admit(self, authorization: str | None, certificate: bytes | None, host: str) -> None:
        """Raises Unauthenticated or Forbidden."""
        principal = await self._gate.admit(authorization, certificate)
        rights = self._security.rights_of(principal, host)
        if rights is not None and not rights.allows(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
            raise Forbidden(f"{principal} needs DESCRIBE on the cluster")


def metrics_guard(listener: HttpListener, metadata: MetadataCache, security: Security) -> MetricsGuard | None:
    """None where nobody is asked. Blocking: reads tokens. Raises ConfigError."""
    if not listener.methods:
        return None
    tokens = Tokens.read(listener.token_file or "") if BEARER in listener.methods else None
    passwords = _passwords(metadata) if BASIC in listener.methods else None
    return MetricsGuard(Gate(listener, passwords, tokens), security)


def _passwords(metadata: MetadataCache) -> Passwords:
    """Of the users with SCRAM: the stronger credential, if a user has two."""

    async def are_right(user: str, password: Secret) -> bool:
        known = metadata.image.scram.of(user)
        for mechanism in (ScramMechanism.SHA_512, ScramMechanism.SHA_256):
            credential = known.get(mechanism)
            if credential is not None and credential.fits(mechanism):
                return await asyncio.to_thread(credential.is_of, mechanism, password.reveal())
        return await asyncio.to_thread(_NOBODYS.is_of, ScramMechanism.SHA_512, password.reveal())

    return Passwords(are_right, lambda: metadata.image.scram.epoch)
