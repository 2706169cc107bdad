"""Schemas that change under a running lake, in the three formats, with bad records among them.

The lake follows a registry. Nobody restarts it: at the end the queries are those that were started first.
"""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql.types import LongType

from headrace.spark.decoding import protobuf_schema
from headrace.spark.decoding.wire_format import header_of
from headrace.spark.lake import job
from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.dead_letters import replay
from headrace.spark.lake.job import Lake
from headrace.spark.lake.plan import route
from tests.registry.registry_process import RegistryProcess
from tests.spark.lake.conftest import LakeUnderTest

_PATIENCE_S = 500.0
_LARGE = 5_000_000_000


class _Kind(NamedTuple):
    """Three versions of a schema. `id` is widened and `more` added by the second; the third has no `gone`."""

    name: str
    versions: tuple[str, str, str]
    encode: Callable[[str, Mapping[str, object]], bytes]


def _avro_schema(**types: object) -> str:
    fields = [
        {"name": name, "type": type_} | ({"default": None} if isinstance(type_, list) else {})
        for name, type_ in types.items()
    ]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


def _avro(schema: str, record: Mapping[str, object]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(schema)), dict(record))
    return out.getvalue()


def _json_schema(required: list[str], **types: dict[str, str]) -> str:
    return json.dumps({"title": "Order", "type": "object", "properties": types, "required": required})


def _json(_: str, record: Mapping[str, object]) -> bytes:
    return json.dumps(record).encode()


def _proto_schema(fields: str) -> str:
    return f'syntax = "proto3"; package shop; message Order {{ {fields} }}'


def _protobuf(schema: str, record: Mapping[str, object]) -> bytes:
    message = GetMessageClass(protobuf_schema.given(schema, "Order").descriptor())
    first_message = b"\0"
    return first_message + bytes(ParseDict(dict(record), message()).SerializeToString())


_MAYBE = ["null", "string"]
_TEXT = {"type": "string"}
_INT, _LONG = {"type": "integer", "format": "int32"}, {"type": "integer"}
_AVRO = _Kind(
    "AVRO",
    (
        _avro_schema(id="int", gone="string", by="string"),
        _avro_schema(id="long", gone="string", by="string", more=_MAYBE),
        _avro_schema(id="long", by="string", more=_MAYBE),
    ),
    _avro,
)
_AVRO_LATER = _avro_schema(id="long", by="string", more=_MAYBE, note=_MAYBE)
_JSON = _Kind(
    "JSON",
    (
        _json_schema(["id", "by"], id=_INT, gone=_TEXT, by=_TEXT),
        _json_schema(["id", "by"], id=_LONG, gone=_TEXT, by=_TEXT, more=_TEXT),
        _json_schema(["id"], id=_LONG, by=_TEXT, more=_TEXT),
    ),
    _json,
)
_PROTOBUF = _Kind(
    "PROTOBUF",
    (
        _proto_schema("int32 id = 1; string gone = 2; string by = 3;"),
        _proto_schema("int64 id = 1; string gone = 2; string by = 3; optional string more = 4;"),
        _proto_schema("int64 id = 1; reserved 2; string by = 3; optional string more = 4;"),
    ),
    _protobuf,
)
_PROTOBUF_LATER = _proto_schema(
    "int64 id = 1; reserved 2; string by = 3; optional string more = 4; optional string note = 5;"
)
_KINDS = (_AVRO, _JSON, _PROTOBUF)
_RECORDS: tuple[dict[str, object], ...] = (
    {"id": 1, "gone": "g", "by": "ann"},
    {"id": _LARGE, "gone": "h", "by": "bob", "more": "m"},
    {"id": 3, "by": "cid", "more": "n"},
)


@pytest.fixture
def registry(lake: LakeUnderTest, tmp_path: Path, new_topic: Callable[[], str]) -> Iterator[RegistryProcess]:
    """Over a topic of its own: the test knows which ids come next."""
    with RegistryProcess(tmp_path / "registry", lake.broker.bootstrap, new_topic()) as process:
        yield process


class _Running:
    """A lake that runs on, seen from outside."""

    def __init__(self, lake: LakeUnderTest, config: LakeConfig) -> None:
        self.lakes: list[Lake] = []
        self._stop = threading.Event()
        self.thread = threading.Thread(
            target=lambda: job.run(lake.spark, config, stop=self._stop, told=self.lakes.append)
        )

    def end(self) -> None:
        self._stop.set()
        self.thread.join(120)
        assert not self.thread.is_alive()

    def until_loaded(self, count: int, topics: list[str]) -> None:
        """Until `count` records of each topic were loaded, good ones and bad ones."""
        deadline = time.monotonic() + _PATIENCE_S
        while any(self._loaded(topic) < count for topic in topics):
            assert time.monotonic() < deadline, [self._error(topic) for topic in topics]
            assert self.thread.is_alive()
            time.sleep(0.2)

    def _loaded(self, topic: str) -> int:
        found = self.lakes[-1].loading.get(topic) if self.lakes else None
        return 0 if found is None else sum(batch.records for batch in found.done.batches)

    def _error(self, topic: str) -> str | None:
        found = self.lakes[-1].loading.get(topic) if self.lakes else None
        return "not found yet" if found is None else found.done.error

    def runs(self, topics: list[str]) -> list[str]:
        """A query that was started again has another."""
        queries = [self.lakes[-1].loading[topic].query for topic in topics]
        return [str(query.runId) for query in queries if query is not None]


@contextmanager
def _running(lake: LakeUnderTest, config: LakeConfig) -> Iterator[_Running]:
    made = _Running(lake, config)
    made.thread.start()
    try:
        yield made
    finally:
        made.end()


# How each kind of table changes its columns and gets dead letters back is in test_growth and test_upkeep.
@pytest.mark.parametrize("table_format", ["parquet"], indirect=True)
def test_schemas_change_while_records_flow_and_nothing_stops(
    lake: LakeUnderTest, registry: RegistryProcess, new_topic: Callable[[], str]
) -> None:
    topics = {kind: new_topic() for kind in _KINDS}
    names = list(topics.values())
    rules = "\n".join(
        f'[[topics]]\nname = "{topic}"\nformat = "{kind.name.lower()}"\nregistry = "{registry.url}"'
        for kind, topic in topics.items()
    )
    config = lake.config(rules, 'trigger = "500ms"')
    with SchemaRegistryClient({"url": registry.url}) as client, ExitStack() as ending:
        # By default a registry takes no property away from a JSON Schema, and none is added.
        client.set_compatibility(f"{topics[_JSON]}-value", "NONE")

        def register(kind: _Kind, schema: str, subject: str = "value") -> int:
            return int(client.register_schema(f"{topics[kind]}-{subject}", Schema(schema, kind.name)))

        def send(kind: _Kind, schema_id: int, schema: str, record: Mapping[str, object]) -> None:
            lake.produce(topics[kind], [header_of(schema_id) + kind.encode(schema, record)])

        # Two bad records in each topic: one that nobody can read, and one that somebody can make readable.
        registered = {kind: register(kind, kind.versions[0]) for kind in _KINDS}
        elsewhere = register(_AVRO, _AVRO_LATER, "elsewhere")
        not_yet = elsewhere + 2 * len(_KINDS) + 1  # the registry counts, and two more of each come before
        for kind in _KINDS:
            send(kind, registered[kind], kind.versions[0], _RECORDS[0])
            lake.produce(topics[kind], [b"poison"])
        send(_AVRO, elsewhere, _AVRO_LATER, {"id": 9, "by": "eve", "note": "late"})
        send(_JSON, registered[_JSON], "", {"id": 9})
        send(_PROTOBUF, not_yet, _PROTOBUF_LATER, {"id": 9, "by": "eve", "note": "late"})
        running = ending.enter_context(_running(lake, config))
        running.until_loaded(3, names)
        started = running.runs(names)

        for version in (1, 2):
            for kind in _KINDS:
                registered[kind] = register(kind, kind.versions[version])
                send(kind, registered[kind], kind.versions[version], _RECORDS[version])
            running.until_loaded(3 + version, names)
        _check_columns(lake, config, topics)
        _check_reasons(lake, config, topics, not_yet)

        assert register(_PROTOBUF, _PROTOBUF_LATER) == not_yet
        assert register(_AVRO, _AVRO_LATER) == elsewhere
        for topic in names:
            way = route(config, topic)
            assert way is not None
            assert replay(lake.spark, config, way)[:2] == (1, 1)
        for kind in _KINDS:
            send(kind, registered[kind], kind.versions[2], {"id": 4, "by": "dan"})
        running.until_loaded(6, names)
        assert running.runs(names) == started
    for kind, topic in topics.items():
        rows = lake.rows(config, topic)
        assert [(row.offset, row.id) for row in rows] == [(0, 1), (2, 9), (3, _LARGE), (4, 3), (5, 4)]
        assert kind is _JSON or [row.note for row in rows] == [None, "late", None, None, None]
        assert [row.offset for row in lake.rows(config, f"{topic}_dead_letters")] == [1]


def _check_columns(lake: LakeUnderTest, config: LakeConfig, topics: Mapping[_Kind, str]) -> None:
    for topic in topics.values():
        table = lake.table(config, topic)
        assert table.schema["id"].dataType == LongType()
        rows: list[Any] = lake.rows(config, topic)
        assert [row.id for row in rows] == [1, _LARGE, 3]
        assert [row.gone for row in rows] == ["g", "h", None]
        assert [row.by for row in rows] == ["ann", "bob", "cid"]
        assert [row.more for row in rows] == [None, "m", "n"]


def _check_reasons(
    lake: LakeUnderTest, config: LakeConfig, topics: Mapping[_Kind, str], not_yet: int
) -> None:
    reasons = {
        kind: [(row.offset, row.reason) for row in lake.rows(config, f"{topic}_dead_letters")]
        for kind, topic in topics.items()
    }
    poison = "not in the registry's wire format: the first byte is 0x70, not 0x00"
    assert [found[0] for found in reasons.values()] == [(1, poison)] * len(_KINDS)
    assert "is not registered under" in reasons[_AVRO][1][1]
    assert reasons[_JSON][1] == (2, "required field by is missing or null")
    unlisted = f"schema id {not_yet} is not registered under {topics[_PROTOBUF]}-value"
    assert reasons[_PROTOBUF][1] == (2, unlisted)
    assert [len(found) for found in reasons.values()] == [2] * len(_KINDS)
