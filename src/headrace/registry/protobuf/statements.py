"""Statements of the .proto language that stand for themselves: options, ranges, enums, services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from google.protobuf.descriptor_pb2 import EnumDescriptorProto, MethodDescriptorProto, ServiceDescriptorProto
from google.protobuf.message import Message

from headrace.registry.protobuf.cursor import Cursor
from headrace.registry.protobuf.lexer import SyntaxFault
from headrace.registry.protobuf.options import Value, set_option

_MAX_ENUM: Final = 2_147_483_647


def parse_option(cursor: Cursor, options: Message) -> None:
    """What follows the word `option`."""
    name = cursor.option_name()
    cursor.expect("=")
    put_option(cursor, options, name, cursor.value())
    cursor.expect(";")


def put_option(cursor: Cursor, options: Message, name: str, value: Value) -> None:
    try:
        set_option(options, name, value)
    except (SyntaxFault, UnicodeDecodeError, ValueError, TypeError) as error:
        raise SyntaxFault(f"line {cursor.token.line}: {error}") from None


def bracketed(cursor: Cursor) -> Iterator[tuple[str, Value]]:
    """The options in brackets behind a field or a value, if there are any."""
    if not cursor.accept("["):
        return
    while True:
        name = cursor.option_name()
        cursor.expect("=")
        yield name, cursor.value()
        if not cursor.accept(","):
            break
    cursor.expect("]")


def parse_range(cursor: Cursor, largest: int) -> tuple[int, int]:
    """First and last."""
    first = cursor.integer()
    if not cursor.accept("to"):
        return first, first
    return first, largest if cursor.accept("max") else cursor.integer()


def parse_enum(cursor: Cursor, enum: EnumDescriptorProto) -> None:
    enum.name = cursor.name()
    cursor.expect("{")
    while not cursor.accept("}"):
        # A value may be called as a statement is: what follows tells them apart.
        statement = cursor.following.text != "="
        if cursor.accept(";"):
            continue
        if cursor.sees("option") and statement:
            cursor.next()
            parse_option(cursor, enum.options)
        elif cursor.sees("reserved") and statement:
            cursor.next()
            _reserved_values(cursor, enum)
        else:
            value = enum.value.add(name=cursor.name())
            cursor.expect("=")
            value.number = cursor.integer()
            for name, setting in bracketed(cursor):
                put_option(cursor, value.options, name, setting)
            cursor.expect(";")


def _reserved_values(cursor: Cursor, enum: EnumDescriptorProto) -> None:
    while True:
        if cursor.token.kind == "string":
            enum.reserved_name.append(cursor.string().decode())
        else:
            first, last = parse_range(cursor, _MAX_ENUM)
            enum.reserved_range.add(start=first, end=last)
        if not cursor.accept(","):
            break
    cursor.expect(";")


def parse_service(cursor: Cursor, service: ServiceDescriptorProto) -> None:
    service.name = cursor.name()
    cursor.expect("{")
    while not cursor.accept("}"):
        if cursor.accept("option"):
            parse_option(cursor, service.options)
        elif not cursor.accept(";"):
            cursor.expect("rpc")
            _method(cursor, service.method.add(name=cursor.name()))


def _method(cursor: Cursor, method: MethodDescriptorProto) -> None:
    method.input_type, streams = _side(cursor)
    if streams:
        method.client_streaming = True
    cursor.expect("returns")
    method.output_type, streams = _side(cursor)
    if streams:
        method.server_streaming = True
    if not cursor.accept("{"):
        cursor.expect(";")
        return
    while not cursor.accept("}"):
        if cursor.accept("option"):
            parse_option(cursor, method.options)
        elif not cursor.accept(";"):
            raise cursor.fail("'option' or '}'")


def _side(cursor: Cursor) -> tuple[str, bool]:
    """The type, and whether many of it come."""
    cursor.expect("(")
    streams = cursor.sees("stream") and cursor.following.text not in (")", ".")
    if streams:
        cursor.next()
    name = cursor.dotted()
    cursor.expect(")")
    return name, streams
