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

from headrace.broker.api import Api
from headrace.broker.cluster.duties import MetadataPosition
from headrace.broker.errors import code_of
from headrace.broker.fetch.reading import PartitionAnswer, Reader, ReadResult, find, read_all
from headrace.broker.fetch.sessions import FetchContext
from headrace.broker.fetch.waiting import WaitingFetch
from headrace.broker.fetch.wanted import WANTED_BYTES, FetchKey, Interest, LoneInterest, Wanted
from headrace.broker.leader_endpoints import endpoints_of
from headrace.broker.requests.partition_limit import most_elements
from headrace.broker.storage import METADATA_TOPIC_ID
from headrace.config.broker_properties.cluster import RACK_AWARE_SELECTOR
from headrace.core.errors import HeadraceError, StaleBrokerEpoch
from headrace.network.answer import Answer, Parts, Pending
from headrace.network.connection import Connection
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.fetch_codec import (
    FIRST_WITH_ENDPOINTS,
    FIRST_WITH_TOPIC_IDS,
    FetchedPartition,
    FetchRequestView,
    Topic,
    encode_fetch_response,
    parse_fetch,
)
from headrace.protocol.messages.fetch_request import FetchRequest

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.protocol.node_endpoints import Endpoint

READ_COMMITTED: Final = 1
FIRST_WITH_RACK: Final = 11
DEBUGGING_CONSUMER: Final = -2
PROBED_ROUNDS: Final = 4
MOST_ROUNDS: Final = 8
"""A look-up may lead from one cold place to the next; what it does not reach is left for the next fetch."""
METADATA_KEY: Final = FetchKey("", METADATA_TOPIC_ID, 0)


def serve(
    broker: Broker, version: int, correlation_id: int, frame: memoryview, at: int, connection: Connection
) -> Answer:
    request = parse_fetch(frame, at, version, None, most_elements(broker, len(frame)))
    as_replica = request.replica_id >= 0
    try:
        if as_replica:
            _check_incarnation(broker, request)
            if not connection.is_link:
                broker.broker_hosts.believe_replica(connection, request.replica_id, request.replica_epoch)
        context = broker.fetch_sessions.begin(
            request.session_id,
            request.session_epoch,
            _wanted(request),
            _forgotten(request),
            uses_topic_ids=version >= FIRST_WITH_TOPIC_IDS,
            now_ms=broker.monotonic_ms(),
            as_replica=as_replica,
        )
    except HeadraceError as error:
        chunks, _ = encode_fetch_response(version, correlation_id, (), error_code=code_of(error))
        return list(chunks)
    if as_replica:
        _note_metadata_fetch(broker, request, context, connection)
    session, read_committed = context.session, request.isolation_level == READ_COMMITTED
    if session is not None and session.read_committed != read_committed:
        session.isolate(read_committed)
    fetch = _Fetch(broker, version, correlation_id, request, context, connection)
    result = fetch.read()
    if result.cold is not None:
        return fetch.bring(result, Pending())
    if (
        result.total_bytes >= fetch.min_bytes
        or result.must_answer
        or request.max_wait_ms <= 0
        or not context.wanted
        or (session is None and not broker.memory.fetch_sessions.has_room(len(context.wanted) * WANTED_BYTES))
    ):
        return fetch.encode(result)
    return fetch.wait(result)


def _check_incarnation(broker: Broker, request: FetchRequestView) -> None:
    """Refuse a process that has been replaced: what it has is not what its successor has (KIP-903)."""
    registration = broker.image.brokers.get(request.replica_id)
    if registration is not None and 0 <= request.replica_epoch < registration.epoch:
        raise StaleBrokerEpoch(f"broker {request.replica_id} is registered anew: {registration.epoch}")


def _note_metadata_fetch(
    broker: Broker, request: FetchRequestView, context: FetchContext, connection: Connection
) -> None:
    """Who follows the metadata is alive. Also a request that only continues its session says so."""
    want: Wanted | None = None
    if context.session is not None:
        want = context.session.partitions.get(METADATA_KEY)
    else:
        for each in context.wanted:
            if each.key == METADATA_KEY:
                want = each
    if want is not None:
        position = MetadataPosition(want.fetch_offset, want.log_start_offset)
        broker.on_metadata_fetch(request.replica_id, request.replica_epoch, position, connection)


def _wanted(request: FetchRequestView) -> list[Wanted]:
    return [
        Wanted(_key(topic, item[0]), item[2], item[5], item[1], item[3], item[4])
        for topic, partitions in request.topics
        for item in partitions
    ]


def _forgotten(request: FetchRequestView) -> list[FetchKey]:
    return [_key(topic, index) for topic, indexes in request.forgotten for index in indexes]


def _key(topic: Topic, partition: int) -> FetchKey:
    if isinstance(topic, UUID):
        return FetchKey("", topic, partition)
    return FetchKey(topic, None, partition)


class _Fetch:
    """One request on its way: read, perhaps wait and read again, answer."""

    __slots__ = (
        "_broker",
        "_connection",
        "_context",
        "_correlation_id",
        "_reader",
        "_request",
        "_rounds",
        "_version",
    )

    def __init__(
        self,
        broker: Broker,
        version: int,
        correlation_id: int,
        request: FetchRequestView,
        context: FetchContext,
        connection: Connection,
    ) -> None:
        self._broker = broker
        self._version = version
        self._correlation_id = correlation_id
        self._request = request
        self._context = context
        self._connection = connection
        self._rounds = 0
        """How often it waited for a disk."""
        replica_id = request.replica_id
        rack = request.rack_id
        if rack and broker.config.replica_selector_class != RACK_AWARE_SELECTOR:
            rack = ""
        self._reader = Reader(
            replica_id,
            request.replica_epoch,
            self.max_bytes,
            request.isolation_level == READ_COMMITTED,
            version >= FIRST_WITH_RACK or replica_id == DEBUGGING_CONSUMER,
            context.incremental,
            rack,
            broker.clock.monotonic() if replica_id >= 0 else 0.0,
            broker.replicas.throttles.leader if replica_id >= 0 else None,
        )

    @property
    def max_bytes(self) -> int:
        return min(self._request.max_bytes, self._broker.config.fetch_max_bytes)

    @property
    def min_bytes(self) -> int:
        """Never more than may be answered: it would be waited for in vain."""
        return min(self._request.min_bytes, self.max_bytes)

    def read(self) -> ReadResult:
        context = self._context
        if context.incremental and context.session is not None:
            return read_all(self._broker, tuple(context.session.news), self._reader)
        return read_all(self._broker, context.wanted, self._reader)

    def wait(self, result: ReadResult) -> Pending:
        broker = self._broker
        interest: Interest | None = self._context.session
        if interest is None:
            interest = self._listen()
        elif interest.as_replica:
            # Consumers that read from followers see what is committed there: the followers hear of it soon.
            interest.hears_commits = broker.config.replica_selector_class == RACK_AWARE_SELECTOR
        return WaitingFetch(
            interest,
            self.min_bytes - result.total_bytes,
            self._request.max_wait_ms,
            self._finish,
            broker.waiting_fetches,
        ).pending

    def _listen(self) -> Interest:
        wanted = self._context.wanted
        memory = self._broker.memory.fetch_sessions
        interest = LoneInterest(self._request.replica_id >= 0, self._reader.read_committed, wanted, memory)
        for want in wanted:
            want.interest = interest
            want.bind(find(self._broker, want))  # it was found a moment ago, or nobody would wait
        return interest

    def _finish(self, pending: Pending) -> None:
        """Read again, and answer with what there is: unless it has to be brought from a disk first."""
        if pending.abandoned:
            return
        self._reader.now = self._broker.clock.monotonic()
        try:
            result = self.read()
            if result.cold is not None and self._rounds < MOST_ROUNDS:
                self.bring(result, pending)
                return
            parts = self.encode(result)
        except Exception:
            self._connection.close()  # its peer would wait for ever
            raise
        pending.complete(parts)

    def bring(self, result: ReadResult, pending: Pending) -> Pending:
        """Answer when what is cold is in memory and verified."""
        assert result.cold is not None
        self._rounds += 1
        # Memory is short if it is cold still: it is sent as it is, and brought once more while it is sent.
        self._reader.probes = self._rounds < PROBED_ROUNDS
        self._broker.cold_reads.bring(result.cold, lambda: self._finish(pending))
        return pending

    def encode(self, result: ReadResult) -> Parts:
        answers = result.answers
        context = self._context
        if context.session is not None:
            answers = self._tell(answers)
        version = self._version
        endpoints: list[Endpoint] = []
        if version >= FIRST_WITH_ENDPOINTS:
            endpoints = self._endpoints(answers)
        chunks, _ = encode_fetch_response(
            version,
            self._correlation_id,
            self._by_topic(answers),
            session_id=context.session_id,
            node_endpoints=endpoints,
        )
        is_consumer = self._request.replica_id < 0
        parts: Parts = []
        for chunk, answer in zip(chunks, answers, strict=False):
            parts.append(chunk)
            if answer.records is not None:
                parts.append(answer.records)
                if answer.metrics is not None and is_consumer:
                    answer.metrics.bytes_out += answer.records.length
        parts.append(chunks[-1])
        return parts

    def _tell(self, answers: list[PartitionAnswer]) -> list[PartitionAnswer]:
        """Remember what the peer is told, and leave out what it knows if the answer is incremental."""
        context = self._context
        assert context.session is not None
        news = context.session.news
        told = []
        for answer in answers:
            is_news = answer.tell()
            if is_news or not context.incremental:
                told.append(answer)
            want = answer.want
            if answer.records is not None:
                # Whoever gave data goes to the end, so that a small byte limit starves nobody.
                if want in news:
                    del news[want]
                    news[want] = None
            elif answer.is_exhausted:
                news.pop(want, None)
        return told

    def _endpoints(self, answers: list[PartitionAnswer]) -> list[Endpoint]:
        """Where the leaders are that the answer names."""
        leaders = [answer.current_leader[0] for answer in answers if answer.current_leader is not None]
        return endpoints_of(self._broker, leaders, self._connection.listener) if leaders else []

    def _by_topic(self, answers: list[PartitionAnswer]) -> list[tuple[Topic, list[FetchedPartition]]]:
        read_committed = self._reader.read_committed
        topics: list[tuple[Topic, list[FetchedPartition]]] = []
        for answer in answers:
            key = answer.want.key
            topic: Topic = key.topic if key.topic_id is None else key.topic_id
            if not topics or topics[-1][0] != topic:
                topics.append((topic, []))
            topics[-1][1].append(
                FetchedPartition(
                    key.partition,
                    answer.error_code,
                    answer.high_watermark,
                    answer.last_stable_offset,
                    answer.log_start_offset,
                    0 if answer.records is None else answer.records.length,
                    answer.aborted if read_committed and answer.error_code == 0 else None,
                    answer.preferred_replica,
                    answer.diverging,
                    answer.current_leader,
                )
            )
        return topics


API: Final = Api(ApiKey.FETCH, 4, 18, FetchRequest, None)
