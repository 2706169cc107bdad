"""Parsed messages as Arrow columns, field by field: one loop for each field is many times faster than a
dictionary for each message.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from headrace.spark.decoding import protobuf_schema

_UNSIGNED: Final = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)
_TYPES: Final[dict[int, pa.DataType]] = {
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_UINT32: pa.int64(),
    FieldDescriptor.TYPE_FIXED32: pa.int64(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.TYPE_FIXED64: pa.decimal128(20, 0),
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_STRING: pa.string(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
}

#: Values, which may be None, to an array.
Builder = Callable[[Sequence[Any]], pa.Array]


def message_builder(message: Descriptor, above: frozenset[str] = frozenset()) -> Builder:
    """Messages to an array of structs. Made once, used for every batch."""
    within = above | {message.full_name}
    names = [field.name for field in message.fields]
    fields = [(_reader(field), _field_builder(field, within)) for field in message.fields]
    blank = _new(message)

    def build(messages: Sequence[Any]) -> pa.Array:
        absent = [each is None for each in messages]
        if any(absent):
            # An empty message stands in, and the mask hides it: the loops below need not ask each time.
            messages = [blank if each is None else each for each in messages]
        arrays = [builder(read(messages)) for read, builder in fields]
        if not arrays:
            return pa.array([None if gone else {} for gone in absent], pa.struct([]))
        return pa.StructArray.from_arrays(arrays, names, mask=pa.array(absent, pa.bool_()))

    return build


def _new(message: Descriptor) -> Any:
    return GetMessageClass(message)()


def _reader(field: FieldDescriptor) -> Callable[[Sequence[Any]], list[Any]]:
    """One field of all messages."""
    name, get = field.name, operator.attrgetter(field.name)
    if field.is_repeated or not field.has_presence:
        return lambda messages: list(map(get, messages))
    return lambda messages: [get(each) if each.HasField(name) else None for each in messages]


def _field_builder(field: FieldDescriptor, above: frozenset[str]) -> Builder:
    if protobuf_schema.is_map(field):
        key, value = field.message_type.fields
        return _map_builder(_element_builder(key, above), _element_builder(value, above))
    if field.is_repeated:
        return _list_builder(_element_builder(field, above))
    return _element_builder(field, above)


def _list_builder(elements: Builder) -> Builder:
    def build(lists: Sequence[Any]) -> pa.Array:
        return pa.ListArray.from_arrays(_offsets(lists), elements(list(itertools.chain.from_iterable(lists))))

    return build


def _map_builder(keys: Builder, values: Builder) -> Builder:
    def build(maps: Sequence[Any]) -> pa.Array:
        # The order of a map's entries means nothing, but keys and values must be read in the same one.
        pairs = [pair for each in maps for pair in each.items()]
        return pa.MapArray.from_arrays(
            _offsets(maps), keys([key for key, _ in pairs]), values([value for _, value in pairs])
        )

    return build


def _offsets(collections: Sequence[Any]) -> pa.Array:
    return pa.array(itertools.accumulate(map(len, collections), initial=0), pa.int32())


def _element_builder(field: FieldDescriptor, above: frozenset[str]) -> Builder:
    message = field.message_type
    if message is not None:
        if message.full_name == protobuf_schema.TIMESTAMP:
            return _timestamps
        if message.full_name in protobuf_schema.WRAPPERS:
            inner = _element_builder(message.fields_by_name["value"], above)
            return lambda values: inner([None if each is None else each.value for each in values])
        if protobuf_schema.is_json(field, above):
            return _json_texts
        return message_builder(message, above)
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda values: pa.array(
            [None if each is None else names.get(each) or str(each) for each in values], pa.string()
        )
    type_ = _TYPES[field.type]
    if field.type in _UNSIGNED:
        return lambda values: pa.array([None if each is None else Decimal(each) for each in values], type_)
    return lambda values: pa.array(values, type_)


def _timestamps(values: Sequence[Any]) -> pa.Array:
    micros = [None if each is None else each.seconds * 1_000_000 + each.nanos // 1_000 for each in values]
    return pa.array(micros, pa.timestamp("us", "UTC"))


def _json_texts(values: Sequence[Any]) -> pa.Array:
    texts = [
        None
        if each is None
        else json_format.MessageToJson(each, indent=None, preserving_proto_field_name=True)
        for each in values
    ]
    return pa.array(texts, pa.string())
