"""A .proto file as a FileDescriptorProto, as protoc would make it before names are resolved.

proto2 and proto3: messages, enums, oneofs, maps, reserved ranges, extensions, services, options.
Names are left as they were written: a descriptor pool resolves them, and finds what does not fit together.
Left out: groups, and editions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    OneofDescriptorProto,
)

from headrace.registry.protobuf.cursor import Cursor
from headrace.registry.protobuf.lexer import SyntaxFault
from headrace.registry.protobuf.options import default_text
from headrace.registry.protobuf.statements import (
    bracketed,
    parse_enum,
    parse_option,
    parse_range,
    parse_service,
    put_option,
)

SCALARS: Final = {
    "double": FieldDescriptorProto.TYPE_DOUBLE,
    "float": FieldDescriptorProto.TYPE_FLOAT,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "fixed64": FieldDescriptorProto.TYPE_FIXED64,
    "fixed32": FieldDescriptorProto.TYPE_FIXED32,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "uint32": FieldDescriptorProto.TYPE_UINT32,
    "sfixed32": FieldDescriptorProto.TYPE_SFIXED32,
    "sfixed64": FieldDescriptorProto.TYPE_SFIXED64,
    "sint32": FieldDescriptorProto.TYPE_SINT32,
    "sint64": FieldDescriptorProto.TYPE_SINT64,
}
_LABELS: Final = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}
_MAX_FIELD: Final = 536_870_911


def parse_file(text: str, name: str) -> FileDescriptorProto:
    """SyntaxFault where it is not of the language."""
    return _Parser(text, name).file()


class _Parser:
    def __init__(self, text: str, name: str) -> None:
        self._cursor = Cursor(text)
        self._file = FileDescriptorProto(name=name)

    # --- the file --------------------------------------------------------------------------------------

    def file(self) -> FileDescriptorProto:
        cursor, file = self._cursor, self._file
        while not cursor.at_end:
            if cursor.accept(";"):
                continue
            word = cursor.name()
            if word == "syntax":
                self._syntax()
            elif word == "edition":
                raise SyntaxFault("editions are not supported: write proto2 or proto3")
            elif word == "package":
                file.package = cursor.dotted()
                cursor.expect(";")
            elif word == "import":
                self._import()
            elif word == "option":
                parse_option(cursor, file.options)
            elif word == "message":
                self._message(file.message_type.add())
            elif word == "enum":
                parse_enum(cursor, file.enum_type.add())
            elif word == "extend":
                self._extend(file.extension.add)
            elif word == "service":
                parse_service(cursor, file.service.add())
            else:
                raise SyntaxFault(f"line {cursor.token.line}: {word!r} begins no statement")
        return file

    def _syntax(self) -> None:
        self._cursor.expect("=")
        syntax = self._cursor.string().decode()
        if syntax not in ("proto2", "proto3"):
            raise SyntaxFault(f"syntax {syntax!r}: there are proto2 and proto3")
        if syntax == "proto3":
            self._file.syntax = syntax
        self._cursor.expect(";")

    def _import(self) -> None:
        cursor, file = self._cursor, self._file
        if cursor.accept("public"):
            file.public_dependency.append(len(file.dependency))
        elif cursor.accept("weak"):
            file.weak_dependency.append(len(file.dependency))
        file.dependency.append(cursor.string().decode())
        cursor.expect(";")

    # --- messages --------------------------------------------------------------------------------------

    def _message(self, message: DescriptorProto) -> None:
        cursor = self._cursor
        message.name = cursor.name()
        cursor.expect("{")
        optional: list[FieldDescriptorProto] = []
        while not cursor.accept("}"):
            self._message_part(message, optional)
        # protoc puts the oneofs that it makes for proto3's `optional` behind all others.
        for field in optional:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=_synthetic_name(message, field.name))

    def _message_part(self, message: DescriptorProto, optional: list[FieldDescriptorProto]) -> None:
        cursor = self._cursor
        word = cursor.token.text
        # A type may be called as a statement is: what follows tells them apart.
        named_next = cursor.following.kind == "name"
        if cursor.accept(";"):
            return
        if word == "message" and named_next:
            cursor.next()
            self._message(message.nested_type.add())
        elif word == "enum" and named_next:
            cursor.next()
            parse_enum(cursor, message.enum_type.add())
        elif word == "oneof" and named_next:
            cursor.next()
            self._oneof(message)
        elif word == "extend" and (named_next or cursor.following.text == "."):
            cursor.next()
            self._extend(message.extension.add)
        elif word == "option":
            cursor.next()
            parse_option(cursor, message.options)
        elif word == "reserved":
            cursor.next()
            self._reserved(message)
        elif word == "extensions":
            cursor.next()
            self._extensions(message)
        elif word == "map" and cursor.following.text == "<":
            self._map(message)
        else:
            field = message.field.add()
            if self._field(field):
                optional.append(field)

    def _field(self, field: FieldDescriptorProto, *, labelled: bool = True) -> bool:
        """Whether it is an `optional` of proto3, which is a oneof of its own."""
        cursor = self._cursor
        field.label = FieldDescriptorProto.LABEL_OPTIONAL
        explicit = False
        if labelled and cursor.token.text in _LABELS:
            word = cursor.name()
            field.label = _LABELS[word]
            explicit = word == "optional" and self._file.syntax == "proto3"
        elif labelled and self._file.syntax != "proto3":
            raise cursor.fail("'optional', 'required' or 'repeated', which proto2 demands,")
        if cursor.sees("group"):
            raise SyntaxFault(f"line {cursor.token.line}: groups are not supported: use a message")
        self._type(field)
        self._field_end(field)
        if explicit:
            field.proto3_optional = True
        return explicit

    def _type(self, field: FieldDescriptorProto) -> None:
        name = self._cursor.dotted()
        if name in SCALARS:
            field.type = SCALARS[name]
        else:
            field.type_name = name

    def _field_end(self, field: FieldDescriptorProto) -> None:
        cursor = self._cursor
        field.name = cursor.name()
        cursor.expect("=")
        field.number = self._number(cursor.integer())
        for name, value in bracketed(cursor):
            if name == "default":
                field.default_value = default_text(value)
            elif name == "json_name" and isinstance(value, bytes):
                field.json_name = value.decode()
            else:
                put_option(cursor, field.options, name, value)
        cursor.expect(";")

    def _number(self, number: int) -> int:
        if not 1 <= number <= _MAX_FIELD:
            raise SyntaxFault(
                f"line {self._cursor.token.line}: a field's number is 1 to {_MAX_FIELD}, not {number}"
            )
        return number

    def _map(self, message: DescriptorProto) -> None:
        cursor = self._cursor
        cursor.next()
        cursor.expect("<")
        entry = message.nested_type.add()
        entry.options.map_entry = True
        for number, name in ((1, "key"), (2, "value")):
            part = entry.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
            self._type(part)
            cursor.expect("," if number == 1 else ">")
        field = message.field.add(label=FieldDescriptorProto.LABEL_REPEATED)
        self._field_end(field)
        entry.name = map_entry_name(field.name)
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = entry.name

    def _oneof(self, message: DescriptorProto) -> None:
        cursor = self._cursor
        index = len(message.oneof_decl)
        oneof: OneofDescriptorProto = message.oneof_decl.add(name=cursor.name())
        cursor.expect("{")
        while not cursor.accept("}"):
            if cursor.sees("option") and cursor.following.text != "=":
                cursor.next()
                parse_option(cursor, oneof.options)
            elif not cursor.accept(";"):
                field = message.field.add()
                self._field(field, labelled=False)
                field.oneof_index = index

    def _extend(self, add: Callable[[], FieldDescriptorProto]) -> None:
        cursor = self._cursor
        extended = cursor.dotted()
        cursor.expect("{")
        while not cursor.accept("}"):
            if not cursor.accept(";"):
                field = add()
                self._field(field)
                field.extendee = extended

    # --- numbers that are taken --------------------------------------------------------------------------

    def _reserved(self, message: DescriptorProto) -> None:
        cursor = self._cursor
        while True:
            if cursor.token.kind == "string":
                message.reserved_name.append(cursor.string().decode())
            else:
                first, last = parse_range(cursor, _MAX_FIELD)
                message.reserved_range.add(start=first, end=last + 1)
            if not cursor.accept(","):
                break
        cursor.expect(";")

    def _extensions(self, message: DescriptorProto) -> None:
        cursor = self._cursor
        while True:
            first, last = parse_range(cursor, _MAX_FIELD)
            message.extension_range.add(start=first, end=last + 1)
            if not cursor.accept(","):
                break
        if cursor.accept("["):  # declarations of who uses which: for people and linters
            while not cursor.accept("]"):
                if cursor.at_end:
                    raise cursor.fail("']'")
                cursor.next()
        cursor.expect(";")


def map_entry_name(field: str) -> str:
    """`my_map` becomes MyMapEntry."""
    return "".join(part[:1].upper() + part[1:] for part in field.split("_")) + "Entry"


def _synthetic_name(message: DescriptorProto, field: str) -> str:
    name = f"_{field}"
    taken = {oneof.name for oneof in message.oneof_decl} | {entry.name for entry in message.field}
    while name in taken:
        name = f"X{name}"
    return name
