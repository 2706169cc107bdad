"""Confluent's own serialisers, as they are: they register, look up, fetch by id, read what they wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import message_factory

from headrace.registry.protobuf.linking import link
from headrace.registry.protobuf.parser import parse_file
from tests.registry.registry_process import RegistryProcess

_USER: dict[str, Any] = {
    "type": "record",
    "name": "User",
    "namespace": "shop",
    "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": "int"}],
}
_GROWN_USER = {**_USER, "fields": [*_USER["fields"], {"name": "city", "type": "string", "default": "?"}]}
_ORDER = """
syntax = "proto3";
package shop;
import "shop/money.proto";
import "google/protobuf/timestamp.proto";
message Order {
  string id = 1;
  shop.Money price = 2;
  google.protobuf.Timestamp at = 3;
  map<string, int32> items = 4;
  optional string note = 5;
  oneof paid { string card = 6; bool cash = 7; }
  enum State { OPEN = 0; DONE = 1; }
  State state = 8;
}
"""
_MONEY = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; string currency = 2; }'


@pytest.fixture
def client(shared_registry: RegistryProcess) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": shared_registry.url}) as made:
        yield made


@pytest.fixture
def value(new_name: Callable[[], str]) -> SerializationContext:
    """Of a new topic; the subject is its name and -value."""
    return SerializationContext(new_name(), MessageField.VALUE)


def test_avro(client: SchemaRegistryClient, value: SerializationContext) -> None:
    user = {"name": "Ada", "age": 36}
    data = AvroSerializer(client, json.dumps(_USER))(user, value)
    assert AvroDeserializer(client)(data, value) == user
    # Other tests of this registry may have given it the same schema, which has one id.
    assert f"{value.topic}-value" in client.get_subjects_by_schema_id(int.from_bytes(data[1:5], "big"))


def test_avro_grows(client: SchemaRegistryClient, value: SerializationContext) -> None:
    old = AvroSerializer(client, json.dumps(_USER))({"name": "Ada", "age": 36}, value)
    new = AvroSerializer(client, json.dumps(_GROWN_USER))({"name": "Bob", "age": 5, "city": "Rome"}, value)
    reader = AvroDeserializer(client, json.dumps(_GROWN_USER))
    assert reader(old, value) == {"name": "Ada", "age": 36, "city": "?"}
    assert reader(new, value)["city"] == "Rome"
    assert client.get_versions(f"{value.topic}-value") == [1, 2]


def test_an_incompatible_schema_is_refused(client: SchemaRegistryClient, value: SerializationContext) -> None:
    AvroSerializer(client, json.dumps(_USER))({"name": "Ada", "age": 36}, value)
    broken = {**_USER, "fields": [{"name": "name", "type": "int"}]}
    with pytest.raises(SchemaRegistryError) as caught:
        AvroSerializer(client, json.dumps(broken))({"name": 1}, value)
    assert (caught.value.http_status_code, caught.value.error_code) == (409, 40901)
    assert "TYPE_MISMATCH" in caught.value.error_message


def test_the_latest_version_is_used(client: SchemaRegistryClient, value: SerializationContext) -> None:
    subject = f"{value.topic}-value"
    client.register_schema(subject, Schema(json.dumps(_USER), "AVRO"))
    number = client.register_schema(subject, Schema(json.dumps(_GROWN_USER), "AVRO"))
    settings = {"auto.register.schemas": False, "use.latest.version": True}
    data = AvroSerializer(client, json.dumps(_USER), conf=settings)({"name": "Ada", "age": 36}, value)
    assert int.from_bytes(data[1:5], "big") == number
    assert AvroDeserializer(client)(data, value)["city"] == "?"


def test_nothing_is_registered_unasked(client: SchemaRegistryClient, value: SerializationContext) -> None:
    serializer = AvroSerializer(client, json.dumps(_USER), conf={"auto.register.schemas": False})
    with pytest.raises(SchemaRegistryError) as caught:
        serializer({"name": "Ada", "age": 36}, value)
    assert caught.value.error_code == 40401
    client.register_schema(f"{value.topic}-value", Schema(json.dumps(_USER, indent=4), "AVRO"))
    assert serializer({"name": "Ada", "age": 36}, value)


def test_avro_references(client: SchemaRegistryClient, value: SerializationContext) -> None:
    inner = f"{value.topic}-user"
    client.register_schema(inner, Schema(json.dumps(_USER), "AVRO"))
    outer = {"type": "record", "name": "Team", "fields": [{"name": "head", "type": "shop.User"}]}
    schema = Schema(json.dumps(outer), "AVRO", [SchemaReference("shop.User", inner, 1)])
    data = AvroSerializer(client, schema)({"head": {"name": "Ada", "age": 36}}, value)
    assert AvroDeserializer(client)(data, value) == {"head": {"name": "Ada", "age": 36}}
    (number,) = client.get_referenced_by(inner, 1)
    assert number == int.from_bytes(data[1:5], "big")


def test_json(client: SchemaRegistryClient, value: SerializationContext) -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "User",
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name"],
    }
    data = JSONSerializer(json.dumps(schema), client)({"name": "Ada", "age": 36}, value)
    assert JSONDeserializer(json.dumps(schema), schema_registry_client=client)(data, value)["age"] == 36
    narrower = {**schema, "required": ["name", "age"]}
    with pytest.raises(SchemaRegistryError) as caught:
        JSONSerializer(json.dumps(narrower), client)({"name": "Ada", "age": 36}, value)
    assert caught.value.error_code == 40901


def _order_class() -> Any:
    file = link(parse_file(_ORDER, "shop/order.proto"), {"shop/money.proto": _MONEY})
    return message_factory.GetMessageClass(file.message_types_by_name["Order"])


def _order(kind: Any) -> Any:
    order = kind(id="1", items={"pen": 2}, note="soon", card="visa", state=1)
    order.price.cents = 250
    order.at.seconds = 9
    return order


def test_protobuf(
    client: SchemaRegistryClient, shared_registry: RegistryProcess, value: SerializationContext
) -> None:
    kind = _order_class()
    order = _order(kind)
    settings = {
        "reference.subject.name.strategy": lambda _context, reference: f"{value.topic}-{reference.name}"
    }
    data = ProtobufSerializer(kind, client, settings)(order, value)
    assert ProtobufDeserializer(kind, {}, client)(data, value) == order
    # It was sent as a descriptor in base64, and everybody can read it as text.
    path = f"/subjects/{value.topic}-value/versions/latest"
    shown = shared_registry.get(path).body
    assert "map<string, int32> items = 4;" in shown["schema"]
    assert [reference["name"] for reference in shown["references"]] == ["shop/money.proto"]
    assert "message" not in shared_registry.get(f"{path}?format=serialized").body["schema"]
    # Whoever registers the same as text gets the same id.
    again = shared_registry.register(
        f"{value.topic}-value", _ORDER, schemaType="PROTOBUF", references=shown["references"]
    )
    assert again.body["id"] == shown["id"]


def test_protobuf_with_the_latest_version(
    client: SchemaRegistryClient, shared_registry: RegistryProcess, value: SerializationContext
) -> None:
    """Somebody else has registered the schema, as text."""
    kind = _order_class()
    subject, money = f"{value.topic}-value", f"{value.topic}-money"
    shared_registry.register(money, _MONEY, schemaType="PROTOBUF")
    references = [{"name": "shop/money.proto", "subject": money, "version": 1}]
    made = shared_registry.register(subject, _ORDER, schemaType="PROTOBUF", references=references)
    number = made.body["id"]
    settings = {
        "auto.register.schemas": False,
        "use.latest.version": True,
        "reference.subject.name.strategy": lambda _context, _reference: money,
    }
    data = ProtobufSerializer(kind, client, settings)(_order(kind), value)
    assert int.from_bytes(data[1:5], "big") == number
    assert ProtobufDeserializer(kind, {}, client)(data, value) == _order(kind)
