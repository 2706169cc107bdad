"""A simulated client process: its links to brokers, and what it knows of the cluster.

It speaks real frames over the simulated network, does what client libraries do, and nothing cleverer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from headrace.core.ports_network import Link, PeerSilent, PeerUnavailable
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.headers import LENGTH_SIZE, frame_request, read_response_header
from headrace.protocol.message import Message
from headrace.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.protocol.primitives import Reader
from headrace.testing.simulation.network import SimulatedDialer
from headrace.testing.simulation.virtual_loop import ProcessLoop
from tests.simulation.cluster import PORT, SimulatedCluster

A = TypeVar("A", bound=Message)

DIAL_SECONDS: Final = 1.0
REQUEST_SECONDS: Final = 4.0
PAUSE_SECONDS: Final = 0.1
TOPIC: Final = "t"

_VERSIONS: Final = {MetadataRequest.API_KEY: 12, CreateTopicsRequest.API_KEY: 7}


class SimulatedClient:
    def __init__(self, cluster: SimulatedCluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.loop = ProcessLoop(cluster.scheduler, name, boot_seconds=cluster.random.uniform(0, 1e5))
        self.random = cluster.random
        self._dialer = SimulatedDialer(cluster.network, self.loop, name)
        self._links: dict[int, Link] = {}
        self.leaders: dict[int, int] = {}
        """Partition to broker id, as told last."""
        self.leader_epochs: dict[int, int] = {}
        """The newest leader epoch of each partition that anybody told."""
        self._addresses = {host.broker_id: (host.name, PORT) for host in cluster.hosts}
        self._correlation = 0

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do something beside everything else. What fails it fails the run, at once."""
        task = self.loop.create_task(work)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.cluster.scheduler.fail(error)

    # --- requests ---

    async def ask(
        self,
        broker_id: int,
        message: Message,
        answer: type[A],
        version: int,
        timeout: float = REQUEST_SECONDS,
    ) -> A:
        """Raises PeerUnavailable: then the request may have taken effect."""
        link = await self.link(broker_id)
        frame = self.frame(message, version)
        try:
            async with asyncio.timeout(timeout):
                body = await link.send(frame)
        except TimeoutError:
            raise PeerSilent(f"no answer from broker {broker_id}") from None
        return self.parse(body, message.API_KEY, answer, version)

    def frame(self, message: Message, version: int) -> memoryview:
        self._correlation += 1
        return memoryview(frame_request(message, version, self._correlation, self.name))[LENGTH_SIZE:]

    @staticmethod
    def parse(body: memoryview, api_key: int, answer: type[A], version: int) -> A:
        _, at = read_response_header(body, api_key, version)
        return answer.decode(Reader(body, at), version)

    async def link(self, broker_id: int) -> Link:
        link = self._links.get(broker_id)
        if link is None or not link.is_open:
            link = await self._dialer.dial(*self._addresses[broker_id], timeout=DIAL_SECONDS)
            self._links[broker_id] = link
        return link

    def drop_links(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()

    # --- the cluster ---

    async def refresh(self) -> None:
        """Ask some broker who leads what. Nobody may answer: then what was known stays."""
        broker_id = self.random.choice(list(self._addresses))
        request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
        try:
            reply = await self.ask(broker_id, request, MetadataResponse, 12, timeout=1.0)
        except PeerUnavailable:
            return
        for broker in reply.brokers:
            self._addresses[broker.node_id] = (broker.host, broker.port)
        for topic in reply.topics:
            for partition in topic.partitions:
                known = self.leader_epochs.get(partition.partition_index, -1)
                self.leader_epochs[partition.partition_index] = max(known, partition.leader_epoch)
                if partition.leader_epoch < known:
                    continue  # that broker is behind: as libraries do, believe only what is newer
                if partition.leader_id >= 0:
                    self.leaders[partition.partition_index] = partition.leader_id
                else:
                    self.leaders.pop(partition.partition_index, None)

    async def leader(self, partition: int) -> int:
        while partition not in self.leaders:
            await self.refresh()
            if partition not in self.leaders:
                await asyncio.sleep(PAUSE_SECONDS)
        return self.leaders[partition]

    async def create_topic(self, partitions: int, replication: int, configs: dict[str, str]) -> None:
        """Until it is there, whoever has to be asked."""
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=TOPIC,
                    num_partitions=partitions,
                    replication_factor=replication,
                    assignments=[],
                    configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
                )
            ],
            timeout_ms=5000,
        )
        while True:
            broker_id = self.random.choice(list(self._addresses))
            try:
                reply = await self.ask(broker_id, request, CreateTopicsResponse, 7, timeout=10.0)
            except PeerUnavailable:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            if reply.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                return
            self.cluster.tell(f"no topic yet: {reply.topics[0].error_code} {reply.topics[0].error_message}")
            await asyncio.sleep(PAUSE_SECONDS)
