"""The console beside a real registry: it shows what Confluent's serialisers wrote as these read it, and of
subjects what another client is told."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import message_factory

from headrace.registry.protobuf.linking import link
from headrace.registry.protobuf.parser import parse_file
from tests.broker_process import HEADRACE, BrokerProcess
from tests.registry.registry_process import RegistryProcess

SECONDS = 240.0
USER: dict[str, Any] = {
    "type": "record",
    "name": "User",
    "namespace": "shop",
    "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": "int"}],
}
GROWN = {**USER, "fields": [*USER["fields"], {"name": "city", "type": "string", "default": "?"}]}
CLICK = 'syntax = "proto3"; package shop; message Click { string page = 1; int64 at = 2; }'
PRICE = {"title": "Price", "type": "object", "properties": {"cents": {"type": "integer"}}}


@contextmanager
def console(bootstrap: str, registry: str) -> Iterator[str]:
    process = subprocess.Popen(
        [str(HEADRACE), "console", "-b", bootstrap, "--port", "0", "--registry", registry],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip().removeprefix("ready url=")
    finally:
        process.terminate()
        process.wait(SECONDS)
        process.stdout.close()


def view(url: str, path: str) -> Any:
    with urllib.request.urlopen(f"{url}{path}{'&' if '?' in path else '?'}format=json") as answer:
        return json.load(answer)


def test_records_and_subjects_are_as_other_clients_see_them(
    headrace: BrokerProcess, shared_registry: RegistryProcess, new_name: Callable[[], str]
) -> None:
    topic = new_name()
    producer = Producer({"bootstrap.servers": headrace.bootstrap})
    with SchemaRegistryClient({"url": shared_registry.url}) as client:
        context = SerializationContext(topic, MessageField.VALUE)
        other = SerializationContext(f"{topic}-b", MessageField.VALUE)
        third = SerializationContext(f"{topic}-c", MessageField.VALUE)
        descriptor = link(parse_file(CLICK, "click.proto"), {}).message_types_by_name["Click"]
        click = message_factory.GetMessageClass(descriptor)
        values = [
            AvroSerializer(client, json.dumps(USER))({"name": "Ada", "age": 36}, context),
            AvroSerializer(client, json.dumps(GROWN))({"name": "Bob", "age": 5, "city": "Rome"}, context),
            ProtobufSerializer(click, client, {"use.deprecated.format": False})(click(page="/", at=7), other),
            JSONSerializer(json.dumps(PRICE), client)({"cents": 12}, third),
            b"\0\0\x0f\xff\xffnobody",
        ]
        for value in values:
            producer.produce(topic, value, partition=0)
        producer.flush(SECONDS)
        subjects = {name for name in client.get_subjects() if name.startswith(topic)}
        versions = client.get_versions(f"{topic}-value")
    expected = [
        ({"name": "Ada", "age": 36}, f"{topic}-value", 1, ""),
        ({"name": "Bob", "age": 5, "city": "Rome"}, f"{topic}-value", 2, ""),
        ({"page": "/", "at": "7"}, f"{topic}-b-value", 1, ""),
        ({"cents": 12}, f"{topic}-c-value", 1, ""),
        (None, "", 0, "the registry has no such schema"),
    ]
    with console(headrace.bootstrap, shared_registry.url) as url:
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                rows = view(url, f"/topics/{topic}/records")["found"]["rows"]
                listed = view(url, f"/schemas?q={topic}*")["listing"]
            except (urllib.error.HTTPError, TypeError):
                rows, listed = [], None  # the first looks are under way
            if len(rows) == len(values) and listed is not None and rows[0]["value_schema"] is not None:
                break
            assert time.monotonic() < deadline
            time.sleep(0.5)
        rows.sort(key=lambda row: row["offset"])
        assert [
            (
                json.loads(row["value"]["text"]) if row["value"]["kind"] == "json" else None,
                row["value_schema"]["subject"],
                row["value_schema"]["version"],
                row["value_schema"]["problem"],
            )
            for row in rows
        ] == expected
        assert subjects == {row["name"] for row in listed["rows"]}
        subject = view(url, f"/schemas/{topic}-value")
        assert sorted(each["number"] for each in subject["versions"]) == versions
        assert '"name": "city",' in [
            line["text"].strip() for line in subject["changes"] if line["sign"] == "+"
        ]
