"""What stands inside the records that brokers write for themselves: metadata and control records."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from headrace.controller.topic_names import METADATA_TOPIC
from headrace.core.errors import HeadraceError
from headrace.protocol import stored
from headrace.protocol.control_records import ControlType, control_type, end_marker_epoch
from headrace.protocol.message import Message, Structure
from headrace.protocol.primitives import Reader
from headrace.protocol.records import Record


def is_metadata(path: Path) -> bool:
    return path.resolve().parent.name.startswith(METADATA_TOPIC + "-")


def control_fields(record: Record) -> dict[str, Any]:
    try:
        kind = control_type(record)
        if kind in (ControlType.ABORT, ControlType.COMMIT):
            return {"control": ControlType(kind).name.lower(), "coordinator_epoch": end_marker_epoch(record)}
    except HeadraceError as error:
        return {"control": "broken", "error": str(error)}
    named = kind in ControlType.__members__.values()
    return {"control": ControlType(kind).name.lower().replace("_", "-") if named else str(kind)}


def metadata_fields(record: Record) -> dict[str, Any]:
    """The record of `__cluster_metadata`: frame version, kind and version as varints, then the message."""
    try:
        reader = Reader(memoryview(record.value or b""))
        reader.unsigned_varint()
        kind, version = reader.unsigned_varint(), reader.unsigned_varint()
        known = _metadata_records().get(kind)
        if known is None:
            return {"type": f"kind {kind}", "version": version}
        return {"type": known.__name__, "version": version, "data": plain(known.decode(reader, version))}
    except HeadraceError as error:
        return {"type": "broken", "error": str(error)}


@cache
def _metadata_records() -> dict[int, type[Message]]:
    """Every stored metadata record by its kind. Keys and values of the groups have other names."""
    found: dict[int, type[Message]] = {}
    for module in pkgutil.iter_modules(stored.__path__):
        if not module.name.endswith("_record"):
            continue
        loaded = import_module(f"{stored.__name__}.{module.name}")
        name = "".join(part.capitalize() for part in module.name.split("_"))
        for candidate in vars(loaded).values():
            if (
                isinstance(candidate, type)
                and issubclass(candidate, Message)
                and candidate.__name__.lower() == (name.lower())
            ):
                found[candidate.API_KEY] = candidate
    return found


def plain(value: Any) -> Any:
    """A message as dictionaries and lists."""
    if isinstance(value, Structure):
        return {name: plain(getattr(value, name)) for name in value.__slots__}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    if isinstance(value, int | float | bool | str) or value is None:
        return value
    return str(value)
