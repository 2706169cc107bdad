"""Answers as plain data: flat paths to comparable values, without what must differ between two brokers."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from headrace.protocol.batch import iterate
from headrace.protocol.message import Structure
from headrace.protocol.records import decode_records

Value = str | int | float | bool | None
Flat = dict[str, Value]

#: Times and texts: each broker has its own, and no client may depend on them.
_LEFT_OUT = frozenset({"throttle_time_ms", "error_message", "documentation", "batch_index_error_message"})
#: Numbers of which only the sign is the same: sizes of disks, clocks, sessions.
_BY_SIGN = frozenset(
    {"session_id", "log_append_time_ms", "total_bytes", "usable_bytes", "transaction_start_time_ms"}
)
#: Fields that name an element of an array. The order of such an array has no meaning.
_NAMES = (
    "api_key",
    "name",
    "topic",
    "topic_name",
    "topic_id",
    "feature",
    "partition_index",
    "partition",
    "partition_id",
    "index",
    "broker_id",
    "node_id",
    "key",
    "log_dir",
    "producer_id",
)
_RESOURCE = ("resource_type", "resource_name")


class Symbols:
    """What has another value at each broker but the same meaning, under one name."""

    def __init__(self) -> None:
        self._names: dict[object, str] = {}
        self._producers: dict[int, str] = {}

    def define(self, actual: object, name: str) -> None:
        self._names[actual] = f"<{name}>"

    def define_producer(self, actual: int, name: str) -> None:
        self._producers[actual] = f"<{name}>"

    def of(self, field: str, value: Value | UUID) -> Value:
        if field == "producer_id" and isinstance(value, int) and value >= 0:
            return self._producers.setdefault(value, f"<producer {len(self._producers)}>")
        if field in _BY_SIGN and isinstance(value, int):
            return f"<{field}>" if value > 0 else value
        if field == "port" or isinstance(value, UUID | str):
            known = self._names.get(value)
            if known is not None:
                return known
        return str(value) if isinstance(value, UUID) else value


def flatten(message: Structure, symbols: Symbols) -> Flat:
    return dict(_walk(message, "", "", symbols))


def _walk(value: object, path: str, field: str, symbols: Symbols) -> Iterator[tuple[str, Value]]:
    if isinstance(value, Structure):
        for name in value.__slots__:
            if name not in _LEFT_OUT:
                yield from _walk(getattr(value, name), f"{path}.{name}" if path else name, name, symbols)
    elif isinstance(value, list):
        yield f"{path}.#", len(value)
        for position, element in enumerate(value):
            yield from _walk(element, f"{path}[{_name(element, position, symbols)}]", field, symbols)
    elif field == "records" and isinstance(value, bytes | bytearray | memoryview):
        yield from _batches(bytes(value), path)
    elif isinstance(value, bytes | bytearray | memoryview):
        yield path, bytes(value).hex()
    else:
        assert value is None or isinstance(value, str | int | float | UUID), value
        yield path, symbols.of(field, value)


def _name(element: object, position: int, symbols: Symbols) -> str:
    if isinstance(element, Structure):
        if set(_RESOURCE) <= set(element.__slots__):
            return "/".join(str(getattr(element, name)) for name in _RESOURCE)
        for name in _NAMES:
            if name in element.__slots__:
                found = getattr(element, name)
                if found not in ("", None, UUID(int=0)):
                    return str(symbols.of(name, found))
    return str(position)


def _batches(data: bytes, path: str) -> Iterator[tuple[str, Value]]:
    for number, (at, header) in enumerate(iterate(data)):
        here = f"{path}.batch[{number}]"
        for name in header._fields:
            if name not in ("crc", "batch_length", "producer_id"):
                yield f"{here}.{name}", getattr(header, name)
        for record in decode_records(data, at):
            yield f"{here}.record[{record.offset}]", repr(record)
