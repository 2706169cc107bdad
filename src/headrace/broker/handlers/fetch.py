"""Fetch: the hot path out. Served from the raw frame; records leave as file ranges.

Versions 4-17. 7: fetch sessions (KIP-227). 9: the leader epoch the client believes in. 12: flexible, and a
divergence is told in the answer (KIP-595). 13: topic ids. 15: the replica's state as a tagged field.
16: endpoints of new leaders. Not done: fetches by replicas, which come with clusters; 18.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from headrace.broker.api import Api
from headrace.broker.errors import code_of
from headrace.broker.fetch.reading import PartitionAnswer, ReadResult, read_all
from headrace.broker.fetch.sessions import FetchContext, FetchKey, Wanted
from headrace.broker.fetch.waiting import WaitingFetch
from headrace.core.errors import HeadraceError, NotLeader
from headrace.network.answer import Answer, Parts, Pending
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.fetch_codec import (
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

READ_COMMITTED: Final = 1


def serve(broker: Broker, version: int, correlation_id: int, frame: memoryview, at: int) -> Answer:
    request = parse_fetch(frame, at, version)
    by_id = version >= FIRST_WITH_TOPIC_IDS
    try:
        if request.replica_id >= 0:
            raise NotLeader("replicas cannot fetch from a broker that has no followers")
        context = broker.fetch_sessions.begin(
            request.session_id,
            request.session_epoch,
            _wanted(request),
            _forgotten(request),
            uses_topic_ids=by_id,
            now_ms=broker.monotonic_ms(),
        )
    except HeadraceError as error:
        chunks, _ = encode_fetch_response(version, correlation_id, (), error_code=code_of(error))
        return list(chunks)
    fetch = _Fetch(broker, version, correlation_id, request, context)
    result = fetch.read()
    if (
        result.total_bytes >= fetch.min_bytes
        or result.must_answer
        or request.max_wait_ms <= 0
        or not result.answers
    ):
        return fetch.encode(result)
    return fetch.wait(result)


def _wanted(request: FetchRequestView) -> list[Wanted]:
    return [
        Wanted(_key(topic, item[0]), item.fetch_offset, item.max_bytes, item[1], item.last_fetched_epoch)
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

    __slots__ = ("_broker", "_context", "_correlation_id", "_request", "_version")

    def __init__(
        self,
        broker: Broker,
        version: int,
        correlation_id: int,
        request: FetchRequestView,
        context: FetchContext,
    ) -> None:
        self._broker = broker
        self._version = version
        self._correlation_id = correlation_id
        self._request = request
        self._context = context

    @property
    def max_bytes(self) -> int:
        return min(self._request.max_bytes, self._broker.config.fetch_max_bytes)

    @property
    def min_bytes(self) -> int:
        """Never more than may be answered: it would be waited for in vain."""
        return min(self._request.min_bytes, self.max_bytes)

    def read(self) -> ReadResult:
        read_committed = self._request.isolation_level == READ_COMMITTED
        return read_all(self._broker, self._context.wanted, self.max_bytes, read_committed)

    def wait(self, result: ReadResult) -> Pending:
        broker = self._broker
        return WaitingFetch(
            broker.loop,
            result.partitions,
            self.min_bytes - result.total_bytes,
            self._request.max_wait_ms,
            lambda pending: pending.complete(self.encode(self.read())),
            broker.waiting_fetches,
        ).pending

    def encode(self, result: ReadResult) -> Parts:
        session = self._context.session
        answers = result.answers
        if session is not None:
            news = [answer for answer in answers if answer.is_news]
            if self._context.incremental:
                answers = news
            for answer in news:
                # Whoever gave data goes to the end, so that a small byte limit starves nobody.
                if answer.records is not None and answer.want.key in session.partitions:
                    session.partitions.move_to_end(answer.want.key)
        chunks, _ = encode_fetch_response(
            self._version,
            self._correlation_id,
            self._by_topic(answers),
            session_id=self._context.session_id,
        )
        parts: Parts = []
        for chunk, answer in zip(chunks, answers, strict=False):
            parts.append(chunk)
            if answer.records is not None:
                parts.append(answer.records)
                if answer.metrics is not None:
                    answer.metrics.bytes_out += answer.records.length
        parts.append(chunks[-1])
        return parts

    def _by_topic(self, answers: list[PartitionAnswer]) -> list[tuple[Topic, list[FetchedPartition]]]:
        aborted: list[tuple[int, int]] | None = None
        if self._request.isolation_level == READ_COMMITTED:
            aborted = []
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
                    aborted if answer.error_code == 0 else None,
                    -1,
                    answer.diverging,
                )
            )
        return topics


API: Final = Api(ApiKey.FETCH, 4, 17, FetchRequest, None)
