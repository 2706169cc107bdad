"""Avro records translated from the schema that wrote them into the reader's, without Spark."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from headrace.spark.decoding.avro_strangers import Translator
from headrace.spark.decoding.registry_client import RegistryRefused
from headrace.spark.decoding.wire_format import header_of
from tests.spark.decoding.registry_server import RegistryServer, serve


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with serve() as server:
        yield server


def _record(price: tuple[int, int], at: str, clock: dict[str, str]) -> dict[str, Any]:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": price[0], "scale": price[1]}
    types = {"price": decimal, "at": {"type": "long", "logicalType": at}, "clock": clock}
    fields = [{"name": name, "type": type_} for name, type_ in types.items()]
    return {"type": "record", "name": "R", "fields": fields}


_OLD = _record((10, 2), "timestamp-millis", {"type": "int", "logicalType": "time-millis"})
_NEW = _record((12, 4), "local-timestamp-micros", {"type": "long", "logicalType": "time-micros"})


def _avro(schema: Any, record: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), record)
    return out.getvalue()


def _answers(translator: Translator, *values: bytes | None, known: dict[int, Any] | None = None) -> list[Any]:
    answers = translator.translate(pa.array(values, pa.binary()), known or {}).to_pylist()
    return [answer and (answer["record"], answer["problem"]) for answer in answers]


def test_scales_and_units_become_the_readers(registry: RegistryServer) -> None:
    record = {"price": Decimal("12.34"), "at": datetime(2026, 11, 15, 12, tzinfo=UTC), "clock": time(1, 2, 3)}
    translator = Translator(json.dumps(_NEW), registry.url)
    known, none = _answers(translator, header_of(9) + _avro(_OLD, record), None, known={9: _OLD})
    expected = {**record, "price": Decimal("12.3400"), "at": datetime(2026, 11, 15, 12)}
    assert fastavro.schemaless_reader(io.BytesIO(known[0]), fastavro.parse_schema(_NEW), None) == expected
    assert none is None
    assert registry.asked == []


def test_what_the_readers_scale_cannot_hold_is_a_problem(registry: RegistryServer) -> None:
    record = {"price": Decimal("12.3456"), "at": datetime(2026, 11, 15, 12), "clock": time(1)}
    translator = Translator(json.dumps(_OLD), registry.url)
    [(translated, problem)] = _answers(translator, header_of(9) + _avro(_NEW, record), known={9: _NEW})
    assert translated is None
    assert problem.startswith("the bytes are not a record of the Avro schema with id 9: ")


def test_a_schema_that_is_none_is_its_records_problem(registry: RegistryServer) -> None:
    numbers = [
        registry.register("s", "strin"),
        registry.register("s", {"type": "nonsense"}),
        registry.register("s", 'syntax = "proto3"; message M {}', "PROTOBUF"),
        99,
    ]
    answers = _answers(Translator('"int"', registry.url), *(header_of(each) + b"\x02" for each in numbers))
    assert [record for record, _ in answers] == [None] * 4
    for (_, problem), said in zip(
        answers,
        [
            "the Avro schema with id 1 cannot be used: ",
            "the Avro schema with id 2 cannot be used: ",
            "schema id 3 is of type PROTOBUF, not AVRO",
            "schema id 99 is not known to the registry",
        ],
        strict=True,
    ):
        assert problem.startswith(said)


def test_a_registry_that_lets_nobody_in_is_no_records_problem(registry: RegistryServer) -> None:
    registry.refusal = 403
    with pytest.raises(RegistryRefused, match="403"):
        _answers(Translator('"int"', registry.url), header_of(1) + b"\x02")
