"""A cluster as a client sees it: a connection for each broker, and who leads what.

Metadata is asked for when it is needed and forgotten when an answer shows that it is old. `retried` is the
only place where anything is tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeVar

from headrace.client.connection import CONNECT_TIMEOUT, REQUEST_TIMEOUT, Answer, Connection
from headrace.client.errors import (
    ClientFailure,
    ConnectionLost,
    LogOffline,
    NotAKafkaBroker,
    Refused,
    TimedOut,
    Unreachable,
)
from headrace.client.refusals import RETRIABLE, refusal
from headrace.client.secure_dialer import dialer_of
from headrace.client.security import PLAINTEXT, ClientSecurity
from headrace.client.waits import Waits
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic

T = TypeVar("T")

DEFAULT_PORT: Final = 9092
METADATA_AT_MOST: Final = 12
_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 1.0
CREATION_ATTEMPTS: Final = 5
CREATION_WAIT_SECONDS: Final = 0.2
"""Apache Kafka answers the question that creates a topic with "unknown", and knows it a moment later."""


class Address(NamedTuple):
    host: str
    port: int


def parse_bootstrap(text: str) -> list[Address]:
    """'host:port,host:port'; the port may be left out, an IPv6 address stands in brackets."""
    addresses = []
    for item in text.split(","):
        item = item.strip()
        host, colon, port = item.rpartition(":")
        if not colon or item.endswith("]"):
            host, port = item, str(DEFAULT_PORT)
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ClientFailure(f"{item!r} is not an address", "write HOST:PORT, as in 127.0.0.1:9092")
        addresses.append(Address(host.removeprefix("[").removesuffix("]"), int(port)))
    return addresses


class Cluster:
    """Use as `async with Cluster("host:port") as cluster:`."""

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "headrace",
        connect_timeout: float = CONNECT_TIMEOUT,
        request_timeout: float = REQUEST_TIMEOUT,
        security: ClientSecurity = PLAINTEXT,
    ) -> None:
        self.bootstrap = parse_bootstrap(bootstrap)
        self.client_id = client_id
        self.connect_timeout = connect_timeout
        self.request_timeout = request_timeout
        self._dialer = dialer_of(security)
        self._open: dict[Address, Connection] = {}
        self._opening: dict[Address, asyncio.Lock] = {}
        self._brokers: dict[int, Address] = {}
        self._controller = -1
        self._topics: dict[str, MetadataResponseTopic] = {}
        self.waits = Waits()

    @property
    def known_brokers(self) -> list[int]:
        """As the last metadata named them."""
        return list(self._brokers)

    @property
    def request_timeout_ms(self) -> int:
        return int(self.request_timeout * 1000)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        connections = list(self._open.values())
        self._open.clear()
        for connection in connections:
            await connection.close()

    # --- connections -------------------------------------------------------------------------------------

    async def any_broker(self) -> Connection:
        """A connection that is open, or the first of the known addresses that answers."""
        for connection in self._open.values():
            if connection.is_open:
                return connection
        failure: ClientFailure | None = None
        for address in dict.fromkeys((*self.bootstrap, *self._brokers.values())):
            try:
                return await self._connect(address)
            except ClientFailure as error:
                failure = failure or error
        raise failure or ClientFailure("no broker to connect to")

    async def broker(self, broker_id: int) -> Connection:
        if broker_id not in self._brokers:
            await self.metadata([])
        if broker_id not in self._brokers:
            known = ", ".join(str(known) for known in sorted(self._brokers))
            raise ClientFailure(f"there is no broker {broker_id}", f"the brokers are: {known}")
        return await self._connect(self._brokers[broker_id])

    async def controller(self) -> Connection:
        """Where administrative requests go. Any broker, where the cluster does not say."""
        if self._controller not in self._brokers:
            await self.metadata([])
        if self._controller not in self._brokers:
            return await self.any_broker()
        return await self._connect(self._brokers[self._controller])

    async def _connect(self, address: Address) -> Connection:
        async with self._opening.setdefault(address, asyncio.Lock()):
            connection = self._open.get(address)
            if connection is None or not connection.is_open:
                if connection is not None:
                    await connection.close()
                connection = await Connection.open(
                    *address,
                    client_id=self.client_id,
                    timeout=self.connect_timeout,
                    waits=self.waits,
                    dialer=self._dialer,
                )
                self._open[address] = connection
            return connection

    # --- metadata ----------------------------------------------------------------------------------------

    async def metadata(
        self, topics: Iterable[str] | None = None, *, create: bool = False
    ) -> MetadataResponse:
        """Fresh metadata of the named topics, of all for None, of none for an empty list.

        With `create`, a broker that creates topics on demand (auto.create.topics.enable) may do so.
        """
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=create)
        connection = await self.any_broker()
        reply = await connection.request(
            request, MetadataResponse, at_most=METADATA_AT_MOST, timeout=self.request_timeout
        )
        self._brokers = {node.node_id: Address(node.host, node.port) for node in reply.brokers}
        self._controller = reply.controller_id
        for topic in reply.topics:
            if topic.name is not None and not topic.error_code:
                self._topics[topic.name] = topic
        return reply

    async def topic(self, name: str, *, create: bool = False) -> MetadataResponseTopic:
        """What is known of a topic; Refused if it does not exist."""
        known = self._topics.get(name)
        attempts = CREATION_ATTEMPTS if create else 1
        while known is None:
            (answer,) = (await self.metadata([name], create=create)).topics
            if not answer.error_code:
                return answer
            attempts -= 1
            if not attempts or answer.error_code not in (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.LEADER_NOT_AVAILABLE,
            ):
                raise refusal(answer.error_code, f"topic {name}")
            await asyncio.sleep(CREATION_WAIT_SECONDS)
            known = self._topics.get(name)
        return known

    async def leader(self, partition: TopicPartition) -> int:
        topic = await self.topic(partition.topic)
        for entry in topic.partitions:
            if entry.partition_index == partition.partition:
                if entry.leader_id < 0:
                    self.forget(partition.topic)
                    raise refusal(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {partition}")
                return entry.leader_id
        raise Refused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {partition.topic} has no partition {partition.partition}",
            f"it has {len(topic.partitions)}, from 0 to {len(topic.partitions) - 1}",
        )

    async def by_leader(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        groups: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            groups.setdefault(await self.leader(partition), []).append(partition)
        return groups

    def is_offline(self, partition: TopicPartition) -> bool:
        """Whether the metadata names the leader among the replicas that nobody can use: a broker that is
        alone and lacks a disk. In a cluster another would lead, or nobody."""
        topic = self._topics.get(partition.topic)
        return topic is not None and any(
            entry.leader_id in entry.offline_replicas
            for entry in topic.partitions
            if entry.partition_index == partition.partition
        )

    def forget(self, topic: str | None = None) -> None:
        """What is cached is old: ask again before the next use."""
        if topic is None:
            self._topics.clear()
            self._controller = -1
        else:
            self._topics.pop(topic, None)

    # --- requests ----------------------------------------------------------------------------------------

    async def ask_any(self, message: Message, answer: type[Answer], *, at_most: int | None = None) -> Answer:
        connection = await self.any_broker()
        return await connection.request(message, answer, at_most=at_most, timeout=self.request_timeout)

    async def ask_broker(
        self, broker_id: int, message: Message, answer: type[Answer], *, at_most: int | None = None
    ) -> Answer:
        connection = await self.broker(broker_id)
        return await connection.request(message, answer, at_most=at_most, timeout=self.request_timeout)

    async def ask_controller(
        self, message: Message, answer: type[Answer], *, at_most: int | None = None
    ) -> Answer:
        connection = await self.controller()
        return await connection.request(message, answer, at_most=at_most, timeout=self.request_timeout)

    async def retried(self, attempt: Callable[[], Awaitable[T]], *, timeout: float | None = None) -> T:
        """The result of `attempt`, which is made again after errors that pass, until the time is over.

        A bootstrap address at which nothing, or no broker, listens is an error at once: waiting would hide a
        typing mistake.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self.request_timeout if timeout is None else timeout)
        pause = _FIRST_PAUSE
        trying = object()
        try:
            while True:
                try:
                    return await attempt()
                except (ConnectionLost, TimedOut, Unreachable, Refused) as error:
                    if not self._may_pass(error) or loop.time() + pause > deadline:
                        raise
                    self.waits.failed(trying, error)
                    self.forget()
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
        finally:
            self.waits.done(trying)

    def _may_pass(self, error: ClientFailure) -> bool:
        if isinstance(error, Refused):
            return error.code in RETRIABLE and not isinstance(error, LogOffline)
        return bool(self._brokers) or not isinstance(error, (Unreachable, NotAKafkaBroker))
