"""Asks brokers who may do what. Once for all viewers: what was asked is kept for some seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from headrace.client.access import cluster_access
from headrace.client.acls import authorizer_settings, describe_acls
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, Refused
from headrace.client.quotas import describe_quotas
from headrace.client.tokens import Token, list_tokens
from headrace.client.users import list_users
from headrace.console.access.seen import AccessSeen, Denials, Rules
from headrace.doctor.gathering import attempt
from headrace.doctor.model import Unknown
from headrace.protocol.error_codes import ErrorCode

KEPT_SECONDS: Final = 10.0


class AccessSource:
    def __init__(self, connect: Callable[[], Cluster], now: Callable[[], float] = time.monotonic) -> None:
        self._connect = connect
        self._now = now
        self._turn = asyncio.Lock()
        self._until = float("-inf")
        self._kept: AccessSeen | None = None

    async def seen(self) -> AccessSeen:
        """Some seconds old at most."""
        async with self._turn:
            if self._kept is None or self._now() >= self._until:
                self._kept = await self._ask()
                self._until = self._now() + KEPT_SECONDS
            return self._kept

    async def _ask(self) -> AccessSeen:
        async with self._connect() as cluster:
            rules, users, tokens, quotas, denied = await asyncio.gather(
                attempt("rules", _rules(cluster)),
                attempt("users", list_users(cluster)),
                attempt("tokens", _tokens(cluster)),
                attempt("quotas", describe_quotas(cluster)),
                attempt("denials", _denials(cluster)),
            )
        return AccessSeen(time.time_ns() // 1_000_000, rules, users, tokens, quotas, denied)


async def _rules(cluster: Cluster) -> Rules | None:
    try:
        rules = await describe_acls(cluster)
    except Refused as error:
        if error.code == ErrorCode.SECURITY_DISABLED:
            return None
        raise
    return Rules(rules, await authorizer_settings(cluster))


_NO_TOKENS: Final = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "these brokers make none",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "brokers tell them only to whoever logs in by SASL"
    " without a token, or by a certificate, and the console does not",
}


async def _tokens(cluster: Cluster) -> list[Token] | Unknown:
    try:
        return await list_tokens(cluster)
    except Refused as error:
        if error.code in _NO_TOKENS:
            return Unknown(_NO_TOKENS[ErrorCode(error.code)])
        raise


async def _denials(cluster: Cluster) -> Denials | Unknown:
    """Only Headrace's brokers remember them."""
    found = await cluster_access(cluster)
    telling = [each for each in found.brokers if each.mode]
    if not telling:
        raise ClientFailure("these brokers do not remember what they denied")
    return Denials(found.denied, max(each.since_ms for each in telling), found.silent)
