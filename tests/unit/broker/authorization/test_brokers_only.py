"""What only brokers may ask, and what nobody is served before the broker is ready: through the dispatcher."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from headrace.broker.requests.apis import BY_KEY
from headrace.core.errors import ClientError, InvalidRequest, NotReady
from headrace.network.connection import Connection
from headrace.network.listener import Endpoint
from headrace.network.response import DelayedResponse
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.headers import LENGTH_SIZE, frame_request
from headrace.protocol.message import Message
from headrace.protocol.messages.api_versions_request import ApiVersionsRequest
from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.envelope_request import EnvelopeRequest
from headrace.protocol.messages.envelope_response import EnvelopeResponse
from headrace.protocol.messages.fetch_request import FetchRequest
from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.security.acl import Operation
from headrace.security.acl_index import AclIndex
from headrace.security.forwarded_principal import encode_principal
from headrace.security.hosts import encode_host
from headrace.security.principal import user
from headrace.security.rights import Authorizer
from tests.unit.broker.authorization.realm import HOST, Realm, on_cluster

INTERNAL = sorted(key for key, api in BY_KEY.items() if api.internal)
ENVELOPE_HEADER = LENGTH_SIZE + 4 + 1
"""Length, correlation id, and no tags."""
CREATED_HEADER = 4 + 1


class Peers:
    def __init__(self, realm: Realm) -> None:
        self._realm = realm
        self._threads = ThreadPoolExecutor(1)
        self._sockets: list[socket.socket] = []
        self._endpoint = realm.cluster.call(
            lambda: Endpoint(asyncio.get_running_loop(), self._threads, max_frame_bytes=1 << 20)
        )
        self.between_brokers = realm.context.runtime.config.bound_listeners[0].name

    def connect(self, listener: str, authorizer: Authorizer | None = None) -> Connection:
        def make() -> Connection:
            ours, theirs = socket.socketpair()
            self._sockets += [ours, theirs]
            connection = Connection(self._endpoint, ours, HOST, listener)
            connection.rights = None if authorizer is None else authorizer.rights_of("User:alice", HOST)
            return connection

        return self._realm.cluster.call(make)

    def ask(self, connection: Connection, request: Message, version: int) -> bytes:
        frame = memoryview(bytearray(frame_request(request, version, 7, "test")))[LENGTH_SIZE:]

        async def serve() -> bytes:
            answer: Any = self._realm.cluster.broker.dispatcher(connection, frame)
            while isinstance(answer, DelayedResponse) and not answer.is_done and not connection.closed:
                await asyncio.sleep(0.001)
            parts: Any = answer.parts if isinstance(answer, DelayedResponse) else answer
            return b"".join(bytes(part) for part in parts)

        return self._realm.cluster.run(serve())

    def close(self) -> None:
        self._realm.cluster.call(self._endpoint.close)
        self._threads.shutdown()
        for each in self._sockets:
            each.close()


@pytest.fixture
def peers(realm: Realm) -> Iterator[Peers]:
    made = Peers(realm)
    yield made
    made.close()


def forged(name: str) -> EnvelopeRequest:
    """A request in the name of the administrator."""
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)], timeout_ms=10_000
    )
    return EnvelopeRequest(
        request_data=frame_request(request, 7, 1, "test")[LENGTH_SIZE:],
        request_principal=encode_principal(user("admin")),
        client_host_address=encode_host("127.0.0.1"),
    )


@pytest.mark.parametrize("key", INTERNAL, ids=lambda key: ApiKey(key).name)
def test_on_a_listener_of_clients_nobody_is_a_broker(peers: Peers, key: int) -> None:
    """Also without an authorizer, where everybody may do everything else."""
    api = BY_KEY[key]
    with pytest.raises(InvalidRequest, match="is for brokers"):
        peers.ask(peers.connect("CLIENTS"), api.request(), api.highest)


def test_an_envelope_speaks_for_others_only_if_a_broker_sent_it(realm: Realm, peers: Peers) -> None:
    nobody = Authorizer(AclIndex())
    for connection in (
        peers.connect("CLIENTS"),
        peers.connect("CLIENTS", Authorizer(AclIndex(on_cluster(Operation.ALL)))),
        peers.connect(peers.between_brokers, nobody),
    ):
        with pytest.raises(ClientError):
            peers.ask(connection, forged("forged"), 0)
    assert realm.context.metadata.image.topic("forged") is None

    broker = peers.connect(peers.between_brokers, Authorizer(AclIndex(on_cluster(Operation.CLUSTER_ACTION))))
    answer = EnvelopeResponse.from_bytes(peers.ask(broker, forged("forwarded"), 0)[ENVELOPE_HEADER:], 0)
    assert answer.error_code == ErrorCode.NONE
    assert answer.response_data is not None
    created = CreateTopicsResponse.from_bytes(answer.response_data[CREATED_HEADER:], 7)
    assert created.topics[0].error_code == ErrorCode.NONE, "so it is the sender that was refused"


@pytest.mark.parametrize("principal", [b"", b"\0\0", b"\0\0\x01\x02a\0\0"], ids=["none", "cut", "no type"])
def test_an_envelope_without_a_principal_is_nobodys(
    realm: Realm, peers: Peers, monkeypatch: pytest.MonkeyPatch, principal: bytes
) -> None:
    """With an authorizer. It does not become the broker's own request."""
    monkeypatch.setattr(realm.context.security, "authorizer", Authorizer(AclIndex()))
    envelope = forged("nobodys")
    envelope.request_principal = principal
    broker = peers.connect(peers.between_brokers, Authorizer(AclIndex(on_cluster(Operation.CLUSTER_ACTION))))
    answer = EnvelopeResponse.from_bytes(peers.ask(broker, envelope, 0)[ENVELOPE_HEADER:], 0)
    assert answer.error_code != ErrorCode.NONE
    assert realm.context.metadata.image.topic("nobodys") is None


@pytest.mark.parametrize("has_authorizer", [False, True])
def test_before_the_metadata_is_there_no_client_is_served(
    realm: Realm, peers: Peers, monkeypatch: pytest.MonkeyPatch, has_authorizer: bool
) -> None:
    monkeypatch.setattr(realm.cluster.broker.dispatcher, "is_open_to_clients", False)
    broker, clients = peers.connect(peers.between_brokers), [peers.connect("CLIENTS")]
    if has_authorizer:
        authorizer = Authorizer(AclIndex(on_cluster(Operation.ALL)))
        monkeypatch.setattr(realm.context.security, "authorizer", authorizer)
        broker = peers.connect(peers.between_brokers, authorizer)
        clients = [
            peers.connect("CLIENTS", authorizer),
            peers.connect(peers.between_brokers, Authorizer(AclIndex())),
        ]
    fetch = FetchRequest(max_wait_ms=0, session_epoch=-1)
    for connection in (*clients, broker):
        peers.ask(connection, ApiVersionsRequest(), 0)
        with pytest.raises(NotReady):
            peers.ask(connection, MetadataRequest(topics=None), 4)
    for connection in clients:
        with pytest.raises(NotReady):
            peers.ask(connection, fetch, 12)
    assert peers.ask(broker, fetch, 12), "brokers follow the metadata so"


def test_the_test_knows_all_internal_apis() -> None:
    assert ApiKey.ENVELOPE in INTERNAL
    assert len(INTERNAL) >= 5
