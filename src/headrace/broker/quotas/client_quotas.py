"""Charges clients for what they use, and mutes those that are over a quota.

A client that is over is answered at once, and then its connection is not read until it is within the quota
again: clients that pass over `throttle_time_ms` are held like any other. Fetches of a client that is held are
answered with nothing, before anything is read. Brokers are charged for nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.quotas.throttle_time import write_throttle_time
from headrace.broker.quotas.timed_awaitable import TimedAwaitable
from headrace.broker.runtime.runtime import Runtime
from headrace.controller.delta import MetadataDelta
from headrace.controller.quota_image import IP
from headrace.core.ports import FileRange
from headrace.metrics.quotas import FETCH, PRODUCE, REQUEST
from headrace.network.connection import Connection
from headrace.network.response import DelayedResponse, Parts, Response
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.api_names import api_name
from headrace.protocol.headers import RequestHeader
from headrace.protocol.message import Message
from headrace.security.allowance import BURST_SECONDS, Allowances, ClientAllowances
from headrace.security.token_bucket import TokenBucket

T = TypeVar("T")

_PRODUCE: Final = int(ApiKey.PRODUCE)
_FETCH: Final = int(ApiKey.FETCH)
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
NS_PER_PERCENT: Final = 10_000_000
"""A hundred percent are all of the loop."""
MOST_REQUEST_THROTTLE_MS: Final = 1000
MUTED_AT_ONCE_MS: Final = 2000
"""After this time a muted connection is looked at again: its quota may have been raised."""
UNLIMITED: Final = 2**31 - 1


class ClientQuotas:
    """Invariant: `are_set` exactly while the image has a quota of users or client ids."""

    def __init__(
        self,
        runtime: Runtime,
        metadata: MetadataCache,
        response_of: Callable[[int], type[Message]],
        may_be_broker: Callable[[Connection], bool],
    ) -> None:
        """`response_of`: the class of an API's response, by the API's key."""
        self._may_be_broker = may_be_broker
        self._runtime = runtime
        self._metadata = metadata
        self._response_of = response_of
        self._figures = runtime.metrics.quotas
        self._allowances = Allowances(lambda entity: metadata.image.quotas.of(entity))
        self._epoch = -1
        self.are_set = False
        self._on_delta(None)
        metadata.store.subscribe(self._on_delta)

    def _on_delta(self, _delta: MetadataDelta | None) -> None:
        quotas = self._metadata.image.quotas
        if quotas.epoch != self._epoch:
            self._epoch = quotas.epoch
            self.are_set = any(entity[0][0] != IP for entity in quotas)
            self._allowances.look_up_again()

    def fetch_limit(self, connection: Connection, client_id: str | None) -> int:
        """How many bytes of records the next answer may hold; 0: the client is held."""
        if connection.is_link:
            return UNLIMITED
        now_ms = self._runtime.monotonic_ms()
        fetch = self._of(connection, client_id, now_ms).fetch
        if fetch is None:
            return UNLIMITED
        return 0 if fetch.wait_ms(now_ms) else max(1, min(int(fetch.rate * BURST_SECONDS), UNLIMITED))

    def on_served(
        self,
        connection: Connection,
        header: RequestHeader,
        request_bytes: int,
        spent_ns: int,
        answer: Response,
    ) -> None:
        """A request has been served, or its answer is to come later."""
        if connection.is_link:
            return
        now_ms = self._runtime.monotonic_ms()
        allowed = self._of(connection, header.client_id, now_ms)
        held_ms = self._charge_time(allowed, spent_ns, now_ms)
        if header.api_key == _PRODUCE and allowed.produce is not None:
            bytes_held_ms = allowed.produce.charge(request_bytes, now_ms)
            self._figures.throttled(PRODUCE, bytes_held_ms)
            held_ms = max(held_ms, bytes_held_ms)
        if isinstance(answer, list):
            if header.api_key == _FETCH:
                held_ms = max(held_ms, self._charge_answer(allowed, answer, now_ms))
            if held_ms:
                self._tell(answer, header, held_ms)
        elif isinstance(answer, DelayedResponse):
            self._charge_later(connection, header, allowed, answer, now_ms + held_ms)
        if held_ms:
            self._mute(connection, _bytes_of(allowed, header), held_ms)
        elif header.api_key == _API_VERSIONS:  # the first request of nearly every client
            self._hold_if_in_debt(connection, allowed, now_ms)

    def on_known(self, connection: Connection) -> None:
        """It is known whose connection this is: a client that is held does not begin anew with another."""
        if self.are_set and not connection.is_link:
            now_ms = self._runtime.monotonic_ms()
            self._hold_if_in_debt(connection, self._of(connection, None, now_ms), now_ms)

    def _hold_if_in_debt(self, connection: Connection, allowed: ClientAllowances, now_ms: int) -> None:
        bucket = allowed.most_in_debt(now_ms)
        # A broker is not known as one before its first request, and must not wait for clients with its name.
        if bucket is not None and not self._may_be_broker(connection):
            self._mute(connection, bucket, bucket.wait_ms(now_ms))

    def timed(self, connection: Connection, header: RequestHeader, later: Awaitable[T]) -> Awaitable[T]:
        """What is carried out in turns takes its time of the loop too."""
        allowed = self._of(connection, header.client_id, self._runtime.monotonic_ms()).request
        if allowed is None or connection.is_link:
            return later
        return TimedAwaitable(
            later, lambda spent_ns: allowed.take(spent_ns / NS_PER_PERCENT, self._runtime.monotonic_ms())
        )

    def _of(self, connection: Connection, client_id: str | None, now_ms: int) -> ClientAllowances:
        return self._allowances.of(connection.principal.name, client_id or "", now_ms)

    def _charge_time(self, allowed: ClientAllowances, spent_ns: int, now_ms: int) -> int:
        if allowed.request is None:
            return 0
        held_ms = min(allowed.request.charge(spent_ns / NS_PER_PERCENT, now_ms), MOST_REQUEST_THROTTLE_MS)
        self._figures.throttled(REQUEST, held_ms)
        return held_ms

    def _charge_answer(self, allowed: ClientAllowances, parts: Parts, now_ms: int) -> int:
        if allowed.fetch is None:
            return 0
        held_ms = allowed.fetch.charge(_size(parts), now_ms)
        self._figures.throttled(FETCH, held_ms)
        return held_ms

    def _charge_later(
        self,
        connection: Connection,
        header: RequestHeader,
        allowed: ClientAllowances,
        answer: DelayedResponse,
        held_until_ms: int,
    ) -> None:
        """When the answer is there: what it takes of the quota, and how long the client is held by then."""
        observe = answer.on_answered

        def on_answered(parts: Parts) -> None:
            if observe is not None:
                observe(parts)
            now_ms = self._runtime.monotonic_ms()
            held_ms = max(held_until_ms - now_ms, self._charge_time(allowed, 0, now_ms))
            if header.api_key == _FETCH and not connection.is_link:
                held_ms = max(held_ms, self._charge_answer(allowed, parts, now_ms))
            if held_ms:
                self._tell(parts, header, held_ms)
                self._mute(connection, _bytes_of(allowed, header), held_ms)

        answer.on_answered = on_answered

    def _tell(self, parts: Parts, header: RequestHeader, held_ms: int) -> None:
        self._figures.told(api_name(header.api_key), held_ms)
        response = self._response_of(header.api_key)
        write_throttle_time(parts, response, header.api_version, min(held_ms, UNLIMITED))

    # --- muting -------------------------------------------------------------------------------------------

    def _mute(self, connection: Connection, allowed: TokenBucket | None, held_ms: int) -> None:
        if connection.is_muted:
            return  # its timer looks again
        connection.mute()
        self._figures.muted += 1
        self._look_later(connection, allowed, held_ms)

    def _look_later(self, connection: Connection, allowed: TokenBucket | None, held_ms: int) -> None:
        self._runtime.timers.after(
            min(held_ms, MUTED_AT_ONCE_MS) / 1000,
            "the time of a muted connection",
            partial(self._look, connection, allowed, self._epoch),
        )

    def _look(self, connection: Connection, allowed: TokenBucket | None, epoch: int) -> None:
        """Whether it is still to be held. If quotas have changed since, the next request decides."""
        held_ms = 0 if allowed is None else allowed.wait_ms(self._runtime.monotonic_ms())
        if held_ms and epoch == self._epoch and not connection.closed:
            connection.mute()
            self._look_later(connection, allowed, held_ms)
        else:
            self._figures.muted -= 1
            connection.unmute()


def _bytes_of(allowed: ClientAllowances, header: RequestHeader) -> TokenBucket | None:
    """By which the request was charged for its bytes."""
    return {_PRODUCE: allowed.produce, _FETCH: allowed.fetch}.get(header.api_key)


def _size(parts: Parts) -> int:
    return sum(part.length if isinstance(part, FileRange) else len(part) for part in parts)
