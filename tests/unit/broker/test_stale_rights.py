"""A rule that is removed ends what it allowed: in sessions that are open, and in fetches that wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.security.acl_follower import AclFollower
from headrace.broker.security.assembling import wake_fetches
from headrace.config.broker import BrokerConfig
from headrace.network.response import DelayedResponse, Response
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.messages.fetch_response import FetchResponse, PartitionData
from headrace.protocol.primitives import Reader
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from tests.unit.broker.serving import TOPIC, TOPIC_ID, Server, sent
from tests.unit.replication.replicas import fetch

VERSION = 17
DENIED = 29


def rule(operation: Operation = Operation.READ) -> AclRule:
    return AclRule(
        ResourceType.TOPIC, TOPIC, PatternType.LITERAL, "User:alice", "*", operation, Permission.ALLOW
    )


class Rules:
    """What the metadata says, and the authorizer that follows it."""

    def __init__(self, *rules: AclRule) -> None:
        self._acls = SimpleNamespace(epoch=1, by_id=dict(enumerate(rules)))
        self._subscribers: list[Callable[[Any], None]] = []
        metadata: Any = SimpleNamespace(
            image=SimpleNamespace(acls=self._acls), store=SimpleNamespace(subscribe=self._subscribers.append)
        )
        self.follower = AclFollower(metadata, BrokerConfig.parse({}), *(lambda *_: None,) * 3)

    def remove(self, *, by_snapshot: bool) -> None:
        removed = list(self._acls.by_id.values())
        self._acls.by_id = {}
        self._acls.epoch += 1
        changes = [] if by_snapshot else [SimpleNamespace(added=False, rule=each) for each in removed]
        for subscriber in self._subscribers:
            subscriber(SimpleNamespace(acls=changes))

    def touch(self) -> None:
        """Something else in the metadata changes."""
        for subscriber in self._subscribers:
            subscriber(SimpleNamespace(acls=[]))


class Consumer:
    """Alice, with rules for her; her partition has one record."""

    def __init__(self) -> None:
        self.server = Server()
        self.rules = Rules(rule())
        wake_fetches(self.rules.follower, self.server.stub.fetches.purgatory)
        authorizer = self.rules.follower.authorizer
        self.server.connection.rights = authorizer.rights_of("User:alice", "10.0.0.1")
        self.server.append()
        fetch(self.server.partition, 2, 1)
        self._session_id, self._epoch = 0, -1

    def ask(self, offset: int | None = 0, wait_ms: int = 0) -> Response:
        """With None nothing but the session is named."""
        wanted = FetchPartition(partition=0, fetch_offset=offset or 0, partition_max_bytes=1 << 20)
        topics = [] if offset is None else [FetchTopic(topic_id=TOPIC_ID, partitions=[wanted])]
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=topics,
        )
        if self._epoch >= 0:
            self._epoch += 1
        return self.server.ask(request, VERSION)

    def begin_session(self) -> PartitionData:
        self._epoch = 0
        response = self.read(self.ask())
        self._session_id = response.session_id
        return response.responses[0].partitions[0]

    def read(self, answer: Response) -> FetchResponse:
        return FetchResponse.decode(Reader(sent(answer), 5), VERSION)

    def only(self, answer: Response) -> PartitionData:
        return self.read(answer).responses[0].partitions[0]


@pytest.fixture
async def consumer() -> AsyncIterator[Consumer]:
    made = Consumer()
    yield made
    made.server.close()


@pytest.mark.parametrize("by_snapshot", [False, True])
async def test_a_session_that_is_open_reads_no_more(consumer: Consumer, by_snapshot: bool) -> None:
    """Its partition has no news, so it would not be looked at otherwise."""
    first = consumer.begin_session()
    assert (first.error_code, bool(first.records)) == (0, True)
    assert consumer.read(consumer.ask(1)).responses == [], "nothing new"
    consumer.rules.remove(by_snapshot=by_snapshot)
    told = consumer.only(consumer.ask(None))
    assert (told.error_code, bool(told.records)) == (DENIED, False)
    consumer.server.append()
    fetch(consumer.server.partition, 2, 2)
    again = consumer.only(consumer.ask(None))
    assert (again.error_code, bool(again.records)) == (DENIED, False)


@pytest.mark.parametrize("by_snapshot", [False, True])
@pytest.mark.parametrize("in_session", [False, True])
async def test_a_fetch_that_waits_is_told_at_once(
    consumer: Consumer, by_snapshot: bool, in_session: bool
) -> None:
    if in_session:
        consumer.begin_session()
    waiting = consumer.ask(1, wait_ms=60_000)
    assert isinstance(waiting, DelayedResponse)
    consumer.rules.touch()
    await asyncio.sleep(0)
    assert not waiting.is_done, "only rules wake it"
    consumer.rules.remove(by_snapshot=by_snapshot)
    await asyncio.sleep(0)
    told = consumer.only(waiting)
    assert (told.error_code, bool(told.records)) == (DENIED, False)


async def test_what_comes_while_a_fetch_waits_goes_to_nobody_who_may_not_read_any_more(
    consumer: Consumer,
) -> None:
    waiting = consumer.ask(1, wait_ms=60_000)
    assert isinstance(waiting, DelayedResponse)
    consumer.server.append()
    fetch(consumer.server.partition, 2, 2)  # its answer is due in a moment
    consumer.rules.remove(by_snapshot=False)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    told = consumer.only(waiting)
    assert (told.error_code, bool(told.records)) == (DENIED, False)
