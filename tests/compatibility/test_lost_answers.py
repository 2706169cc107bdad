"""A producer whose answer got lost sends again. An idempotent one must still be stored once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker_process import BrokerProcess
from tests.compatibility.clients.all import CLIENTS, connect
from tests.compatibility.clients.client import Client, NewRecord
from tests.compatibility.clients.confluent import ConfluentClient
from tests.compatibility.conftest import StartBroker
from tests.compatibility.relay import AnswerLosingRelay


@pytest.fixture(scope="module")
def relay(new_broker: StartBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnswerLosingRelay]:
    with AnswerLosingRelay() as relay:
        advertised = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{relay.port}"}
        broker: BrokerProcess = new_broker(tmp_path_factory.mktemp("behind-relay"), advertised)
        with broker:
            relay.broker_port = broker.port
            yield relay


@pytest.fixture(scope="module")
def undisturbed(relay: AnswerLosingRelay) -> ConfluentClient:
    return ConfluentClient(f"127.0.0.1:{relay.port}")


# kcat is left out: it gives up as soon as its only connection is cut.
@pytest.fixture(params=[name for name in CLIENTS if name != "kcat"])
def behind_relay(request: pytest.FixtureRequest, relay: AnswerLosingRelay) -> Iterator[Client]:
    connected = connect(request.param, f"127.0.0.1:{relay.port}")
    yield connected
    connected.close()


def test_an_idempotent_producer_is_stored_once(
    relay: AnswerLosingRelay, behind_relay: Client, undisturbed: ConfluentClient, topic: str
) -> None:
    undisturbed.create_topic(topic)
    sent = [b"%d" % i for i in range(5)]
    relay.lose(1)
    offsets = behind_relay.produce(topic, [NewRecord(value) for value in sent], idempotent=True)
    assert relay.lost == 1
    if "offsets" not in behind_relay.lacks:
        assert offsets == list(range(5))
    assert undisturbed.list_offsets(topic, 0, "latest")["offset"] == 5
    assert [record.value for record in undisturbed.consume(topic, 5)] == sent


def test_without_idempotence_the_relay_does_make_duplicates(
    relay: AnswerLosingRelay, undisturbed: ConfluentClient, topic: str
) -> None:
    """The proof that the test above can fail."""
    undisturbed.create_topic(topic)
    relay.lose(1)
    undisturbed.produce(topic, [NewRecord(b"twice")])
    assert [record.value for record in undisturbed.consume(topic, 2)] == [b"twice", b"twice"]
