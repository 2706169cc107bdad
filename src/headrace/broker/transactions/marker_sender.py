"""Sends markers to one other broker, all that wait for it in one request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.peer_link import PeerLink
from headrace.broker.cluster.peer_requests import ask
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.transactions.pending_markers import MarkerPlace
from headrace.core.failures import report
from headrace.core.tasks import spawn
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from headrace.protocol.messages.write_txn_markers_response import WriteTxnMarkersResponse

REQUEST_SECONDS: Final = 30.0
PLACES_AT_ONCE: Final = 2_000
VERSION: Final = 2

OnResult = Callable[[MarkerPlace, ErrorCode], None]


class MarkerSender:
    """Invariant: while something waits, a task is at work; at most one request is on its way."""

    def __init__(
        self, runtime: Runtime, metadata: MetadataCache, broker_id: int, on_result: OnResult
    ) -> None:
        self._runtime = runtime
        self._broker_id = broker_id
        self._on_result = on_result
        self._waiting: dict[MarkerPlace, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._peer = PeerLink(runtime, metadata, broker_id)

    def add(self, place: MarkerPlace) -> None:
        self._waiting[place] = None
        if self._task is None:
            self._task = spawn(f"markers for broker {self._broker_id}", self._run(), self._runtime.loop)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._peer.close()

    async def _run(self) -> None:
        try:
            while self._waiting:
                places = list(self._waiting)[:PLACES_AT_ONCE]
                for place in places:
                    del self._waiting[place]
                await self._send([place for place in places if place.is_due])
        finally:
            self._task = None

    async def _send(self, places: Sequence[MarkerPlace]) -> None:
        if not places:
            return
        try:
            codes = await self._ask(request_of(places))
        except Exception as error:  # whatever it is: a marker that is not sent again is missing for ever
            self._peer.close()
            self._runtime.log.info("transaction markers not sent", to=self._broker_id, error=str(error))
            codes = {}
        for place in places:
            code = codes.get((place.producer_id, place.topic, place.index), ErrorCode.NETWORK_EXCEPTION)
            try:
                self._on_result(place, code)
            except Exception as error:  # of this one: the others have an answer to hear of
                report(f"a marker for {place.topic}-{place.index}", error)

    async def _ask(self, request: WriteTxnMarkersRequest) -> dict[tuple[int, str, int], ErrorCode]:
        link = await self._peer.open()
        answer = await ask(link, request, WriteTxnMarkersResponse, version=VERSION, timeout=REQUEST_SECONDS)
        return {
            (marker.producer_id, topic.name, row.partition_index): ErrorCode(row.error_code)
            for marker in answer.markers
            for topic in marker.topics
            for row in topic.partitions
        }


def request_of(places: Sequence[MarkerPlace]) -> WriteTxnMarkersRequest:
    request = WriteTxnMarkersRequest()
    known: dict[tuple[int, str], WritableTxnMarker] = {}
    topics: dict[tuple[int, str, str], WritableTxnMarkerTopic] = {}
    for place in places:
        name = (place.pending.partition, place.pending.markers.transactional_id)
        marker = known.get(name)
        if marker is None:
            marker = known[name] = place.pending.marker()
            request.markers.append(marker)
        topic = topics.get((*name, place.topic))
        if topic is None:
            topic = topics[(*name, place.topic)] = WritableTxnMarkerTopic(name=place.topic)
            marker.topics.append(topic)
        topic.partition_indexes.append(place.index)
    return request
