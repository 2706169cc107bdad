"""Protobuf to Arrow, without Spark. The bytes are made from protobuf's own JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass

from headrace.spark.decoding import protobuf_schema
from headrace.spark.decoding.formats import DecodingRefused
from headrace.spark.decoding.protobuf_records import MessageDecoder, Writers, messages_of
from headrace.spark.decoding.protobuf_schema import MessageSchema
from headrace.spark.decoding.registry_client import RegisteredSchema, RegistryRefused
from headrace.spark.decoding.wire_format import header_of
from tests.spark.decoding.registry_server import serve

_PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
enum State { NEW = 0; PAID = 1; }
message Order {
  int32 id = 1;
  optional string note = 2;
  repeated Line lines = 3;
  map<string, int64> counts = 4;
  State state = 5;
  google.protobuf.Timestamp at = 6;
  google.protobuf.Int64Value maybe = 7;
  google.protobuf.Struct extra = 8;
  uint64 huge = 9;
  bytes raw = 10;
  Order parent = 11;
  oneof paid_by { string card = 12; double cash = 13; }
  repeated State states = 14;
  message Line { string sku = 1; float price = 2; repeated uint32 sizes = 3; }
}
message Customer { string name = 1; message Address { string city = 1; } }
"""


def _order() -> MessageSchema:
    return protobuf_schema.given(_PROTO, "Order")


def _bytes(schema: MessageSchema, document: dict[str, Any]) -> bytes:
    message = ParseDict(document, GetMessageClass(schema.descriptor())())
    encoded: bytes = message.SerializeToString()
    return encoded


def _decoded(decoder: MessageDecoder, *values: bytes | None) -> list[Any]:
    return [
        (each["decoded"], each["problem"])
        for each in decoder.decode(pa.array(values, pa.binary())).to_pylist()
    ]


def test_columns() -> None:
    assert protobuf_schema.columns(_order().descriptor()).simpleString() == (
        "struct<id:int,note:string,lines:array<struct<sku:string,price:float,sizes:array<bigint>>>,"
        "counts:map<string,bigint>,state:string,at:timestamp,maybe:bigint,extra:string,huge:decimal(20,0),"
        "raw:binary,parent:string,card:string,cash:double,states:array<string>>"
    )


def test_a_full_message_an_empty_one_and_none() -> None:
    full = {
        "id": 7, "note": "n", "lines": [{"sku": "a", "price": 0.5, "sizes": [1, 2**32 - 1]}, {"sku": "b"}],
        "counts": {"x": 1}, "state": "PAID", "at": "2026-11-15T12:00:00.000001Z", "maybe": 0,
        "extra": {"k": [1]}, "huge": 2**64 - 1, "raw": "/w==", "parent": {"id": 6}, "cash": 2.5,
        "states": ["PAID", "NEW"],
    }  # fmt: skip
    decoder = MessageDecoder(_order(), None)
    (first, _), (second, _), third = _decoded(decoder, _bytes(_order(), full), b"", None)
    assert first == {
        "id": 7, "note": "n",
        "lines": [
            {"sku": "a", "price": 0.5, "sizes": [1, 2**32 - 1]}, {"sku": "b", "price": 0.0, "sizes": []}
        ],
        "counts": [("x", 1)], "state": "PAID", "at": datetime(2026, 11, 15, 12, 0, 0, 1, UTC), "maybe": 0,
        "extra": '{"k": [1.0]}', "huge": Decimal(2**64 - 1), "raw": b"\xff", "parent": '{"id": 6}',
        "card": None, "cash": 2.5, "states": ["PAID", "NEW"],
    }  # fmt: skip
    assert {name for name, value in second.items() if value is None} == {
        "note", "at", "maybe", "extra", "parent", "card", "cash"
    }  # fmt: skip
    assert (second["id"], second["lines"], second["state"]) == (0, [], "NEW")
    assert third == (None, None)


def test_poison_costs_only_itself() -> None:
    decoder = MessageDecoder(_order(), None)
    good = _bytes(_order(), {"id": 1})
    beyond = b"\x32\x0a\x08" + b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f"[:9]  # at.seconds of 2**63 - 1
    rows = _decoded(decoder, good, b"hello world", beyond, good[:1], b"\x12\x01\xff", good)
    assert [row[0] and row[0]["id"] for row in rows] == [1, None, None, None, None, 1]
    assert all(row[1].startswith("the bytes are not a shop.Order: ") for row in (rows[1], rows[3], rows[4]))
    assert rows[2][1].startswith("a field of this shop.Order has a value that no column holds")
    assert rows[0][1] is rows[5][1] is None


@pytest.mark.parametrize(
    "within",
    [
        b"\x5a\x0c\x32\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f",  # parent.at.seconds of 2**63 - 1
        b"\x5a\x0d\x7a\x0b\x0a\x05a.b/c\x12\x02\x08\x01",  # parent.any, of a type that nobody knows
    ],
)
def test_what_has_no_json_within_a_message_costs_only_its_record(within: bytes) -> None:
    text = _PROTO.replace("int32 id", "google.protobuf.Any any = 15; int32 id")
    text = text.replace("enum State", 'import "google/protobuf/any.proto"; enum State')
    schema = protobuf_schema.given(text, "Order")
    good = _bytes(schema, {"id": 1})
    rows = _decoded(MessageDecoder(schema, None), good, within, good)
    assert [row[0] and row[0]["id"] for row in rows] == [1, None, 1]
    assert rows[1][1].startswith("a field of this shop.Order has a value that no column holds: ")


def test_numbers_of_an_enum_that_have_no_name_and_required_fields() -> None:
    assert _decoded(MessageDecoder(_order(), None), b"\x28\x09")[0][0]["state"] == "9"
    old = protobuf_schema.given('syntax = "proto2"; message R { required int32 a = 1; }', None)
    assert _decoded(MessageDecoder(old, None), b"")[0] == (None, "required field a is missing")


def test_headers_tell_the_message() -> None:
    file = protobuf_schema.linked(_PROTO)
    writers = Writers("http://127.0.0.1:9", "t-value", {4: protobuf_schema.index_paths(file)})
    order = _bytes(_order(), {"id": 1})
    decoder = MessageDecoder(_order(), writers)
    values = {
        header_of(4) + b"\0" + order: None,
        header_of(4) + b"\x02\x00" + order: None,  # the same, written out: one index, which is 0
        header_of(4) + b"\x02\x02" + order: "it is a shop.Customer, not a shop.Order",
        header_of(4) + b"\x04\x02\x00" + order: "it is a shop.Customer.Address, not a shop.Order",
        header_of(4) + b"\x02\x0a" + order: "schema id 4 has no message at [5]",
        header_of(4): "not in the registry's wire format: shorter than its header",
        order + b"......": "not in the registry's wire format: the first byte is 0x08, not 0x00",
        header_of(4) + b"\x04\x02": "not in the registry's wire format: the place of the message within its "
        "schema cannot be read",
        header_of(4) + b"\xff" * 9: "not in the registry's wire format: the place of the message within its "
        "schema cannot be read",
    }
    rows = _decoded(decoder, *values)
    assert [problem for _, problem in rows] == list(values.values())
    assert [row and row["id"] for row, _ in rows[:2]] == [1, 1]
    line = protobuf_schema.given(_PROTO, "shop.Customer.Address")
    assert _decoded(MessageDecoder(line, writers), header_of(4) + b"\x04\x02\x00\x0a\x01x") == [
        ({"city": "x"}, None)
    ]


def test_an_id_that_appears_later_is_asked_for_where_it_is_met() -> None:
    with serve() as registry:
        registry.register("avro", '"int"')
        newer = registry.register("t-value", _PROTO.replace("int32 id", "int64 id"), "PROTOBUF")
        decoder = MessageDecoder(_order(), Writers(registry.url, "t-value", {}, asks=True))
        body = b"\0" + _bytes(_order(), {"id": 5})
        rows = _decoded(decoder, header_of(newer) + body, header_of(99) + body, header_of(1) + body)
        assert [problem for _, problem in rows] == [
            None, "schema id 99 is not known to the registry", "schema id 1 is of type AVRO, not PROTOBUF",
        ]  # fmt: skip
        assert rows[0][0]["id"] == 5


def test_in_a_batch_only_what_was_listed_is_known() -> None:
    """It may be registered by now. A lake looks twice, and would find it bad first and good then."""
    with serve() as registry:
        number = registry.register("t-value", _PROTO, "PROTOBUF")
        decoder = MessageDecoder(_order(), Writers(registry.url, "t-value, u-value", {}))
        [(row, problem)] = _decoded(decoder, header_of(number) + b"\0")
        assert (row, problem) == (None, f"schema id {number} is not registered under t-value, u-value")
        assert registry.asked == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('syntax = "proto2"; message Order { optional group A = 1 { } }', "group"),
        ('edition = "2023"; message Order { }', "edition"),
        ('syntax = "proto3"; import "gone.proto"; message Order { }', "gone.proto"),
    ],
)
def test_a_schema_that_cannot_be_linked_is_its_records_problem(text: str, said: str) -> None:
    with serve() as registry:
        number = registry.register("t-value", text, "PROTOBUF")
        listed = messages_of(RegisteredSchema(number, "PROTOBUF", text))
        for writers in (
            Writers(registry.url, "t-value", {}, asks=True),
            Writers(registry.url, "t-value", {number: listed}),
        ):
            [(row, problem)] = _decoded(MessageDecoder(_order(), writers), header_of(number) + b"\0")
            assert row is None
            assert problem.startswith(f"schema id {number} cannot be used: ")
            assert said in problem


def test_a_registry_that_lets_nobody_in_is_no_records_problem() -> None:
    with serve() as registry:
        decoder = MessageDecoder(_order(), Writers(registry.url, "t-value", {}, asks=True))
        registry.refusal = 401
        with pytest.raises(RegistryRefused, match="401"):
            _decoded(decoder, header_of(1) + b"\0")
        registry.refusal = 422
        [(_, problem)] = _decoded(decoder, header_of(1) + b"\0")
        assert problem.startswith("schema id 1 cannot be had: the schema registry ")


def test_a_descriptor_set_does_as_well() -> None:
    made = _order()
    assert protobuf_schema.given(made.files, "shop.Order") == made
    with pytest.raises(DecodingRefused, match=r"say which message is meant: shop.Order, shop.Customer"):
        protobuf_schema.given(made.files, None)
    with pytest.raises(DecodingRefused, match=r"no message shop.Nothing"):
        protobuf_schema.given(made.files, "shop.Nothing")
    with pytest.raises(DecodingRefused, match="not a FileDescriptorSet"):
        protobuf_schema.given(b"nonsense", None)
    assert [file.name for file in FileDescriptorSet.FromString(made.files).file][-1] == "default"


@pytest.mark.parametrize(
    ("text", "message", "said"),
    [
        ("message {", None, "cannot be read"),
        (_PROTO, None, "say which message is meant"),
        (_PROTO, "Nobody", "has no message shop.Nobody; it has shop.Order"),
        ('syntax = "proto3"; import "other.proto"; message M {}', None, "other.proto"),
    ],
)
def test_schemas_that_cannot_be_used(text: str, message: str | None, said: str) -> None:
    with pytest.raises(DecodingRefused, match=said):
        protobuf_schema.given(text, message)
