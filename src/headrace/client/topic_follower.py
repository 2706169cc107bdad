"""Follows one partition to its end and for ever: what it holds is applied to a state as it comes."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from functools import partial

from headrace.client import admin
from headrace.client.cluster import Cluster
from headrace.client.configs import Resource, ResourceType, describe_configs
from headrace.client.consumer import Consumer
from headrace.client.errors import ClientFailure, Refused
from headrace.client.offsets import ends_of
from headrace.client.security import PLAINTEXT, ClientSecurity
from headrace.core.ids import TopicPartition
from headrace.core.tasks import spawn
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.records import Record


class TopicFollower(ABC):
    """A compacted topic with one partition. Use `open`, and `close` at the end."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        what: str,
        client_id: str,
        log: logging.Logger,
        timeout: float = 30.0,
        security: ClientSecurity = PLAINTEXT,
    ) -> None:
        self.partition = TopicPartition(topic, 0)
        self._what = what
        self._log = log
        self._timeout = timeout
        # A broker answers a connection's requests in order: a write must not wait behind a fetch that waits.
        made = partial(Cluster, bootstrap, request_timeout=timeout, security=security)
        self._reading = made(client_id=f"{client_id}-reader")
        self._writing = made(client_id=client_id)
        self._position = 0
        self._moved = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    @abstractmethod
    def apply(self, record: Record) -> None:
        """Into the state. One bad record must not hide all the others: tell of it with `complain`."""

    @property
    def position(self) -> int:
        """The offset up to which the state has the topic."""
        return self._position

    async def open(self) -> None:
        """When this returns, the state has all that was in the topic."""
        await self._ensure_topic()
        first, end = (await ends_of(self._reading, [self.partition]))[self.partition]
        self._position = first
        self._following = spawn(f"the reader of {self._what}", self._follow(), is_awaited=True)
        await self._read_up_to(end, timeout=None)
        self.say(f"{self._what} loaded", end=end)

    async def close(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await self._reading.close()
        await self._writing.close()

    async def failed(self) -> None:
        """Returns never, or raises when the topic can be followed no more."""
        assert self._following is not None
        await asyncio.shield(self._following)

    async def up_to_date(self) -> None:
        """When this returns, the state has all that was in the topic when it was called."""
        end = (await ends_of(self._writing, [self.partition]))[self.partition][1]
        await self._read_up_to(end, timeout=self._timeout)

    async def moved(self) -> None:
        """Until more has come."""
        await self._moved.wait()

    def say(self, event: str, **fields: object) -> None:
        self._log.info(event, extra={"topic": self.partition.topic, **fields})

    def complain(self, event: str, **fields: object) -> None:
        self._log.error(event, extra={"topic": self.partition.topic, **fields})

    async def _follow(self) -> None:
        consumer = Consumer(self._reading, {self.partition: self._position}, patience=float("inf"))
        try:
            while True:
                for fetched in await consumer.poll():
                    for record in fetched.records:
                        self.apply(record)
                    self._position = fetched.next_offset
                    self._moved.set()
                    self._moved = asyncio.Event()
        finally:
            await consumer.close()

    async def _read_up_to(self, offset: int, *, timeout: float | None) -> None:
        """Until everything below `offset` is in the state."""
        async with asyncio.timeout(timeout):
            while self._position < offset:
                assert self._following is not None
                if self._following.done():
                    await self._following
                moved = self._moved
                await asyncio.wait(
                    [self._following, waiting := spawn("a new record", moved.wait(), is_awaited=True)],
                    return_when=asyncio.FIRST_COMPLETED,
                )
                waiting.cancel()

    async def _ensure_topic(self) -> None:
        name = self.partition.topic
        try:
            topic = await self._writing.retried(lambda: self._writing.topic(name))
        except Refused as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            await self._create_topic()
            return
        if len(topic.partitions) != 1:
            raise ClientFailure(
                f"topic {name} has {len(topic.partitions)} partitions, one for {self._what} has one",
                "name another topic",
            )
        entries = await describe_configs(
            self._writing, Resource(ResourceType.TOPIC, name), ["cleanup.policy"]
        )
        policy = next((entry.value or "" for entry in entries), "")
        if policy != "compact":
            raise ClientFailure(
                f"topic {name} has cleanup.policy={policy}: {self._what} would be lost with time",
                f"`headrace config set --topic {name} cleanup.policy=compact` makes it fit",
            )

    async def _create_topic(self) -> None:
        name = self.partition.topic
        brokers = len((await self._writing.metadata([])).brokers)
        try:
            await admin.create_topic(
                self._writing,
                name,
                partitions=1,
                replication_factor=min(3, brokers),
                configs={"cleanup.policy": "compact"},
            )
        except Refused as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:  # by another process, just now
                raise
        self.say("topic created", replicas=min(3, brokers))
