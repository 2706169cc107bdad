"""How Protobuf schemas change."""

from __future__ import annotations

from tests.registry.evolution.case import Case


def _proto(name: str, old: str, new: str, backward: bool, forward: bool, *, syntax: str = "proto3") -> Case:
    head = f'syntax = "{syntax}";\n'
    return Case("PROTOBUF", name, head + old, head + new, backward, forward)


def _message(name: str, old: str, new: str, backward: bool, forward: bool, *, syntax: str = "proto3") -> Case:
    """Of the members of one message."""
    return _proto(name, f"message M {{ {old} }}", f"message M {{ {new} }}", backward, forward, syntax=syntax)


PROTOBUF = [
    _message("nothing changes", "int32 a = 1;", "int32 a = 1;", True, True),
    _message("a field is added", "int32 a = 1;", "int32 a = 1; string b = 2;", True, True),
    _message("a field is renamed", "int32 a = 1;", "int32 b = 1;", True, True),
    _message("a field gets another number", "int32 a = 1;", "int32 a = 2;", True, True),
    _message("int32 becomes int64", "int32 a = 1;", "int64 a = 1;", True, True),
    _message("int32 becomes bool", "int32 a = 1;", "bool a = 1;", True, True),
    _message("int32 becomes sint32", "int32 a = 1;", "sint32 a = 1;", False, False),
    _message("int32 becomes fixed32", "int32 a = 1;", "fixed32 a = 1;", False, False),
    _message("fixed32 becomes sfixed32", "fixed32 a = 1;", "sfixed32 a = 1;", True, True),
    _message("float becomes double", "float a = 1;", "double a = 1;", False, False),
    _message("int32 becomes string", "int32 a = 1;", "string a = 1;", False, False),
    _message("string becomes bytes", "string a = 1;", "bytes a = 1;", True, True),
    _message("string becomes repeated", "string a = 1;", "repeated string a = 1;", True, True),
    _message(
        "optional number becomes repeated", "optional int32 a = 1;", "repeated int32 a = 1;", False, False
    ),
    _message(
        "an enum becomes int32", "enum E { X = 0; } E a = 1;", "enum E { X = 0; } int32 a = 1;", True, True
    ),
    _message(
        "an enum gets a value", "enum E { X = 0; } E a = 1;", "enum E { X = 0; Y = 1; } E a = 1;", True, True
    ),
    _message(
        "a scalar becomes a message", "int32 a = 1;", "message I { int32 b = 1; } I a = 1;", False, False
    ),
    _message(
        "a field's message changes inside",
        "message I { int32 b = 1; } I a = 1;",
        "message I { string b = 1; } I a = 1;",
        False,
        False,
    ),
    _message(
        "a field's message gets a field",
        "message I { int32 b = 1; } I a = 1;",
        "message I { int32 b = 1; int32 c = 2; } I a = 1;",
        True,
        True,
    ),
    _message(
        "a field gets another message",
        "message I { } message J { } I a = 1;",
        "message I { } message J { } J a = 1;",
        False,
        False,
    ),
    _message("a nested message is added", "int32 a = 1;", "int32 a = 1; message I { }", True, False),
    _message(
        "a map's values change", "map<string, int32> a = 1;", "map<string, string> a = 1;", False, False
    ),
    _message("a map's values widen", "map<string, int32> a = 1;", "map<string, int64> a = 1;", True, True),
    _message("a map becomes a scalar", "map<string, int32> a = 1;", "string a = 1;", False, False),
    _message(
        "a oneof gets a field",
        "oneof o { int32 a = 1; }",
        "oneof o { int32 a = 1; int32 b = 2; }",
        True,
        False,
    ),
    _message("a oneof goes as a whole", "oneof o { int32 a = 1; } int32 c = 3;", "int32 c = 3;", True, True),
    _message(
        "one field moves into a new oneof",
        "int32 a = 1;",
        "oneof o { int32 a = 1; int32 b = 2; }",
        True,
        False,
    ),
    _message(
        "two fields move into a oneof",
        "int32 a = 1; int32 b = 2;",
        "oneof o { int32 a = 1; int32 b = 2; }",
        False,
        True,
    ),
    _message(
        "a field moves into an existing oneof",
        "int32 a = 1; oneof o { int32 b = 2; }",
        "oneof o { int32 b = 2; int32 a = 1; }",
        False,
        True,
    ),
    _message("a number is reserved", "int32 a = 1; int32 b = 2;", "int32 a = 1; reserved 2;", True, True),
    _proto(
        "a message is removed",
        "message M { int32 a = 1; } message N { }",
        "message M { int32 a = 1; }",
        False,
        True,
    ),
    _proto(
        "messages change places", "message M { } message N { }", "message N { } message M { }", True, True
    ),
    _proto("the package changes", "package a; message M { }", "package b; message M { }", False, False),
    _message(
        "a required field is added",
        "optional int32 a = 1;",
        "optional int32 a = 1; required int32 b = 2;",
        False,
        False,
        syntax="proto2",
    ),
    _message(
        "an optional field of proto2 is added",
        "optional int32 a = 1;",
        "optional int32 a = 1; optional int32 b = 2;",
        True,
        True,
        syntax="proto2",
    ),
    _message(
        "a recursive message changes inside", "M m = 1; int32 a = 2;", "M m = 1; string a = 2;", False, False
    ),
]
