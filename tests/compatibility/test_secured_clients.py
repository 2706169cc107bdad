"""Every client over TLS: by SASL with each mechanism that it has, and by a certificate. Nobody else gets in.

The broker has an authorizer. `alice` may do everything, by password and by certificate; `bob` has a password
and no right at all. The plaintext listener is there to make the users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.broker_process import BrokerProcess
from tests.certificates import Authority, chain
from tests.compatibility.clients.access import Access
from tests.compatibility.clients.all import CLIENTS, connect
from tests.compatibility.clients.client import Client, ClientFailure, NewRecord
from tests.compatibility.clients.confluent import ConfluentClient
from tests.compatibility.conftest import StartBroker
from tests.ports import own_port
from tests.secured_broker import MECHANISMS, identity, make_users, secured_properties

PASSWORDS = {"alice": "wonder-land 1", "bob": "builder-2"}
TOPIC_DENIED = 29
QUICK_TO_GIVE_UP = ("kcat", "kafka-clients-4.4.0", "sarama")
"""Others try again and again with a password that was refused."""


class Secured(NamedTuple):
    broker: BrokerProcess
    authority: Path
    certificate: Path
    key: Path

    def bootstrap(self, access: Access) -> str:
        return f"127.0.0.1:{self.broker.secured_ports[access.protocol]}"

    def by_password(self, mechanism: str, user: str = "alice", password: str | None = None) -> Access:
        return Access(self.authority, mechanism, user, password or PASSWORDS[user])

    def by_certificate(self) -> Access:
        return Access(self.authority, certificate=self.certificate, key=self.key)

    def connect(self, name: str, access: Access) -> Client:
        return connect(name, self.bootstrap(access), access)


@pytest.fixture(scope="module")
def secured(new_broker: StartBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    authority = Authority(directory)
    properties = secured_properties(authority, PASSWORDS)
    broker = new_broker(directory / "broker", properties)
    broker.secured_ports = {"SSL": own_port(), "SASL_SSL": own_port()}
    alice = identity(authority, "alice")
    (directory / "alice.crt").write_text(chain(alice))
    with broker:
        make_users(broker.bootstrap, PASSWORDS)
        yield Secured(broker, authority.trust_store, directory / "alice.crt", directory / "alice.key")


WAYS: dict[str, Callable[[Secured], Access]] = {
    **{name: partial(Secured.by_password, mechanism=name) for name in ("PLAIN", *MECHANISMS)},
    "certificate": Secured.by_certificate,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CLIENTS)
def test_records_go_in_and_out(secured: Secured, topic: str, name: str, way: str) -> None:
    with closing(ConfluentClient(secured.broker.bootstrap)) as operator:
        operator.create_topic(topic)
    access = WAYS[way](secured)
    sent = [NewRecord(f"value-{number}".encode(), f"key-{number}".encode()) for number in range(20)]
    with closing(secured.connect(name, access)) as client:
        client.produce(topic, sent)
        found = client.consume(topic, len(sent))
        assert [(one.key, one.value) for one in found] == [(one.key, one.value) for one in sent]


@pytest.mark.parametrize("name", CLIENTS)
def test_a_user_without_rights_is_told_so(secured: Secured, topic: str, name: str) -> None:
    with closing(ConfluentClient(secured.broker.bootstrap)) as operator:
        operator.create_topic(topic)
    with closing(secured.connect(name, secured.by_password("SCRAM-SHA-512", "bob"))) as client:
        with pytest.raises((ClientFailure, RuntimeError)) as failure:
            client.produce(topic, [NewRecord(b"forbidden")])
        if isinstance(failure.value, ClientFailure) and failure.value.code > 0:
            assert failure.value.code == TOPIC_DENIED
    with closing(ConfluentClient(secured.broker.bootstrap)) as operator:
        assert operator.consume(topic, 1, timeout_ms=500) == []


@pytest.mark.parametrize("name", QUICK_TO_GIVE_UP)
def test_a_wrong_password_gets_nobody_in(secured: Secured, topic: str, name: str) -> None:
    with closing(ConfluentClient(secured.broker.bootstrap)) as operator:
        operator.create_topic(topic)
    access = secured.by_password("SCRAM-SHA-512", "alice", "not-the-password")
    with (
        pytest.raises((ClientFailure, RuntimeError, OSError)),
        closing(secured.connect(name, access)) as client,
    ):
        client.produce(topic, [NewRecord(b"forbidden")])
    with closing(ConfluentClient(secured.broker.bootstrap)) as operator:
        assert operator.consume(topic, 1, timeout_ms=500) == []
