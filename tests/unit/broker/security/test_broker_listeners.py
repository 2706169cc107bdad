"""On which listeners a peer may be a broker, and where a broker dials another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.security.security import Security
from headrace.config.broker import BrokerConfig
from headrace.controller.image import Endpoint
from headrace.security.acl_index import AclIndex
from headrace.security.rights import Authorizer

ENDPOINTS = (
    Endpoint("PLAINTEXT", "h", 9092, 0),
    Endpoint("SSL", "h", 9093, 1),
    Endpoint("OWN", "h", 9094, 1),
)
LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:9092,SSL://127.0.0.1:9093,OWN://127.0.0.1:9094",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,OWN:SSL",
    "ssl.keystore.location": "/etc/broker.pem",
}


def connection(listener: str, security: Security | None = None) -> Any:
    authorizer = None if security is None else security.authorizer
    rights = None if authorizer is None else authorizer.rights_of("User:CN=broker", "h")
    return SimpleNamespace(listener=listener, rights=rights)


def test_brokers_come_on_their_listeners_only() -> None:
    security = Security("NEW", "OLD")
    assert security.is_broker(connection("NEW"))
    assert security.is_broker(connection("OLD"))
    assert not security.is_broker(connection("CLIENTS"))


@pytest.mark.parametrize(("super_users", "is_broker"), [((), False), (("User:CN=broker",), True)])
def test_an_authorizer_decides_on_each_of_them(super_users: tuple[str, ...], is_broker: bool) -> None:
    security = Security("NEW", "OLD", authorizer=Authorizer(AclIndex(), super_users=super_users))
    assert security.is_broker(connection("OLD", security)) is is_broker
    assert not security.is_broker(connection("CLIENTS", security))


def test_a_broker_that_is_missing_among_the_super_users_is_told_in_shadow_mode() -> None:
    told: list[tuple[str, str]] = []
    authorizer = Authorizer(
        AclIndex(),
        mode="shadow",
        on_shadow_denial=lambda principal, _host, operation, *_: told.append((principal, operation.name)),
    )
    security = Security("NEW", authorizer=authorizer)
    assert security.is_broker(connection("NEW", security)), "nothing is denied"
    assert told == [("User:CN=broker", "CLUSTER_ACTION")]


@pytest.mark.parametrize(
    ("properties", "port"),
    [
        ({}, 9092),
        ({"inter.broker.listener.name": "SSL"}, 9093),
        ({"inter.broker.listener.name": "own"}, 9094),
        ({"security.inter.broker.protocol": "SSL"}, 9093),
    ],
)
def test_another_broker_is_dialled_on_the_listener_between_brokers(
    properties: dict[str, str], port: int
) -> None:
    config = BrokerConfig.parse(LISTENERS | properties)
    cache: Any = SimpleNamespace(_runtime=SimpleNamespace(config=config))
    assert MetadataCache.address_among(cache, ENDPOINTS) == ("h", port)
    assert MetadataCache.address_among(cache, ()) is None
