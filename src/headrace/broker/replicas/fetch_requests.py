"""How a follower's fetches look, and what counts as an answer to one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from headrace.core.ports_network import PeerReset
from headrace.protocol.headers import LENGTH_SIZE, frame_request
from headrace.protocol.limits import ProtocolError
from headrace.protocol.messages.api_versions_request import ApiVersionsRequest
from headrace.protocol.replica_fetch_codec import ReplicaFetchAnswer, ReplicaFetchEncoder, parse_replica_fetch

if TYPE_CHECKING:
    from headrace.broker.replicas.host import ReplicaHost
    from headrace.config.broker import BrokerConfig

CLIENT_ID: Final = "replica"
NUDGE: Final = frame_request(ApiVersionsRequest(), 0, 0, CLIENT_ID)[LENGTH_SIZE:]
"""A leader ends the wait of a fetch when something arrives behind it. What that is does not matter."""
SLACK_MS: Final = 10_000
"""How much later than its longest wait an answer may come."""


def encoder_of(host: ReplicaHost) -> ReplicaFetchEncoder:
    return ReplicaFetchEncoder(
        CLIENT_ID,
        replica_id=host.runtime.broker_id,
        replica_epoch=host.node.broker_epoch,
        max_wait_ms=host.runtime.config.replica_fetch_wait_max_ms,
        min_bytes=host.runtime.config.replica_fetch_min_bytes,
        max_bytes=host.runtime.config.replica_fetch_response_max_bytes,
    )


def longest_wait(config: BrokerConfig) -> float:
    """Seconds after which an answer is overdue."""
    wait = config.replica_fetch_wait_max_ms
    return max(min(config.replica_socket_timeout_ms, wait + SLACK_MS), wait + 1_000) / 1000


def parsed(frame: memoryview, correlation_id: int) -> ReplicaFetchAnswer:
    try:
        answer = parse_replica_fetch(frame)
    except ProtocolError as error:
        raise PeerReset(f"the leader's answer cannot be read: {error}") from error
    if answer.correlation_id != correlation_id:
        raise PeerReset("the leader answers something else than it was asked")
    return answer


def ignore(answer: asyncio.Future[memoryview]) -> None:
    """What a nudge is answered is of no interest, nor that it is not."""
    if not answer.cancelled():
        answer.exception()
