"""The issuer's keys while the broker runs: fetched at the start, again and again, and when a token names one
that is not known.

Without keys nobody logs in. Keys that could not be fetched again stay: an issuer that is down for a while
locks nobody out.
"""

from __future__ import annotations

import asyncio
from typing import Final

from headrace.broker.oauth.fetching import KeysUnavailable, Source
from headrace.broker.oauth.keys import NO_KEYS, InvalidKeySet, Keys, read_keys
from headrace.broker.oauth.validation import key_name, validate
from headrace.broker.runtime.runtime import Runtime
from headrace.config.bearer_properties import BearerProperties
from headrace.core.completion import Completion
from headrace.core.errors import ConfigError
from headrace.core.tasks import spawn
from headrace.core.timers import Timer
from headrace.security.oauth import BearerIdentity, OAuthExchange

LOOK_FOR_KEY_MS: Final = 60_000
"""At least this long between two fetches that a token has caused: its sender is a stranger."""
_MOST_DOUBLINGS: Final = 20


class KeySet:
    def __init__(self, runtime: Runtime, listener: str, properties: BearerProperties, source: Source) -> None:
        self._runtime = runtime
        self._listener = listener
        self._properties = properties
        self._source = source
        self._keys: Keys = NO_KEYS
        self._failures = 0
        """Since the last fetch that went well."""
        self._looked_ms: int | None = None
        """When a token last caused a fetch."""
        self._is_stopped = False
        self._timer: Timer | None = None
        self._task: asyncio.Task[None] | None = None
        self._waiting: list[Completion[None]] = []

    def exchange(self) -> OAuthExchange:
        return OAuthExchange(self._validate, self._need)

    def _validate(self, token: str) -> BearerIdentity:
        return validate(token, self._keys, self._properties, self._runtime.clock.wall_ms())

    def open(self) -> None:
        """A file has to be there now. A server may come later. Raises ConfigError."""
        if self._properties.file is not None:
            try:
                self._keys = read_keys(self._source())
            except (KeysUnavailable, InvalidKeySet) as error:
                raise ConfigError(f"the listener {self._listener}: OAUTHBEARER: {error}") from None
            self._schedule()
        else:
            self._begin()

    def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    # --- a token that names a key that is not known ------------------------------------------------------

    def _need(self, token: str) -> Completion[None] | None:
        kid = key_name(token)
        if kid is None or self._keys.knows(kid):
            return None
        now_ms = self._runtime.monotonic_ms()
        if self._task is None:
            if self._looked_ms is not None and now_ms - self._looked_ms < LOOK_FOR_KEY_MS:
                return None
            self._looked_ms = now_ms
            self._begin()
        done: Completion[None] = Completion()
        self._waiting.append(done)
        return done

    # --- fetching ----------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is None and not self._is_stopped:
            self._task = spawn("the keys of OAUTHBEARER", self._fetch(), self._runtime.loop)

    async def _fetch(self) -> None:
        try:
            keys = await self._runtime.loop.run_in_executor(None, self._read)
        except (KeysUnavailable, InvalidKeySet) as error:
            self._failures += 1
            self._runtime.log.warning(
                "keys of OAUTHBEARER not fetched",
                listener=self._listener,
                kept=len(self._keys),
                error=str(error),
            )
        else:
            if self._failures or not self._keys:
                self._runtime.log.info("keys of OAUTHBEARER fetched", listener=self._listener, keys=len(keys))
            self._keys, self._failures = keys, 0
        finally:
            self._task = None
            self._schedule()
            waiting, self._waiting = self._waiting, []
            for done in waiting:
                done.complete(None)

    def _read(self) -> Keys:
        return read_keys(self._source())

    def _schedule(self) -> None:
        if self._is_stopped:
            return
        wait_ms = self._properties.refresh_ms
        if self._failures:
            doubled = self._properties.retry_ms << min(self._failures - 1, _MOST_DOUBLINGS)
            wait_ms = min(doubled, self._properties.retry_max_ms, wait_ms)
        self._timer = self._runtime.timers.after(wait_ms / 1000, "the keys of OAUTHBEARER", self._begin)
