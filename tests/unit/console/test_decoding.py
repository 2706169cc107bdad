"""Records by the schemas of a registry: as another reader reads them, within bounds, and for whom it is."""

from __future__ import annotations

import io
import json
import time
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.console.records.avro_schemas import Unreadable, parse
from headrace.console.records.avro_values import MOST_VALUES, read
from headrace.console.records.decoding import MOST_BYTES, Decoder
from headrace.console.records.texts import ALONE, IN_A_LIST, SchemaUsed, Text, row, text_of
from headrace.console.services.following import Asker
from headrace.console.services.registry import RegistryLooks, RegistrySeen
from headrace.protocol.records import Record
from tests.console.made_up_services import ORDER, ORDER_2, SCHEMAS, Scripted, registry_rest, schema

SEEN = RegistryLooks().look(Asker(registry_rest()))
EVERYTHING = {
    "type": "record",
    "name": "Everything",
    "namespace": "a.b",
    "fields": [
        {"name": "whole", "type": "long"},
        {"name": "part", "type": "double"},
        {"name": "text", "type": "string"},
        {"name": "flag", "type": "boolean"},
        {"name": "list", "type": {"type": "array", "items": ["null", "int", "string"]}},
        {"name": "map", "type": {"type": "map", "values": "float"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "again", "type": ["null", "Everything"]},
        {"name": "other", "type": ["null", "a.b.Kind"]},
    ],
}
VALUES = st.recursive(
    st.none(),
    lambda inner: st.fixed_dictionaries(
        {
            "whole": st.integers(-(2**63), 2**63 - 1),
            "part": st.floats(allow_nan=False, allow_infinity=False),
            "text": st.text(),
            "flag": st.booleans(),
            "list": st.lists(st.none() | st.integers(-(2**31), 2**31 - 1) | st.text(), max_size=4),
            "map": st.dictionaries(st.text(), st.integers(-100, 100).map(float), max_size=4),
            "kind": st.sampled_from(["A", "B"]),
            "again": inner,
            "other": st.sampled_from([None, "A", "B"]),
        }
    ),
    max_leaves=3,
).filter(lambda value: value is not None)


def written(document: Any, value: Any, number: int = 0) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(document), value)
    return (b"\0" + number.to_bytes(4, "big") if number else b"") + out.getvalue()


def seen_with(*schemas: dict[str, Any]) -> RegistrySeen:
    return RegistryLooks().look(Asker(Scripted({"/schemas": [*SCHEMAS, *schemas]})))


def decoded(data: bytes, seen: RegistrySeen = SEEN, most: int = ALONE) -> tuple[Text, SchemaUsed | None]:
    return Decoder("orders", seen, seen).text(data, most)


@settings(max_examples=30)
@given(VALUES)
def test_avro_is_read_as_fastavro_reads_it(value: dict[str, Any]) -> None:
    data = written(EVERYTHING, value)
    told = read(parse(json.dumps(EVERYTHING)), data)
    again: Any = fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(EVERYTHING), None)
    assert told == again


def test_moments_and_amounts_are_shown_as_what_they_mean() -> None:
    types = {
        "moment": ({"type": "long", "logicalType": "timestamp-millis"}, datetime(2026, 11, 18, tzinfo=UTC)),
        "amount": ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, Decimal("-0.05")),
        "day": ({"type": "int", "logicalType": "date"}, datetime(2026, 11, 18, tzinfo=UTC).date()),
        "fixed": ({"type": "fixed", "name": "f", "size": 2}, b"\xffa"),
        "nan": ("double", float("nan")),
        "far": ("long", 2**62),
    }
    document = {
        "type": "record",
        "name": "r",
        "fields": [{"name": name, "type": kind} for name, (kind, _) in types.items()],
    }
    data = written(document, {name: value for name, (_, value) in types.items()})
    document["fields"][-1]["type"] = {"type": "long", "logicalType": "timestamp-micros"}  # type: ignore[index]  # JSON
    assert read(parse(json.dumps(document)), data) == {
        "moment": "2026-11-18T00:00:00.000Z",
        "amount": "-0.05",
        "day": "2026-11-18",
        "fixed": "\\xffa",
        "nan": "nan",
        "far": 2**62,
    }


NULLS = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"


@pytest.mark.parametrize(
    ("document", "data", "why"),
    [
        ({"type": "array", "items": "null"}, NULLS, f"more than {MOST_VALUES:,} values"),
        (
            {"type": "array", "items": {"type": "record", "name": "e", "fields": []}},
            NULLS,
            "more than",
        ),
        ({"type": "map", "values": "null"}, b"\x02" + NULLS, "ends within a value"),
        (EVERYTHING | {"fields": [EVERYTHING["fields"][7]]}, b"\x02" * 100_000, "levels deep"),
        ("bytes", NULLS, "ends within a value"),
        ("string", b"\x01", "ends within a value"),
        ("long", b"\xff" * 20, "more than ten bytes"),
        ("long", b"\x02\x02", "1 of its bytes are left over"),
        (["null", "long"], b"\x08", "chooses number 4 of 2"),
        ({"type": "fixed", "name": "f", "size": 2**40}, b"", "ends within a value"),
    ],
)
def test_bytes_that_claim_too_much_end_soon(document: Any, data: bytes, why: str) -> None:
    began = time.process_time()
    with pytest.raises(Unreadable, match=why):
        read(parse(json.dumps(document)), data)
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"type":' * 70 + '"int"' + "}" * 70, "levels deep"),
        ('"Nothing"', "uses Nothing"),
        ('{"type": "record", "name": "r"}', "no list of fields"),
        ('{"type": "fixed", "name": "r", "size": -1}', "no size"),
        ("7", "not one of Avro"),
    ],
)
def test_what_is_no_schema_is_said_to_be_none(text: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        parse(text)


@given(st.binary(max_size=200), st.sampled_from([1, 2, 3, 4, 5, 6, 7]))
def test_any_bytes_become_text_or_a_reason(data: bytes, number: int) -> None:
    text, used = decoded(b"\0\0\0\0" + bytes([number]) + data)
    json.dumps([text, used])
    text.text.encode()
    if data:
        assert used is not None
        assert (text.kind == "json") == (used.problem == "")


def test_each_type_of_schema() -> None:
    text, used = decoded(written(ORDER_2, {"id": 7, "note": "x", "paid": 1.5}, 2))
    assert (text.kind, json.loads(text.text)) == ("json", {"id": 7, "note": "x", "paid": 1.5})
    assert used == SchemaUsed(2, "Avro", "orders-value", 2, "")
    text, used = decoded(b"\0\0\0\0\x04\0\x0a\x01p\x12\x02\x08\x07")
    assert json.loads(text.text) == {"page": "p", "way": {"at": "7"}}
    assert used == SchemaUsed(4, "Protobuf", "clicks-value", 1, "")
    text, used = decoded(b"\0\0\0\0\x04\x02\x02\x08\x07")
    assert json.loads(text.text) == {"at": "7"}, "the second message of the file"
    text, used = decoded(b'\0\0\0\0\x05{"a": 1}')
    assert text.text == '{"a": 1}'
    assert used == SchemaUsed(5, "JSON Schema", "payments-value", 1, ""), "deleted schemas have left records"
    refund = {"type": "record", "name": "Refund", "fields": [{"name": "of", "type": ORDER}]}
    text, used = decoded(written(refund, {"of": {"id": 1, "note": "n"}}, 6))
    assert json.loads(text.text) == {"of": {"id": 1, "note": "n"}}


def test_what_cannot_be_decoded_is_as_before_with_the_reason() -> None:
    for data, why in (
        (b"\0\0\0\0\x02\x01", "it ends within a value"),
        (b"\0\0\0\x01\0abc", "the registry has no such schema"),
        (b"\0\0\0\0\x04\x0c\x01", "it does not tell which message it is"),
        (b"\0\0\0\0\x04\x02\x10\x01", "the schema has no message at [8]"),
        (b"\0\0\0\0\x04\0\xff\xff", "the bytes are not a shop.Click"),
        (b"\0\0\0\0\x05" + b"[" * 100_000, "not JSON"),
        (b"\0\0\0\0\x05\xff\xff", "not UTF-8"),
        (b"\0\0\0\0\x07\0\0", "its schema refers to gone version 3, which is not there"),
    ):
        text, used = decoded(data)
        assert used is not None
        assert why in used.problem, data[:20]
        assert text == text_of(data, ALONE)
    assert decoded(b"plain") == (text_of(b"plain", ALONE), None)


def test_a_record_of_which_much_would_have_to_be_read_is_not_decoded_in_a_list() -> None:
    data = written(ORDER, {"id": 1, "note": "x" * MOST_BYTES}, 1)
    _, used = decoded(data, most=IN_A_LIST)
    assert used is not None
    assert used.problem == "it has more than 32 KB, which are not decoded in a list"
    whole, used = decoded(data)
    assert (whole.kind, used) == ("json", SchemaUsed(1, "Avro", "orders-value", 1, ""))
    short, _ = decoded(written(ORDER, {"id": 1, "note": "x" * 5000}, 1), most=IN_A_LIST)
    assert short.is_cut
    assert len(short.text) == IN_A_LIST


def test_one_page_does_not_decode_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = Decoder("orders", SEEN, SEEN)
    data = written(ORDER, {"id": 1, "note": "x"}, 1)
    moments = iter(range(100))
    monkeypatch.setattr("headrace.console.records.decoding.time.monotonic", lambda: float(next(moments)))
    assert decoder.text(data, ALONE)[0].kind == "json"
    _, used = decoder.text(data, ALONE)
    assert used is not None
    assert used.problem == "the records before it took too long; by itself it is decoded"


def test_a_viewer_gets_what_the_registry_would_tell_them() -> None:
    mine = SEEN.limited(lambda subject: subject == "refunds-value")
    decoder = Decoder("orders", SEEN, mine)
    _, used = decoder.text(written(ORDER, {"id": 1, "note": "x"}, 1), ALONE)
    assert used == SchemaUsed(1, "", "", 0, "it belongs to subjects that you may not read")
    refund = {"type": "record", "name": "Refund", "fields": [{"name": "of", "type": ORDER}]}
    text, used = decoder.text(written(refund, {"of": {"id": 1, "note": "n"}}, 6), ALONE)
    assert used is not None
    assert "orders-value version 1, which is not there, or not for you to read" in used.problem
    assert text.kind == "bytes"


def test_where_several_subjects_have_a_schema_the_topics_own_is_named() -> None:
    seen = seen_with(schema("a-value", 1, 9, ORDER), schema("orders-value", 3, 9, ORDER))
    _, used = decoded(written(ORDER, {"id": 1, "note": "x"}, 9), seen)
    assert used == SchemaUsed(9, "Avro", "orders-value", 3, "")


def test_schemas_that_refer_to_themselves_end() -> None:
    circle = [{"name": "x", "subject": "circle", "version": 1}]
    seen = seen_with(schema("circle", 1, 9, ORDER, references=circle))
    _, used = decoded(b"\0\0\0\0\x09abc", seen)
    assert used is not None
    assert "refers to itself" in used.problem


def test_a_row_has_both_schemas() -> None:
    record = Record(7, 1, written("string", "k", 3), written(ORDER, {"id": 1, "note": "x"}, 1), ())
    made = row(0, record, decoding=Decoder("orders", SEEN, SEEN))
    assert made.key_schema == SchemaUsed(3, "Avro", "orders-key", 1, "")
    assert made.value_schema == SchemaUsed(1, "Avro", "orders-value", 1, "")
    assert (made.key.text, json.loads(made.value.text)) == ('"k"', {"id": 1, "note": "x"})
    unasked = row(0, record, decoding=Decoder("orders", None, None, "the registry does not answer"))
    assert unasked.value_schema == SchemaUsed(1, "", "", 0, "the registry does not answer")
    assert row(0, record).value_schema is None
