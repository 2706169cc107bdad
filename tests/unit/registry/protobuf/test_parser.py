"""Corners of the language that Google's files do not reach, and what is not of it."""

from __future__ import annotations

import base64

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from headrace.registry.errors import RegistryError
from headrace.registry.protobuf.lexer import SyntaxFault
from headrace.registry.protobuf.linking import link
from headrace.registry.protobuf.parser import parse_file
from headrace.registry.protobuf.rendering import render
from headrace.registry.protobuf.schema import ProtobufSchema

_PROTO2 = r"""
syntax = "proto2"; // a comment; with { signs
package a.b;
/* and
   another */
option java_package = "x" ".y";
option (mine.file).deep = { a: 1 b { c: "}" } };
message message {
  required int32 required = 1 [default = -0x10, deprecated = true, (mine.field) = "x"];
  optional string text = 2 [default = "a\"\x41\102\n"];
  optional bytes raw = 3 [default = "\000\xff"];
  optional float ratio = 4 [default = 1.5e3];
  optional double all = 5 [default = -inf];
  repeated int32 packed = 6 [packed = true];
  optional .a.b.message self = 7;
  optional Kind kind = 8 [default = SECOND];
  enum Kind {
    option allow_alias = true;
    FIRST = 0; SECOND = 2; ALSO = 2; NEGATIVE = -1;
    reserved 5 to 7, 9;
    reserved "OLD";
  }
  extensions 100 to 199, 500 to max;
  reserved 50, 60 to 70;
  reserved "gone", "lost";
  map<string, Kind> by_name = 9;
  oneof choice { option (mine.oneof) = true; string left = 10; message right = 11; }
}
extend message { optional int32 extra = 100; }
service Search {
  option deprecated = true;
  rpc Find (message) returns (stream message);
  rpc Put (stream message) returns (message) { option idempotency_level = IDEMPOTENT; }
}
"""


def test_proto2() -> None:
    file = parse_file(_PROTO2, "f")
    message = file.message_type[0]
    assert (file.package, file.options.java_package, file.syntax) == ("a.b", "x.y", "")
    fields = {field.name: field for field in message.field}
    assert fields["required"].label == FieldDescriptorProto.LABEL_REQUIRED
    assert (fields["required"].default_value, fields["required"].options.deprecated) == ("-16", True)
    assert fields["text"].default_value == 'a"AB\n'
    assert fields["raw"].default_value == "\\000\\377"
    assert (fields["ratio"].default_value, fields["all"].default_value) == ("1500", "-inf")
    assert fields["packed"].options.packed
    assert [value.number for value in message.enum_type[0].value] == [0, 2, 2, -1]
    assert [(entry.start, entry.end) for entry in message.extension_range] == [(100, 200), (500, 536870912)]
    assert [(entry.start, entry.end) for entry in message.reserved_range] == [(50, 51), (60, 71)]
    assert list(message.reserved_name) == ["gone", "lost"]
    assert message.nested_type[0].name == "ByNameEntry"
    assert fields["right"].oneof_index == 0
    assert file.extension[0].extendee == "message"
    find, put = file.service[0].method
    assert (find.server_streaming, find.client_streaming, put.client_streaming) == (True, False, True)
    link(parse_file(_PROTO2, "f"), {})


def test_rendered_and_parsed_it_is_the_same() -> None:
    file = parse_file(_PROTO2, "f")
    assert parse_file(render(file), "f") == file


def test_an_optional_of_proto3_is_a_oneof_of_its_own() -> None:
    text = 'syntax = "proto3"; message M { optional int32 a = 1; oneof o { int32 b = 2; } int32 _a = 3; }'
    message = parse_file(text, "f").message_type[0]
    assert [oneof.name for oneof in message.oneof_decl] == ["o", "X_a"]
    assert (message.field[0].oneof_index, message.field[0].proto3_optional) == (1, True)
    assert parse_file(render(parse_file(text, "f")), "f").message_type[0] == message


@pytest.mark.parametrize(
    "text",
    [
        "message",
        "message M",
        "message M {",
        'syntax = "proto4";',
        'edition = "2023";',
        'syntax = "proto3"; message M { int32 a = 0; }',
        'syntax = "proto3"; message M { int32 a; }',
        'syntax = "proto3"; message M { int32 a = 1 }',
        'syntax = "proto3"; message M { int32 a = 1 [packed = 7]; }',
        'syntax = "proto3"; message M { int32 a = 1 [nonsense = true]; }',
        "message M { int32 a = 1; }",
        "message M { optional group G = 1 { } }",
        'syntax = "proto3"; message M { int32 a = 1; } }',
        'syntax = "proto3"; enum E { A }',
        'option java_package = "\n";',
        "@",
        'syntax = "proto3"; option (a) = { b: { };',
    ],
)
def test_what_is_not_of_the_language(text: str) -> None:
    with pytest.raises(SyntaxFault):
        parse_file(text, "f")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('syntax = "proto3"; message M { Missing a = 1; }', "Missing"),
        ('syntax = "proto3"; message M { int32 a = 1; int32 b = 1; }', "1"),
        ('syntax = "proto3"; message M { } message M { }', "M"),
        ('syntax = "proto3"; import "other.proto";', "other.proto"),
        ('syntax = "proto3"; import "google/type/nothing.proto";', "googleapis-common-protos"),
        ('syntax = "proto3"; enum E { A = 1; }', "zero"),
        ("AAAA", "base64"),
        (base64.b64encode(b"\xff\xff").decode(), "base64"),
    ],
)
def test_what_does_not_fit_together(text: str, reason: str) -> None:
    with pytest.raises(RegistryError, match=reason) as caught:
        ProtobufSchema.parse(text, {})
    assert caught.value.code == 42201


def test_files_that_import_each_other() -> None:
    texts = {name: f'syntax = "proto3"; import "{other}";' for name, other in (("a", "b"), ("b", "a"))}
    with pytest.raises(RegistryError, match="imports itself"):
        ProtobufSchema.parse('syntax = "proto3"; import "a";', texts)


def test_what_needs_no_reference() -> None:
    text = """
    syntax = "proto3";
    import "google/protobuf/timestamp.proto";
    import "confluent/meta.proto";
    import "confluent/type/decimal.proto";
    message M {
      google.protobuf.Timestamp at = 1;
      confluent.type.Decimal price = 2 [(confluent.field_meta).doc = "x"];
    }
    """
    schema = ProtobufSchema.parse(text, {})
    file = FileDescriptorProto.FromString(base64.b64decode(schema.formatted("serialized")))
    assert [field.type_name for field in file.message_type[0].field] == [
        ".google.protobuf.Timestamp",
        ".confluent.type.Decimal",
    ]
