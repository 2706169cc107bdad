"""From what a client sent to a descriptor with every name resolved, or to a reason why that cannot be."""

from __future__ import annotations

import base64
import binascii
import importlib
import re
from collections.abc import Mapping
from typing import Final

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from headrace.registry.protobuf.lexer import SyntaxFault
from headrace.registry.protobuf.parser import parse_file

MAIN: Final = "default"
"""The name of a schema that came as text, as Confluent's clients call it."""
_BASE64: Final = re.compile(r"[A-Za-z0-9+/=\s]+")
_OURS: Final = {
    "confluent/meta.proto": """
        syntax = "proto3";
        package confluent;
        import "google/protobuf/descriptor.proto";
        message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
        extend google.protobuf.FileOptions { Meta file_meta = 1088; }
        extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
        extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
        extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
        extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
    """,
    "confluent/type/decimal.proto": """
        syntax = "proto3";
        package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
    """,
}
"""What Confluent's clients import without a reference, because its registry brings it along."""


def read_schema(text: str, name: str) -> FileDescriptorProto:
    """A .proto file, or a FileDescriptorProto in base64, which Confluent's Python and .NET clients send."""
    if _BASE64.fullmatch(text):
        try:
            file = FileDescriptorProto.FromString(base64.b64decode(text, validate=False))
        except (binascii.Error, DecodeError):
            raise SyntaxFault("neither a .proto file nor a descriptor in base64") from None
        file.ClearField("source_code_info")
        # Options of people's own are unknown fields here. They are passed over, as they are in a .proto file.
        file.DiscardUnknownFields()
        if not file.name:
            file.name = name
        return file
    return parse_file(text, name)


def link(file: FileDescriptorProto, references: Mapping[str, str]) -> FileDescriptor:
    """`references` are the texts of schemas by the name under which they are imported."""
    pool = DescriptorPool()
    added: dict[str, FileDescriptor] = {}

    def add(current: FileDescriptorProto, importers: tuple[str, ...]) -> FileDescriptor:
        if current.name in importers:
            raise SyntaxFault(f"{current.name} imports itself, by way of {' and '.join(importers)}")
        for name in current.dependency:
            if name not in added:
                imported = _imported(name, references)
                imported.name = name
                added[name] = add(imported, (*importers, current.name))
        try:
            return pool.AddSerializedFile(current.SerializeToString())
        except TypeError as error:
            raise SyntaxFault(_without_prefix(str(error))) from None

    if file.name in references or not file.name:
        file.name = f"{MAIN}-schema"
    return add(file, ())


def _imported(name: str, references: Mapping[str, str]) -> FileDescriptorProto:
    if name in references:
        return read_schema(references[name], name)
    if name in _OURS:
        return parse_file(_OURS[name], name)
    if name.startswith(("google/protobuf/", "google/type/")) and name.endswith(".proto"):
        try:
            module = importlib.import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        except ModuleNotFoundError:
            raise SyntaxFault(
                f"{name} is not known here: give it as a reference, or install googleapis-common-protos"
            ) from None
        file = FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        return file
    raise SyntaxFault(f'"{name}" is imported, and none of the references has that name')


def _without_prefix(text: str) -> str:
    return text.removeprefix("Couldn't build proto file into descriptor pool: ")


def resolved(descriptor: FileDescriptor) -> FileDescriptorProto:
    """With full names, as the pool has it."""
    file = descriptor_pb2.FileDescriptorProto()
    descriptor.CopyToProto(file)
    return file
