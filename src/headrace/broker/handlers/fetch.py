"""Fetch: the hot path out. Served from the raw frame; records leave as file ranges.

Versions 4-18. 7: fetch sessions (KIP-227). 9: the leader epoch the client believes in. 11: the consumer's
rack, and with it reading from followers (KIP-392). 12: flexible, and a divergence is told in the answer
(KIP-595). 13: topic ids. 15: the replica's state as a tagged field, with its broker epoch (KIP-903).
16: endpoints of new leaders (KIP-951). 18: a follower's high watermark, which is passed over (KIP-1166).

Replicas and consumers come the same way. A replica (id 0 and above) reads up to the end of the log and says
with its position what it has; a tool that compares replicas (id -2) reads any replica as a consumer does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from headrace.broker.cluster.lifecycle import MetadataPosition
from headrace.broker.cluster.metadata_partition import METADATA_TOPIC_ID
from headrace.broker.fetch.fetching import READ_COMMITTED, Fetching
from headrace.broker.fetch.sessions import INITIAL_EPOCH, NO_SESSION, FetchContext
from headrace.broker.fetch.watched_partition import FetchKey, WatchedPartition
from headrace.broker.quotas.client_quotas import UNLIMITED
from headrace.broker.requests.api import Api
from headrace.broker.requests.errors import code_of
from headrace.broker.requests.partition_limit import most_elements
from headrace.core.errors import HeadraceError, StaleBrokerEpoch
from headrace.core.tasks import spawn
from headrace.network.connection import Connection
from headrace.network.response import DelayedResponse, Parts, Response
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.fetch_codec import (
    FIRST_WITH_TOPIC_IDS,
    FetchRequestView,
    Topic,
    encode_fetch_response,
    parse_fetch,
)
from headrace.protocol.messages.fetch_request import FetchRequest

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

READ_AT_ONCE_BYTES: Final = 16 * 1024
METADATA_KEY: Final = FetchKey("", METADATA_TOPIC_ID, 0)


def serve(
    context: RequestContext,
    version: int,
    correlation_id: int,
    frame: memoryview,
    at: int,
    connection: Connection,
    most_bytes: int,
) -> Response:
    """`most_bytes`: of records, by the client's quota; 0 while it is throttled."""
    most = most_elements(context.partitions, len(frame))
    if len(frame) > READ_AT_ONCE_BYTES:
        pending = DelayedResponse(exclusive=True)
        serving = _serve_large(
            context, version, correlation_id, bytes(frame), at, connection, most_bytes, most, pending
        )
        context.in_flight.keep(spawn("a large fetch", serving, context.runtime.loop))
        return pending
    request = parse_fetch(frame, at, version, None, most)
    begun = _begin(context, version, correlation_id, connection, most_bytes, request, _wanted(request))
    return begun.answer() if isinstance(begun, Fetching) else begun


def _begin(
    context: RequestContext,
    version: int,
    correlation_id: int,
    connection: Connection,
    most_bytes: int,
    request: FetchRequestView,
    wanted: list[WatchedPartition],
) -> Fetching | Parts:
    """What is to be read, or the answer that refuses it."""
    # Whoever says that it is a broker and may not be one is a broker in nothing: not even alive.
    is_denied = request.replica_id >= 0 and not context.security.is_broker(connection)
    as_replica = request.replica_id >= 0 and not is_denied
    is_throttled = most_bytes == 0 and not as_replica
    if is_throttled and request.session_epoch <= INITIAL_EPOCH:
        context.fetches.sessions.end_own(connection.principal, request.session_id)
        return _nothing(version, correlation_id, NO_SESSION)  # the client asks for everything once more
    try:
        if as_replica:
            _check_incarnation(context, request)
            if not connection.is_link:
                context.peers.hosts.believe_replica(connection, request.replica_id, request.replica_epoch)
        fetch_context = context.fetches.sessions.begin(
            request.session_id,
            request.session_epoch,
            wanted,
            _forgotten(request),
            uses_topic_ids=version >= FIRST_WITH_TOPIC_IDS,
            now_ms=context.runtime.monotonic_ms(),
            as_replica=as_replica,
            owner=connection.principal,
        )
    except HeadraceError as error:
        chunks, _ = encode_fetch_response(version, correlation_id, (), error_code=code_of(error))
        return list(chunks)
    if is_throttled:
        return _nothing(version, correlation_id, fetch_context.session_id)
    if as_replica:
        _note_metadata_fetch(context, request, fetch_context, connection)
    session, read_committed = fetch_context.session, request.isolation_level == READ_COMMITTED
    if session is not None and session.read_committed != read_committed:
        session.isolate(read_committed)
    if as_replica:
        most_bytes = UNLIMITED
    return Fetching(
        context, version, correlation_id, request, fetch_context, connection, most_bytes, is_denied
    )


def _nothing(version: int, correlation_id: int, session_id: int) -> Parts:
    """Of a client that is throttled: no partition at all. Incremental fetches say so of what has no news."""
    chunks, _ = encode_fetch_response(version, correlation_id, (), session_id=session_id)
    return list(chunks)


async def _serve_large(
    context: RequestContext,
    version: int,
    correlation_id: int,
    frame: bytes,
    at: int,
    connection: Connection,
    most_bytes: int,
    most: int,
    pending: DelayedResponse,
) -> None:
    """A request of hundreds of partitions: read in a thread, when few others are in hand."""
    try:
        async with context.fetches.wide.admitted(connection.is_link):
            read = await context.runtime.work_thread.run(_read, frame, at, version, most, pending)
            if read is None or pending.is_abandoned:
                return
            begun = _begin(context, version, correlation_id, connection, most_bytes, *read)
            if not isinstance(begun, Fetching):
                answer: Response = begun
            elif begun.is_long:
                await begun.in_turns(pending, may_wait=True)
                return
            else:
                answer = begun.answer(pending)
    except Exception as error:
        context.runtime.peer_log.warning("connection closed", connection.peer_host, error=str(error))
        connection.close()
        if not isinstance(error, HeadraceError):
            raise
        return
    if isinstance(answer, list):
        pending.complete(answer)


def _read(
    frame: bytes, at: int, version: int, most: int, pending: DelayedResponse
) -> tuple[FetchRequestView, list[WatchedPartition]] | None:
    """None if nobody waits for it any more: it may have waited long for the thread."""
    if pending.is_abandoned:
        return None
    request = parse_fetch(memoryview(frame), at, version, None, most)
    return request, _wanted(request)


def _check_incarnation(context: RequestContext, request: FetchRequestView) -> None:
    """Refuse a process that has been replaced: what it has is not what its successor has (KIP-903)."""
    registration = context.metadata.image.brokers.get(request.replica_id)
    if registration is not None and 0 <= request.replica_epoch < registration.epoch:
        raise StaleBrokerEpoch(f"broker {request.replica_id} is registered anew: {registration.epoch}")


def _note_metadata_fetch(
    context: RequestContext, request: FetchRequestView, fetch_context: FetchContext, connection: Connection
) -> None:
    """Who follows the metadata is alive. Also a request that only continues its session says so."""
    want: WatchedPartition | None = None
    if fetch_context.session is not None:
        want = fetch_context.session.partitions.get(METADATA_KEY)
    else:
        for each in fetch_context.wanted:
            if each.key == METADATA_KEY:
                want = each
    if want is not None:
        position = MetadataPosition(want.fetch_offset, want.log_start_offset)
        context.node.on_metadata_fetch(request.replica_id, request.replica_epoch, position, connection)


def _wanted(request: FetchRequestView) -> list[WatchedPartition]:
    return [
        WatchedPartition(_key(topic, item[0]), item[2], item[5], item[1], item[3], item[4])
        for topic, partitions in request.topics
        for item in partitions
    ]


def _forgotten(request: FetchRequestView) -> list[FetchKey]:
    return [_key(topic, index) for topic, indexes in request.forgotten for index in indexes]


def _key(topic: Topic, partition: int) -> FetchKey:
    if isinstance(topic, UUID):
        return FetchKey("", topic, partition)
    return FetchKey(topic, None, partition)


API: Final = Api(ApiKey.FETCH, 4, 18, FetchRequest, None)
