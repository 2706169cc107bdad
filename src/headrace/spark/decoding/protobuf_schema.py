"""Protobuf schemas: where a message's descriptor comes from, and which columns it has. Pure.

| Protobuf                                          | Spark                                         |
|---------------------------------------------------|-----------------------------------------------|
| int32, sint32, sfixed32                           | int                                           |
| uint32, fixed32, int64, sint64, sfixed64          | bigint                                        |
| uint64, fixed64                                   | decimal(20,0)                                 |
| float, double, bool, string, bytes                | float, double, boolean, string, binary        |
| enum                                              | string: the name, or the number if it has none |
| message, repeated, map                            | struct, array, map                            |
| google.protobuf.Timestamp                         | timestamp                                     |
| wrappers, such as google.protobuf.Int64Value      | the type that they wrap                       |
| google.protobuf.Struct, Value, ListValue          | string: JSON                                  |
| a message within itself                           | string: JSON                                  |

A field that knows whether it is set (optional, oneof, messages) is null where it is not. Others have their
default.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.registry.protobuf.lexer import SyntaxFault
from headrace.registry.protobuf.linking import MAIN, link, read_schema
from headrace.spark.decoding.formats import DecodingRefused

TIMESTAMP: Final = "google.protobuf.Timestamp"
WRAPPERS: Final = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_FREE_FORM: Final = frozenset(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))
_SCALARS: Final[dict[int, DataType]] = {
    FieldDescriptor.TYPE_INT32: IntegerType(),
    FieldDescriptor.TYPE_SINT32: IntegerType(),
    FieldDescriptor.TYPE_SFIXED32: IntegerType(),
    FieldDescriptor.TYPE_UINT32: LongType(),
    FieldDescriptor.TYPE_FIXED32: LongType(),
    FieldDescriptor.TYPE_INT64: LongType(),
    FieldDescriptor.TYPE_SINT64: LongType(),
    FieldDescriptor.TYPE_SFIXED64: LongType(),
    FieldDescriptor.TYPE_UINT64: DecimalType(20, 0),
    FieldDescriptor.TYPE_FIXED64: DecimalType(20, 0),
    FieldDescriptor.TYPE_FLOAT: FloatType(),
    FieldDescriptor.TYPE_DOUBLE: DoubleType(),
    FieldDescriptor.TYPE_BOOL: BooleanType(),
    FieldDescriptor.TYPE_STRING: StringType(),
    FieldDescriptor.TYPE_BYTES: BinaryType(),
    FieldDescriptor.TYPE_ENUM: StringType(),
}
#: Where a message stands in its file: the first message is (0,), the second one within it (0, 1).
IndexPath = tuple[int, ...]


@dataclass(frozen=True)
class MessageSchema:
    """A message, and its file with all that it imports, in a form that can be sent to executors."""

    files: bytes
    name: str

    def descriptor(self) -> Descriptor:
        return _pool(self.files).FindMessageTypeByName(self.name)


@functools.lru_cache(maxsize=32)
def _pool(files: bytes) -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    for file in FileDescriptorSet.FromString(files).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def given(schema: str | bytes, message: str | None) -> MessageSchema:
    """By the text of a .proto file, or a FileDescriptorSet as protoc writes one."""
    if isinstance(schema, str):
        return _message(linked(schema), message)
    try:
        files = FileDescriptorSet.FromString(schema)
        pool = _pool(schema)
    except (DecodeError, TypeError) as error:
        raise DecodingRefused(
            f"not a FileDescriptorSet: {error}. Write one with protoc --include_imports --descriptor_set_out"
        ) from None
    if message is None:
        if not files.file:
            raise DecodingRefused("the FileDescriptorSet is empty")
        return _message(pool.FindFileByName(files.file[-1].name), None)
    try:
        return MessageSchema(schema, pool.FindMessageTypeByName(message).full_name)
    except KeyError:
        raise DecodingRefused(f"the FileDescriptorSet has no message {message}") from None


def linked(text: str, references: Iterable[tuple[str, str]] = ()) -> FileDescriptor:
    """By what a registry has: text, or a descriptor in base64, and what it imports by name."""
    try:
        return link(read_schema(text, MAIN), dict(references))
    except SyntaxFault as error:
        raise DecodingRefused(f"the Protobuf schema cannot be read: {error}") from None


def first_message(file: FileDescriptor, message: str | None) -> MessageSchema:
    """As `given`, but where several messages could be meant it is the first, as serialisers assume."""
    if message is None and file.message_types_by_name:
        message = next(iter(file.message_types_by_name.values())).full_name
    return _message(file, message)


def _message(file: FileDescriptor, message: str | None) -> MessageSchema:
    names = list(index_paths(file).values())
    if message is None:
        top = [each.full_name for each in file.message_types_by_name.values()]
        if len(top) != 1:
            raise DecodingRefused(f"say which message is meant: {', '.join(top) or 'the schema has none'}")
        message = top[0]
    elif message not in names:
        message = f"{file.package}.{message}" if file.package else message
    if message not in names:
        raise DecodingRefused(f"the schema has no message {message}; it has {', '.join(names)}")
    files: dict[str, FileDescriptorProto] = {}
    _collect(file, files)
    return MessageSchema(FileDescriptorSet(file=files.values()).SerializeToString(), message)


def _collect(file: FileDescriptor, found: dict[str, FileDescriptorProto]) -> None:
    """Each file after those that it imports, as a pool wants them."""
    for each in file.dependencies:
        if each.name not in found:
            _collect(each, found)
    copied = FileDescriptorProto()
    file.CopyToProto(copied)
    found[file.name] = copied


def index_paths(file: FileDescriptor) -> dict[IndexPath, str]:
    """The full names of all messages by the places that records tell."""
    found: dict[IndexPath, str] = {}

    def add(messages: Mapping[str, Descriptor], above: IndexPath) -> None:
        for index, each in enumerate(messages.values()):
            found[(*above, index)] = each.full_name
            add(each.nested_types_by_name, (*above, index))

    add(file.message_types_by_name, ())
    return found


def is_json(field: FieldDescriptor, above: frozenset[str]) -> bool:
    """Whether a message has no columns of its own: free-form, or one of those that it stands in."""
    return field.message_type.full_name in _FREE_FORM or field.message_type.full_name in above


def columns(message: Descriptor, above: frozenset[str] = frozenset()) -> StructType:
    within = above | {message.full_name}
    return StructType([StructField(field.name, _type(field, within)) for field in message.fields])


def _type(field: FieldDescriptor, above: frozenset[str]) -> DataType:
    if is_map(field):
        key, value = field.message_type.fields
        return MapType(_type(key, above), _type(value, above))
    if field.is_repeated:
        return ArrayType(element_type(field, above))
    return element_type(field, above)


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def element_type(field: FieldDescriptor, above: frozenset[str]) -> DataType:
    """The type of a field, or of each element if it is repeated."""
    if field.message_type is None:
        return _SCALARS[field.type]
    name = field.message_type.full_name
    if name == TIMESTAMP:
        return TimestampType()
    if name in WRAPPERS:
        return _SCALARS[field.message_type.fields_by_name["value"].type]
    if is_json(field, above):
        return StringType()
    return columns(field.message_type, above)
