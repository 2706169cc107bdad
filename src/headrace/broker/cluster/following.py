"""Following the metadata: a broker fetches what is committed from the active controller, and applies it.

The fetch is also the heartbeat: the controller hears of this broker by it, and this broker of the controller.
"""

from __future__ import annotations

import asyncio
import math
from enum import Enum
from typing import Final

from headrace.broker.cluster.lifecycle import BrokerLifecycle
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.metadata_partition import METADATA_TOPIC_ID
from headrace.broker.cluster.peer_requests import ask
from headrace.broker.cluster.suspect_brokers import SuspectBrokers
from headrace.broker.runtime.runtime import Runtime
from headrace.core.errors import CorruptLog
from headrace.core.ports_coordination import ActiveController
from headrace.core.ports_network import Link, PeerRefused, PeerUnavailable
from headrace.core.tasks import spawn
from headrace.protocol.batch import iterate
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from headrace.protocol.messages.fetch_response import FetchResponse

WAIT_SECONDS: Final = 0.5
WAITS_PER_SESSION: Final = 8
"""At least so often an answer comes that has nothing to say: it shows that the controller is there."""
FETCH_BYTES: Final = 4 * 1024 * 1024
FETCH_VERSION: Final = 17
DIAL_SECONDS: Final = 1.0
PAUSE_SECONDS: Final = 0.05


class Ended(Enum):
    """Why a controller is not followed any more."""

    MOVED = "the controller has moved"
    GONE = "its port refuses: the process is gone"
    SILENT = "it has not answered for a session timeout"


class MetadataFollower:
    def __init__(
        self, runtime: Runtime, metadata: MetadataCache, node: BrokerLifecycle, suspicions: SuspectBrokers
    ) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._node = node
        self._suspicions = suspicions
        self.moved = asyncio.Event()
        """Set when the controllership may have changed: look again."""
        self.current_at = -math.inf
        """When the last question was asked whose answer is applied: nothing older is unknown here."""

    async def follow(self, controller: ActiveController, silence_seconds: float) -> Ended:
        """Fetch and apply until the controller moves, or its holder seems to be gone."""
        loop = self._runtime.loop
        link: Link | None = None
        answered = loop.time()
        try:
            while not self.moved.is_set():
                if loop.time() - answered > silence_seconds:
                    return Ended.SILENT
                try:
                    if link is None or not link.is_open:
                        link = await self._dial(controller)
                    if link is None:
                        await self._pause()
                        continue
                    await self._fetch(link, silence_seconds)
                    answered = loop.time()
                except PeerRefused:
                    self._suspicions.lost(controller.holder)
                    return Ended.GONE
                except PeerUnavailable:
                    await self._pause()
            return Ended.MOVED
        finally:
            if link is not None:
                link.close()

    async def epoch_known_to(self, broker_id: int) -> int | None:
        """The latest controller epoch in what another broker has beyond this one's metadata; -1 if it has
        nothing more, None if it cannot be asked."""
        address = self._metadata.address_of(broker_id)
        if address is None:
            return None
        try:
            link = await self._runtime.environment.dialer.dial(*address, timeout=DIAL_SECONDS)
        except PeerUnavailable:
            return None
        try:
            request = self._request(0.0)
            answer = await ask(link, request, FetchResponse, version=FETCH_VERSION, timeout=DIAL_SECONDS)
        except PeerUnavailable:
            return None
        finally:
            link.close()
        if answer.error_code or any(
            partition.error_code for topic in answer.responses for partition in topic.partitions
        ):
            return None
        return max(
            (
                header.leader_epoch
                for topic in answer.responses
                for partition in topic.partitions
                if partition.error_code == 0 and partition.records is not None
                for _, header in iterate(bytes(partition.records))
            ),
            default=-1,
        )

    async def _dial(self, controller: ActiveController) -> Link | None:
        address = await self._node.find_address(controller.holder)
        if address is None:
            return None  # it has left, or has not registered yet: the controller will move, or it will come
        return await self._runtime.environment.dialer.dial(*address, timeout=DIAL_SECONDS)

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(PAUSE_SECONDS):
                await self.moved.wait()
        except TimeoutError:
            pass

    async def _fetch(self, link: Link, silence_seconds: float) -> None:
        epoch = self._node.broker_epoch
        asked_at = self._runtime.loop.time()
        wait = min(WAIT_SECONDS, silence_seconds / WAITS_PER_SESSION)
        asked = spawn(
            "a fetch of metadata",
            ask(
                link,
                self._request(wait),
                FetchResponse,
                version=FETCH_VERSION,
                timeout=wait + silence_seconds,
            ),
            is_awaited=True,
        )
        moved = spawn("another controller", self.moved.wait(), is_awaited=True)
        try:
            await asyncio.wait((asked, moved), return_when=asyncio.FIRST_COMPLETED)
        finally:
            moved.cancel()
            if not asked.done():
                asked.cancel()  # closes the link
        if asked.cancelled() or not asked.done():
            return
        answer = asked.result()
        if answer.error_code == ErrorCode.STALE_BROKER_EPOCH:
            self._node.on_replaced(epoch)
        failed = bool(answer.error_code)
        for topic in answer.responses:
            for partition in topic.partitions:
                if partition.diverging_epoch.end_offset >= 0:
                    raise CorruptLog(
                        f"this broker's copy of the metadata, up to {self._metadata.store.end}, is not a"
                        " part of the cluster's: it was rebuilt from an older copy. Move"
                        " __cluster_metadata-0 out of the log directory, then start the broker again"
                    )
                failed = failed or bool(partition.error_code)
                records = partition.records
                if partition.error_code == 0 and records is not None:
                    await self._apply(bytes(records))
        if failed:
            await self._pause()  # such answers come at once, and would be asked for without an end
        else:
            self.current_at = asked_at

    async def _apply(self, records: bytes) -> None:
        for position, header in iterate(records):
            if header.base_offset >= self._metadata.store.end:
                self._metadata.store.apply(records[position : position + header.size])
                await asyncio.sleep(0)  # a long tail must not hold up the data

    def _request(self, wait_seconds: float) -> FetchRequest:
        return FetchRequest(
            replica_state=ReplicaState(
                replica_id=self._runtime.broker_id, replica_epoch=self._node.broker_epoch
            ),
            max_wait_ms=int(wait_seconds * 1000),
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            session_id=0,
            session_epoch=-1,
            topics=[
                FetchTopic(
                    topic_id=METADATA_TOPIC_ID,
                    partitions=[
                        FetchPartition(
                            partition=0,
                            current_leader_epoch=-1,
                            fetch_offset=self._metadata.store.end,
                            last_fetched_epoch=self._metadata.store.epoch,
                            log_start_offset=self._metadata.store.checkpoint_end,
                            partition_max_bytes=FETCH_BYTES,
                        )
                    ],
                )
            ],
            forgotten_topics_data=[],
            rack_id="",
        )
