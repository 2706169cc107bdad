"""SCRAM with delegation tokens: a token's id is the name, the base64 of its HMAC the password.

A credential is a hash of thousands of rounds. It is derived when a token is first used with a mechanism, in a
thread, once for all who wait for it. Only tokens that exist are worth that: ids are drawn from 2^128.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.security.delegation_tokens import DelegationTokens
from headrace.controller.token_image import DelegationToken
from headrace.core.completion import Completion
from headrace.core.tasks import spawn
from headrace.security.scram import TokenCredential
from headrace.security.scram_credential import DEFAULT_ITERATIONS, ScramCredential, ScramMechanism

MOST_KEPT: Final = 10_000
"""Credentials; each takes half a kilobyte."""

_Key = tuple[ScramMechanism, str]


class TokenLogins:
    """Invariant: a credential says nothing about whether its token may be used now; the metadata does."""

    def __init__(self, runtime: Runtime, metadata: MetadataCache, tokens: DelegationTokens) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._secret = tokens.secret
        self._kept: dict[_Key, ScramCredential] = {}
        """In the order of their last use."""
        self._waiting: dict[_Key, list[Completion[None]]] = {}
        """Whoever waits for a credential that is being derived."""
        self._tasks: set[asyncio.Task[None]] = set()

    def find(self, mechanism: ScramMechanism, token_id: str) -> TokenCredential | None:
        now_ms = self._runtime.clock.wall_ms()
        token = self._usable(token_id, now_ms)
        credential = self._kept.pop((mechanism, token_id), None)
        if token is None or credential is None:
            return None
        self._kept[mechanism, token_id] = credential
        return TokenCredential(credential, token.owner, min(token.expiry_ms, token.max_ms) - now_ms)

    def derive(self, mechanism: ScramMechanism, token_id: str) -> Completion[None] | None:
        """None if there is nothing to wait for: `find` knows already what it can say."""
        key = (mechanism, token_id)
        if key in self._kept or self._usable(token_id, self._runtime.clock.wall_ms()) is None:
            return None
        done: Completion[None] = Completion()
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append(done)
            return done
        self._waiting[key] = [done]
        task = spawn("the credential of a token", self._derive(key))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return done

    def _usable(self, token_id: str, now_ms: int) -> DelegationToken | None:
        token = self._metadata.image.tokens.find(token_id)
        return None if token is None or token.is_expired(now_ms) else token

    async def _derive(self, key: _Key) -> None:
        mechanism, token_id = key
        password = base64.b64encode(self._secret.hmac_of(token_id)).decode()
        salt = self._secret.salt_of(token_id, mechanism.value)
        try:
            self._kept[key] = await self._runtime.work_thread.run(
                ScramCredential.of_password, mechanism, password, salt, DEFAULT_ITERATIONS
            )
            while len(self._kept) > MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        finally:
            for done in self._waiting.pop(key):
                done.complete(None)
