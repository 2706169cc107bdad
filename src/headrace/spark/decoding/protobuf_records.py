"""Protobuf, in Python, since no release of Spark's own reader fits; only the value goes there and back.

Protobuf finds its fields by number, so every record is read with the reader's message, whatever version wrote
it. The schema that wrote it is needed only to know which message of its file the record is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from headrace.spark.decoding import protobuf_schema
from headrace.spark.decoding.arrow_functions import arrow_column
from headrace.spark.decoding.columns import DECODED, PARSED, PROBLEM, with_columns
from headrace.spark.decoding.formats import DecodingRefused, Format
from headrace.spark.decoding.protobuf_columns import message_builder
from headrace.spark.decoding.protobuf_schema import IndexPath, MessageSchema
from headrace.spark.decoding.registered import SchemaUnusable, met
from headrace.spark.decoding.registry_client import RegisteredSchema

_NOT_OURS: Final = "not in the registry's wire format: "


@dataclass(frozen=True)
class Writers:
    """Which messages a registry's schemas have, by their ids, or why one cannot be used.

    `subjects` are where they are listed, for people.
    """

    registry: str = field(repr=False)
    subjects: str
    messages: Mapping[int, Mapping[IndexPath, str] | str]
    #: Whether an id that is not listed is asked for where it is met. Only for streams, which are planned
    #: once: whoever reads a batch twice must get the same both times.
    asks: bool = False


def decode_protobuf(
    frame: DataFrame, reader: MessageSchema, value: Column, writers: Writers | None = None
) -> DataFrame:
    answer = StructType(
        [
            StructField(DECODED, protobuf_schema.columns(reader.descriptor())),
            StructField(PROBLEM, StringType()),
        ]
    )

    if writers is not None:
        writers = dataclasses.replace(writers, asks=frame.isStreaming)

    def read(values: pa.Array) -> pa.Array:
        return _decoder(reader, writers)(values)

    parsed = sf.col(PARSED)
    return with_columns(
        frame,
        value=value,
        parsed=arrow_column(read, value, answer),
        good=parsed[PROBLEM].isNull(),
        decoded=parsed[DECODED],
        reason=sf.coalesce(parsed[PROBLEM], sf.lit("the bytes are not this message")),
    )


_Key = tuple[MessageSchema, str | None, bool, frozenset[int]]
_decoders: dict[_Key, MessageDecoder] = {}


def _decoder(reader: MessageSchema, writers: Writers | None) -> Callable[[pa.Array], pa.Array]:
    """Kept for the life of the worker: what is built from a descriptor costs more than a small batch."""
    key: _Key = (reader, None, False, frozenset())
    if writers is not None:
        key = (reader, writers.registry, writers.asks, frozenset(writers.messages))
    if key not in _decoders:
        _decoders[key] = MessageDecoder(reader, writers)
    return _decoders[key].decode


class MessageDecoder:
    """Bytes to Arrow structs of (decoded, problem). Needs no Spark."""

    def __init__(self, reader: MessageSchema, writers: Writers | None) -> None:
        descriptor = reader.descriptor()
        self._name = reader.name
        self._class = GetMessageClass(descriptor)
        self._build = message_builder(descriptor)
        self._header = None if writers is None else _Header(self._name, writers)
        self._has_required = _has_required(descriptor)

    def decode(self, values: pa.Array) -> pa.Array:
        messages, problems = self._parsed(values.to_pylist())
        try:
            decoded = self._build(messages)
        except Exception:
            # A record in which a value has no place, such as a time beyond all calendars. Find out which.
            # What is raised depends on the value: of a message that has no JSON, its library decides.
            for index, message in enumerate(messages):
                messages[index], problems[index] = self._alone(message, problems[index])
            decoded = self._build(messages)
        return pa.StructArray.from_arrays([decoded, pa.array(problems, pa.string())], [DECODED, PROBLEM])

    def _parsed(self, values: list[bytes | None]) -> tuple[list[Any], list[str | None]]:
        messages: list[Any] = []
        problems: list[str | None] = []
        parse, header = self._class.FromString, self._header
        for value in values:
            message, problem = None, None
            if value is not None:
                try:
                    if header is None:
                        message = parse(value)
                    else:
                        start, problem = header.read(value)
                        message = None if problem else parse(value[start:])
                except DecodeError as error:
                    problem = f"the bytes are not a {self._name}: {error}"
                if self._has_required and message is not None and not message.IsInitialized():
                    missing = ", ".join(message.FindInitializationErrors())
                    message, problem = None, f"required field {missing} is missing"
            messages.append(message)
            problems.append(problem)
        return messages, problems

    def _alone(self, message: Any, problem: str | None) -> tuple[Any, str | None]:
        try:
            self._build([message])
        except Exception as error:
            return None, f"a field of this {self._name} has a value that no column holds: {error}"
        return message, problem


class _Header:
    """Reads a zero byte, the schema's id, and the place of the message within its file."""

    def __init__(self, name: str, writers: Writers) -> None:
        self._name = name
        self._writers = writers
        self._messages = dict(writers.messages)
        #: Headers of six bytes, as almost all are, that were found good.
        self._good: set[bytes] = set()

    def read(self, value: bytes) -> tuple[int, str | None]:
        """Where the message starts, and what is wrong."""
        if value[:6] in self._good:
            return 6, None
        if len(value) < 6:
            return 0, _NOT_OURS + "shorter than its header"
        if value[0] != 0:
            return 0, f"{_NOT_OURS}the first byte is 0x{value[0]:02X}, not 0x00"
        try:
            path, start = _index_path(value)
        except (IndexError, ValueError):
            return 0, _NOT_OURS + "the place of the message within its schema cannot be read"
        problem = self._problem(int.from_bytes(value[1:5], "big"), path)
        if problem is None and start == 6:
            self._good.add(value[:6])
        return start, problem

    def _problem(self, number: int, path: IndexPath) -> str | None:
        if number not in self._messages:
            if not self._writers.asks:
                return f"schema id {number} is not registered under {self._writers.subjects}"
            try:
                found = met(self._writers.registry, number, Format.PROTOBUF)
            except SchemaUnusable as unusable:
                return str(unusable)
            self._messages[number] = messages_of(found)
        messages = self._messages[number]
        if isinstance(messages, str):
            return messages
        name = messages.get(path)
        if name is None:
            return f"schema id {number} has no message at {list(path)}"
        return None if name == self._name else f"it is a {name}, not a {self._name}"


def messages_of(schema: RegisteredSchema) -> Mapping[IndexPath, str] | str:
    """Or why they cannot be told: whoever can write to a registry can put there what is not linked here."""
    try:
        return protobuf_schema.index_paths(protobuf_schema.linked(schema.text, schema.references))
    except DecodingRefused as refused:
        return f"schema id {schema.id} cannot be used: {refused}"


def _index_path(value: bytes) -> tuple[IndexPath, int]:
    """A count and so many numbers, each a zigzag varint; a count of zero stands for the first message."""
    count, at = _varint(value, 5)
    if not 0 <= count <= 100:
        raise ValueError(count)
    path = []
    for _ in range(count):
        index, at = _varint(value, at)
        path.append(index)
    return tuple(path) or (0,), at


def _varint(value: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte = value[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at
        shift += 7
        if shift > 35:
            raise ValueError(found)


def _has_required(message: Any, seen: frozenset[str] = frozenset()) -> bool:
    if message.full_name in seen:
        return False
    seen |= {message.full_name}
    return any(
        field.is_required or (field.message_type is not None and _has_required(field.message_type, seen))
        for field in message.fields
    )
