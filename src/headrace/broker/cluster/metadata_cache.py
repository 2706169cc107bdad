"""What this broker knows of the cluster: the image of the metadata, and what is often asked of it."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

from headrace.broker.runtime.runtime import Runtime
from headrace.controller.image import Endpoint, MetadataImage
from headrace.controller.store import MetadataStore
from headrace.replication.partition import Partition


class Node(NamedTuple):
    """A broker as clients of one listener see it."""

    broker_id: int
    host: str
    port: int
    rack: str | None


class MetadataCache:
    def __init__(self, runtime: Runtime, store: MetadataStore, partition: Partition, cluster_id: str) -> None:
        self._runtime = runtime
        self.store = store
        self.partition = partition
        """The metadata log, which other brokers fetch like any partition. All of it is committed."""
        self.cluster_id = cluster_id
        store.subscribe(lambda _delta: partition.on_extended(1))
        partition.on_extended(1)

    @property
    def image(self) -> MetadataImage:
        return self.store.image

    @property
    def offset(self) -> int:
        """The last offset that is applied."""
        return self.store.end - 1

    def exists(self, topic: str, index: int) -> bool:
        known = self.image.topic(topic)
        return known is not None and index in known

    def is_alive(self, broker_id: int) -> bool:
        registration = self.image.brokers.get(broker_id)
        return registration is not None and not registration.fenced

    def address_of(self, broker_id: int) -> tuple[str, int] | None:
        """Where another broker listens for brokers."""
        registration = self.image.brokers.get(broker_id)
        return None if registration is None else self.address_among(registration.endpoints)

    def address_among(self, endpoints: Sequence[Endpoint]) -> tuple[str, int] | None:
        wanted = self._runtime.config.inter_broker_listener.name
        for endpoint in endpoints:
            if endpoint.listener == wanted:
                return endpoint.host, endpoint.port
        return None

    def nodes(self, listener: str, also: Container[int] = ()) -> list[Node]:
        """The living brokers, and those of `also`, at the addresses that peers of `listener` can reach."""
        nodes = []
        for registration in self.image.brokers.values():
            if registration.fenced and registration.broker_id not in also:
                continue
            for endpoint in registration.endpoints:
                if endpoint.listener == listener:
                    nodes.append(
                        Node(registration.broker_id, endpoint.host, endpoint.port, registration.rack)
                    )
        return nodes
