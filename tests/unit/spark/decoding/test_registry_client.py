"""What the registry is asked, how often, and what is said when it does not answer."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest

from headrace.spark.decoding.formats import Decoding, Format
from headrace.spark.decoding.registered import registered
from headrace.spark.decoding.registry_client import RegistryClient, RegistryRefused, RegistryUnreachable
from tests.redirecting import redirecting
from tests.spark.decoding.registry_server import RegistryServer, serve


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with serve() as server:
        yield server


def test_an_id_is_asked_for_once(registry: RegistryServer) -> None:
    number = registry.register("s", "int")
    client = RegistryClient(registry.url)
    for _ in range(3):
        found = client.by_id(number)
        assert found is not None
        assert (found.id, found.type, found.text) == (number, "AVRO", "int")
    assert len(registry.asked) == 1


def test_a_version_may_become_another_schema(registry: RegistryServer) -> None:
    client = RegistryClient(registry.url)
    first = registry.register("s", "int")
    assert (client.version("s", 1).id, client.version("s", 1).text) == (first, "int")
    registry.forget("s")
    second = registry.register("s", "long")
    assert (client.version("s", 1).id, client.version("s", 1).text) == (second, "long")
    # What the ids mean was learnt on the way, and stays: records of the first are still there.
    asked = len(registry.asked)
    assert [found and found.text for found in map(client.by_id, (first, second))] == ["int", "long"]
    assert len(registry.asked) == asked


def test_a_batch_asks_for_each_version_once(registry: RegistryServer) -> None:
    for text in ('"int"', '"long"'):
        registry.register("s", text)
    asking = Decoding(Format.AVRO, registry=registry.url, subject="s")
    assert registered(asking).reader.text == '"long"'
    asked = len(registry.asked)
    registry.register("s", '"double"')
    found = registered(asking)
    assert (found.reader.text, sorted(found.writers)) == ('"double"', [1, 2, 3])
    # The newest, the list, and three versions.
    assert len(registry.asked) == asked + 5


def test_a_protobuf_descriptor_is_asked_for_once(registry: RegistryServer) -> None:
    registry.register("s", 'syntax = "proto3"; message M {}', "PROTOBUF")
    client = RegistryClient(registry.url)
    for _ in range(3):
        client.version("s", 1)
    assert [path for path in registry.asked if "serialized" in path] == [
        "/subjects/s/versions/1?deleted=true&format=serialized"
    ]


def test_new_versions_are_seen_and_deleted_ones_kept(registry: RegistryServer) -> None:
    client = RegistryClient(registry.url + "/")
    registry.register("a/b", "int")
    assert (client.versions("a/b"), client.latest_version("a/b")) == ([1], 1)
    registry.register("a/b", "long")
    registry.register("a/b", "float")
    registry.delete("a/b", 3)
    assert (client.versions("a/b"), client.latest_version("a/b")) == ([1, 2, 3], 2)
    assert client.version("a/b", 3).text == "float"


def test_references_come_along_in_the_order_in_which_they_are_needed(registry: RegistryServer) -> None:
    registry.register("one", "1")
    registry.register("two", "2", references=({"name": "One", "subject": "one", "version": 1},))
    registry.register("three", "3", references=({"name": "Two", "subject": "two", "version": 1},))
    assert RegistryClient(registry.url).version("three", 1).references == (("One", "1"), ("Two", "2"))


def test_what_the_registry_does_not_know_is_said_at_once(registry: RegistryServer) -> None:
    client = RegistryClient(registry.url)
    assert client.by_id(99) is None
    with pytest.raises(RegistryRefused, match="answered 404 to /subjects/nobody/versions/latest: not found"):
        client.latest_version("nobody")
    assert len(registry.asked) == 2


def test_a_registry_that_fails_for_a_moment_is_asked_again(registry: RegistryServer) -> None:
    registry.register("s", json.dumps("int"))
    registry.failures = 2
    assert RegistryClient(registry.url).latest_version("s") == 1
    assert len(registry.asked) == 3


def test_a_registry_that_is_gone_is_named_without_its_password() -> None:
    with serve() as server:
        url = server.url
    client = RegistryClient(url.replace("//", "//me:secret@"), patience_s=0.5)
    with pytest.raises(RegistryUnreachable, match=r"cannot be asked: .*refused") as raised:
        client.versions("s")
    assert url in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_name_and_password_in_the_address_are_sent(registry: RegistryServer) -> None:
    registry.register("s", "int")
    RegistryClient(registry.url.replace("//", "//me:p%40ss@")).versions("s")
    assert registry.authorizations == {"Basic " + base64.b64encode(b"me:p@ss").decode()}


def test_credentials_are_not_taken_to_another_service() -> None:
    heard: list[str | None] = []
    with redirecting(heard) as url, pytest.raises(RegistryUnreachable):
        RegistryClient(url.replace("http://", "http://me:secret@"), patience_s=0).latest_version("s")
    assert heard == [None], "it was followed, without them"


@pytest.mark.parametrize("url", ["localhost:8081", "ftp://host", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(RegistryRefused, match="write http://host:port"):
        RegistryClient(url)
