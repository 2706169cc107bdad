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
#: Further ones. Where they count as names, the order of an answer is compared as a field of its own.
_NAMES_IN_ORDER = ("group_id", "transactional_id", "user", *_NAMES)
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
    return dict(_walk(message, "", "", symbols, _NAMES))


def flatten_in_order(message: Structure, symbols: Symbols) -> Flat:
    """Likewise, with a field `order` for each outermost array."""
    return dict(_walk(message, "", "", symbols, _NAMES_IN_ORDER))


def _walk(
    value: object, path: str, field: str, symbols: Symbols, names: tuple[str, ...]
) -> Iterator[tuple[str, Value]]:
    if isinstance(value, Structure):
        for name in value.__slots__:
            if name not in _LEFT_OUT:
                inner = f"{path}.{name}" if path else name
                yield from _walk(getattr(value, name), inner, name, symbols, names)
    elif isinstance(value, list):
        yield f"{path}.#", len(value)
        named = [_name(element, position, symbols, names) for position, element in enumerate(value)]
        if names is _NAMES_IN_ORDER and "[" not in path:
            yield f"{path}.order", " ".join(named)
        for name, element in zip(named, value, strict=True):
            yield from _walk(element, f"{path}[{name}]", field, symbols, names)
    elif field == "records" and isinstance(value, bytes | bytearray | memoryview):
        yield from _batches(bytes(value), path)
    elif isinstance(value, bytes | bytearray | memoryview):
        yield path, bytes(value).hex()
    else:
        assert value is None or isinstance(value, str | int | float | UUID), value
        yield path, symbols.of(field, value)


def _name(element: object, position: int, symbols: Symbols, names: tuple[str, ...]) -> str:
    if isinstance(element, Structure):
        if set(_RESOURCE) <= set(element.__slots__):
            return "/".join(str(getattr(element, name)) for name in _RESOURCE)
        if "entity" in element.__slots__:
            entity = getattr(element, "entity")  # noqa: B009 - only some structures have it
            return "/".join(f"{each.entity_type}={each.entity_name}" for each in entity)
        for name in names:
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
