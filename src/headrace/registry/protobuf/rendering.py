"""A FileDescriptorProto as a .proto file. What is parsed from it again is the same descriptor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.message import Message

from headrace.registry.protobuf.parser import SCALARS

_SCALAR_NAMES: Final = {number: name for name, number in SCALARS.items()}
_LABELS: Final = {
    FieldDescriptorProto.LABEL_REQUIRED: "required ",
    FieldDescriptorProto.LABEL_REPEATED: "repeated ",
}
_MAX_FIELD_END: Final = 536_870_912
_MAX_ENUM: Final = 2_147_483_647
_INDENT: Final = "  "


def render(file: FileDescriptorProto) -> str:
    return "".join(f"{line}\n" for line in _Renderer(file).lines())


class _Renderer:
    def __init__(self, file: FileDescriptorProto) -> None:
        self._file = file
        self._proto3 = file.syntax == "proto3"

    def lines(self) -> Iterator[str]:
        file = self._file
        yield f'syntax = "{"proto3" if self._proto3 else "proto2"}";'
        if file.package:
            yield f"package {file.package};"
        if file.dependency:
            yield ""
        for at, name in enumerate(file.dependency):
            kind = (
                "public " if at in file.public_dependency else "weak " if at in file.weak_dependency else ""
            )
            yield f"import {kind}{quoted(name)};"
        options = [f"option {option};" for option in _options(file.options)]
        if options:
            yield ""
        yield from options
        for message in file.message_type:
            yield ""
            yield from self._message(message, f".{file.package}" if file.package else "")
        for enum in file.enum_type:
            yield ""
            yield from _enum(enum)
        yield from self._extensions(file.extension)
        for service in file.service:
            yield ""
            yield from _service(service)

    def _message(self, message: DescriptorProto, scope: str) -> Iterator[str]:
        own = f"{scope}.{message.name}"
        maps = {entry.name: entry for entry in message.nested_type if entry.options.map_entry}
        yield f"message {message.name} {{"
        for option in _options(message.options):
            yield f"{_INDENT}option {option};"
        yield from _indented(_reserved(message))
        shown: set[int] = set()
        for field in message.field:
            if not field.HasField("oneof_index") or field.proto3_optional:
                yield _INDENT + self._field(field, maps, own)
            elif field.oneof_index not in shown:
                shown.add(field.oneof_index)
                yield from _indented(self._oneof(message, field.oneof_index, maps, own))
        for nested in message.nested_type:
            if nested.name not in maps:
                yield from _indented(self._message(nested, own))
        for enum in message.enum_type:
            yield from _indented(_enum(enum))
        yield from _indented(self._extensions(message.extension))
        yield "}"

    def _oneof(
        self, message: DescriptorProto, index: int, maps: dict[str, DescriptorProto], scope: str
    ) -> Iterator[str]:
        oneof = message.oneof_decl[index]
        yield f"oneof {oneof.name} {{"
        for option in _options(oneof.options):
            yield f"{_INDENT}option {option};"
        for field in message.field:
            if field.HasField("oneof_index") and field.oneof_index == index and not field.proto3_optional:
                yield _INDENT + self._field(field, maps, scope, labelled=False)
        yield "}"

    def _field(
        self,
        field: FieldDescriptorProto,
        maps: dict[str, DescriptorProto],
        scope: str,
        *,
        labelled: bool = True,
    ) -> str:
        entry = maps.get(field.type_name.removeprefix(f"{scope}."))
        if entry is not None:
            kind = f"map<{_type(entry.field[0])}, {_type(entry.field[1])}>"
        else:
            label = _LABELS.get(
                field.label, "" if self._proto3 and not field.proto3_optional else "optional "
            )
            kind = f"{label if labelled else ''}{_type(field)}"
        options = list(_options(field.options))
        if field.HasField("default_value"):
            options.insert(0, f"default = {_default(field)}")
        if field.json_name and field.json_name != json_name(field.name):
            options.append(f"json_name = {quoted(field.json_name)}")
        brackets = f" [{', '.join(options)}]" if options else ""
        return f"{kind} {field.name} = {field.number}{brackets};"

    def _extensions(self, fields: Sequence[FieldDescriptorProto]) -> Iterator[str]:
        for extended in dict.fromkeys(field.extendee for field in fields):
            yield f"extend {extended} {{"
            for field in fields:
                if field.extendee == extended:
                    yield _INDENT + self._field(field, {}, "")
            yield "}"


def _reserved(message: DescriptorProto) -> Iterator[str]:
    ranges = [_range(entry.start, entry.end - 1, _MAX_FIELD_END - 1) for entry in message.reserved_range]
    if ranges:
        yield f"reserved {', '.join(ranges)};"
    if message.reserved_name:
        yield f"reserved {', '.join(quoted(name) for name in message.reserved_name)};"
    for entry in message.extension_range:
        yield f"extensions {_range(entry.start, entry.end - 1, _MAX_FIELD_END - 1)};"


def _enum(enum: EnumDescriptorProto) -> Iterator[str]:
    yield f"enum {enum.name} {{"
    for option in _options(enum.options):
        yield f"{_INDENT}option {option};"
    ranges = [_range(entry.start, entry.end, _MAX_ENUM) for entry in enum.reserved_range]
    if ranges:
        yield f"{_INDENT}reserved {', '.join(ranges)};"
    if enum.reserved_name:
        yield f"{_INDENT}reserved {', '.join(quoted(name) for name in enum.reserved_name)};"
    for value in enum.value:
        options = ", ".join(_options(value.options))
        yield f"{_INDENT}{value.name} = {value.number}{f' [{options}]' if options else ''};"
    yield "}"


def _service(service: ServiceDescriptorProto) -> Iterator[str]:
    yield f"service {service.name} {{"
    for option in _options(service.options):
        yield f"{_INDENT}option {option};"
    for method in service.method:
        sent = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
        returned = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
        head = f"{_INDENT}rpc {method.name} ({sent}) returns ({returned})"
        options = [f"option {option};" for option in _options(method.options)]
        yield f"{head} {{ {' '.join(options)} }}" if options else f"{head};"
    yield "}"


def _range(first: int, last: int, largest: int) -> str:
    if first == last:
        return str(first)
    return f"{first} to {'max' if last == largest else last}"


def _options(options: Message) -> Iterator[str]:
    for field, value in options.ListFields():
        if field.is_extension or field.message_type is not None or field.name == "map_entry":
            continue
        for item in value if field.is_repeated else (value,):
            yield f"{field.name} = {_option_value(field, item)}"


def _option_value(field: FieldDescriptor, value: object) -> str:
    if field.enum_type is not None and isinstance(value, int):
        return str(field.enum_type.values_by_number[value].name)
    if isinstance(value, bool):
        return "true" if value else "false"
    return quoted(value) if isinstance(value, str) else str(value)


def _default(field: FieldDescriptorProto) -> str:
    if field.type == FieldDescriptorProto.TYPE_BYTES:
        return '"' + str(field.default_value).replace('"', '\\"') + '"'  # is escaped already
    if field.type == FieldDescriptorProto.TYPE_STRING:
        return quoted(field.default_value)
    return str(field.default_value)


def _type(field: FieldDescriptorProto) -> str:
    return str(field.type_name) or _SCALAR_NAMES[field.type]


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def json_name(name: str) -> str:
    """What a field is called in JSON unless the file says otherwise."""
    first, *others = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield _INDENT + line if line else line
