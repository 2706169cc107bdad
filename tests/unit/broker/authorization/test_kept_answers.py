"""Whole answers of Metadata are kept by the dispatcher: for clients of the same rights, and for no others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from headrace.broker.handlers import metadata as handler
from headrace.network.connection import Connection
from headrace.network.listener import Endpoint
from headrace.protocol.headers import LENGTH_SIZE, frame_request
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.security.acl import AclRule, Operation
from headrace.security.acl_index import AclIndex
from headrace.security.rights import Authorizer
from tests.unit.broker.authorization.realm import BOTH, HOST, OPEN, SHUT, Realm, on_topic

VERSION = 12
RESPONSE_HEADER = LENGTH_SIZE + 4 + 1
"""Length, correlation id, and no tags."""
AS_BOB: dict[str, Any] = {"principal": "User:bob"}


class Clients:
    """Connections of several principals to one broker with an authorizer."""

    def __init__(self, realm: Realm, rules: list[AclRule]) -> None:
        self._realm = realm
        self.authorizer = Authorizer(AclIndex(rules), super_users=("User:root",))
        self._threads = ThreadPoolExecutor(1)
        self._sockets: list[socket.socket] = []
        self.endpoint = realm.cluster.call(
            lambda: Endpoint(asyncio.get_running_loop(), self._threads, max_frame_bytes=1 << 20)
        )

    def connect(self, principal: str) -> Connection:
        def make() -> Connection:
            ours, theirs = socket.socketpair()
            self._sockets += [ours, theirs]
            listener = self._realm.context.runtime.config.bound_listeners[0].name
            connection = Connection(self.endpoint, ours, HOST, listener)
            connection.rights = self.authorizer.rights_of(principal, HOST)
            return connection

        return self._realm.cluster.call(make)

    def ask(self, connection: Connection, topics: list[str] | None) -> dict[str | None, int]:
        named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=named, allow_auto_topic_creation=False)
        frame = memoryview(bytearray(frame_request(request, VERSION, 7, "test")))[LENGTH_SIZE:]
        parts: Any = self._realm.cluster.call(
            lambda: self._realm.cluster.broker.dispatcher(connection, frame)
        )
        answer = MetadataResponse.from_bytes(b"".join(parts)[RESPONSE_HEADER:], VERSION)
        return {topic.name: topic.error_code for topic in answer.topics}

    def close(self) -> None:
        self._realm.cluster.call(self.endpoint.close)
        self._threads.shutdown()
        for each in self._sockets:
            each.close()


@pytest.fixture
def clients(realm: Realm, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clients]:
    monkeypatch.setattr(handler, "FEW_TOPICS", 10_000)  # so that all of them are answered at once
    bob = on_topic(Operation.DESCRIBE, SHUT)[0]._replace(**AS_BOB)
    realm.cluster.call(
        realm.context.answers.forget
    )  # the classes of another authorizer have the same numbers
    made = Clients(realm, [*on_topic(Operation.DESCRIBE, OPEN), bob])
    yield made
    made.close()


@pytest.mark.parametrize("topics", [[*BOTH], None], ids=["by name", "all"])
def test_no_client_gets_what_was_kept_for_another(clients: Clients, topics: list[str] | None) -> None:
    alice, bob, carol = (clients.connect(f"User:{name}") for name in ("alice", "bob", "carol"))
    denied = 29 if topics else None
    for _ in range(3):
        for connection, seen in ((alice, {OPEN}), (bob, {SHUT}), (carol, set[str]())):
            told = clients.ask(connection, topics)
            assert {name: told.get(name) for name in BOTH} == {
                name: 0 if name in seen else denied for name in BOTH
            }
    assert clients.ask(clients.connect("User:root"), topics).keys() >= set(BOTH)


def test_connections_of_the_same_rights_share_what_is_kept(clients: Clients, realm: Realm) -> None:
    one, other = clients.connect("User:alice"), clients.connect("User:alice")
    clients.ask(one, [*BOTH])
    kept = len(realm.context.answers.whole._answers)
    clients.ask(other, [*BOTH])
    assert len(realm.context.answers.whole._answers) == kept


def test_what_was_kept_ends_with_the_rules(clients: Clients) -> None:
    alice = clients.connect("User:alice")
    rule = on_topic(Operation.DESCRIBE, SHUT)[0]
    assert clients.ask(alice, [*BOTH]) == {OPEN: 0, SHUT: 29}
    clients.authorizer.add(rule)
    assert clients.ask(alice, [*BOTH]) == {OPEN: 0, SHUT: 0}
    clients.authorizer.remove(rule)
    assert clients.ask(alice, [*BOTH]) == {OPEN: 0, SHUT: 29}
