"""Who coordinates a group or a transactional id, and one question to each coordinator about all its keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import IntEnum
from typing import Final, TypeVar

from headrace.client import health
from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.client.refusals import RETRIABLE, refusal
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import FindCoordinatorResponse

T = TypeVar("T")

_FIRST_BATCHED: Final = 4
_KEYS_AT_ONCE: Final = 500
"""A question about thousands of groups is asked in parts: no answer should take a broker long."""


class CoordinatorKind(IntEnum):
    GROUP = 0
    TRANSACTION = 1

    def subject(self, key: str) -> str:
        return f"group {key}" if self is CoordinatorKind.GROUP else f"transactional id {key}"


Ask = Callable[[int, list[str]], Awaitable[Mapping[str, T | Refused]]]
"""Asks one broker about some keys. Each gets its result, or why it was refused."""


async def find_coordinators(cluster: Cluster, kind: CoordinatorKind, keys: Iterable[str]) -> dict[str, int]:
    """The broker that coordinates each key. Refused while one of them has none."""
    wanted = list(dict.fromkeys(keys))
    if not wanted:
        return {}
    connection = await cluster.any_broker()
    if connection.version_for(FindCoordinatorRequest) < _FIRST_BATCHED:
        return {key: await _find_one(cluster, kind, key) for key in wanted}
    request = FindCoordinatorRequest(key_type=int(kind), coordinator_keys=wanted)
    reply = await connection.request(request, FindCoordinatorResponse, timeout=cluster.request_timeout)
    found = {}
    for entry in reply.coordinators:
        if entry.error_code:
            raise refusal(entry.error_code, kind.subject(entry.key), entry.error_message)
        found[entry.key] = entry.node_id
    return found


async def _find_one(cluster: Cluster, kind: CoordinatorKind, key: str) -> int:
    request = FindCoordinatorRequest(key_type=int(kind), key=key)
    reply = await cluster.ask_any(request, FindCoordinatorResponse)
    if reply.error_code:
        raise refusal(reply.error_code, kind.subject(key), reply.error_message)
    return reply.node_id


async def outcomes(
    cluster: Cluster, kind: CoordinatorKind, keys: Iterable[str], ask: Ask[T]
) -> dict[str, T | Refused]:
    """What becomes of each key, in the order of the keys.

    Keys whose coordinator moves or loads are asked about again, the others never twice: what was deleted must
    not be reported as missing.
    """
    wanted = list(dict.fromkeys(keys))
    done: dict[str, T | Refused] = {}

    async def ask_the_rest() -> None:
        homes = await find_coordinators(cluster, kind, (key for key in wanted if key not in done))
        by_broker: dict[int, list[str]] = {}
        for key, broker_id in homes.items():
            by_broker.setdefault(broker_id, []).append(key)
        passing: Refused | None = None
        for broker_id, theirs in by_broker.items():
            for at in range(0, len(theirs), _KEYS_AT_ONCE):
                for key, outcome in (await ask(broker_id, theirs[at : at + _KEYS_AT_ONCE])).items():
                    if isinstance(outcome, Refused) and outcome.code in RETRIABLE:
                        passing = outcome
                    else:
                        done[key] = outcome
        if passing is not None:
            raise passing

    await cluster.retried(ask_the_rest)
    return {key: done[key] for key in wanted}


async def results(cluster: Cluster, kind: CoordinatorKind, keys: Iterable[str], ask: Ask[T]) -> dict[str, T]:
    """As `outcomes`, but the first key that is refused is raised."""
    found: dict[str, T] = {}
    for key, outcome in (await outcomes(cluster, kind, keys, ask)).items():
        if isinstance(outcome, Refused):
            raise outcome
        found[key] = outcome
    return found


async def every_broker(cluster: Cluster, ask: Callable[[int], Awaitable[list[T]]]) -> list[T]:
    """What all living brokers say together: each knows only the keys that it coordinates."""

    async def attempt() -> list[T]:
        # Metadata would also name a broker that has just died.
        view = await health.describe_cluster(cluster)
        found: list[T] = []
        for broker in view.brokers:
            if broker.alive:
                found += await ask(broker.broker_id)
        return found

    return await cluster.retried(attempt)
