"""What Confluent's serialisers write, by the project's own registry, through topics of either broker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import SparkSession

from headrace.spark.decoding import protobuf_schema
from headrace.spark.decoding.decode import decode
from headrace.spark.decoding.formats import Decoding, Format
from tests.broker_process import BrokerProcess
from tests.registry.registry_process import RegistryProcess

_RECORDS = [{"id": 1, "by": "ann"}, {"id": 2, "by": "bob"}]


@pytest.fixture(scope="module")
def registry(headrace: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    with RegistryProcess(tmp_path_factory.mktemp("registry"), headrace.bootstrap) as process:
        yield process


def _avro(client: SchemaRegistryClient) -> Callable[[Any, SerializationContext], bytes]:
    fields = [{"name": "id", "type": "long"}, {"name": "by", "type": "string"}]
    made: Callable[[Any, SerializationContext], bytes] = AvroSerializer(
        client, json.dumps({"type": "record", "name": "Order", "fields": fields})
    )
    return made


def _json(client: SchemaRegistryClient) -> Callable[[Any, SerializationContext], bytes]:
    properties = {"id": {"type": "integer"}, "by": {"type": "string"}}
    document = {"title": "Order", "type": "object", "properties": properties, "required": ["id"]}
    made: Callable[[Any, SerializationContext], bytes] = JSONSerializer(json.dumps(document), client)
    return made


def _protobuf(client: SchemaRegistryClient) -> Callable[[Any, SerializationContext], bytes]:
    text = 'syntax = "proto3"; package shop; message Other {} message Order { int64 id = 1; string by = 2; }'
    made = GetMessageClass(protobuf_schema.given(text, "Order").descriptor())
    serializer = ProtobufSerializer(made, client, {"use.deprecated.format": False})
    return lambda record, context: serializer(ParseDict(record, made()), context)


def test_what_serialisers_write_becomes_columns(
    spark: SparkSession, headrace: BrokerProcess, registry: RegistryProcess, new_topic: Callable[[], str]
) -> None:
    producer = Producer({"bootstrap.servers": headrace.bootstrap})
    decodings = {}
    with SchemaRegistryClient({"url": registry.url}) as client:
        for format_, make in ((Format.AVRO, _avro), (Format.JSON, _json), (Format.PROTOBUF, _protobuf)):
            topic, serialize = new_topic(), make(client)
            message = "shop.Order" if format_ is Format.PROTOBUF else None
            decodings[topic] = Decoding(
                format_, registry=registry.url, subject=f"{topic}-value", message=message
            )
            for record in _RECORDS:
                value = serialize(record, SerializationContext(topic, MessageField.VALUE))
                producer.produce(topic, value, partition=0)
            producer.produce(topic, b"poison", partition=0)
            producer.produce(topic, b"\0\0\0\x03\xe7\0", partition=0)
            producer.produce(topic, None, key=b"tombstone", partition=0)
    assert producer.flush(60) == 0
    for topic, decoding in decodings.items():
        frame = (
            spark.read.format("kafka")
            .option("kafka.bootstrap.servers", headrace.bootstrap)
            .option("subscribe", topic)
            .option("includeHeaders", "true")
            .load()
        )
        rows = sorted(decode(frame, decoding).collect(), key=lambda row: row.offset)
        assert [row.decoded and row.decoded.asDict() for row in rows] == [*_RECORDS, None, None, None]
        assert [row.problem is None for row in rows] == [True, True, False, False, True]
        assert rows[2].problem.startswith("not in the registry's wire format: the first byte is 0x70")
        if decoding.format is not Format.JSON:  # JSON needs no schema to be found; its text is what is wrong
            assert "schema id 999" in rows[3].problem
