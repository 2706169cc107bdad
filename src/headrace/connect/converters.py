"""Between a connector's values and the bytes of a topic. Without a converter, bytes and texts go as they are.

The names are Kafka Connect's, with or without the package before them, and so is the envelope of JSON with
`schemas.enable` (its default): {"schema": {...}, "payload": ...}.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from headrace.connect.settings import BadSetting
from headrace.core.errors import HeadraceError

_NAMES: Final = ("JsonConverter", "StringConverter", "ByteArrayConverter")


class Unconvertible(HeadraceError):
    """A value that is not of the form that the converter makes or reads."""


class Converter(NamedTuple):
    name: str = ""
    """The last part of the class, or empty."""
    with_schema: bool = False

    def to_bytes(self, value: Any) -> bytes | None:
        if value is None:
            return None
        if self.name == "JsonConverter":
            document = {"schema": _schema(value), "payload": value} if self.with_schema else value
            return _json(document)
        if self.name == "StringConverter":
            return value if isinstance(value, bytes) else str(value).encode()
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        if self.name == "ByteArrayConverter":
            raise Unconvertible(f"ByteArrayConverter takes bytes, not {type(value).__name__}")
        return value.encode() if isinstance(value, str) else _json(value)

    def from_bytes(self, data: bytes | None) -> Any:
        """Raises Unconvertible."""
        if data is None or self.name in ("", "ByteArrayConverter"):
            return data
        try:
            text = data.decode()
            if self.name == "StringConverter":
                return text
            document = json.loads(text)
        except ValueError as error:
            raise Unconvertible(f"{self.name}: {error}") from None
        if not self.with_schema:
            return document
        if not isinstance(document, dict) or set(document) != {"schema", "payload"}:
            raise Unconvertible(
                'JsonConverter with schemas.enable reads {"schema": ..., "payload": ...} and nothing else; '
                "for plain JSON set schemas.enable=false"
            )
        return document["payload"]


def converter_of(given: Mapping[str, str], which: str) -> Converter:
    """`which` is key.converter or value.converter. Raises BadSetting."""
    named = given.get(which, "").strip()
    if not named:
        return Converter()
    name = named.rpartition(".")[2]
    if name not in _NAMES:
        raise BadSetting(f"{which} is one of {', '.join(_NAMES)}, not {named}")
    enabled = given.get(f"{which}.schemas.enable", "true").strip().lower() != "false"
    return Converter(name, name == "JsonConverter" and enabled)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_plain).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode()
    return str(value)


def _schema(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        fields = [
            {**(_schema(each) or {"type": "string"}), "optional": True, "field": str(name)}
            for name, each in value.items()
        ]
        return {"type": "struct", "fields": fields, "optional": False}
    if isinstance(value, (list, tuple)):
        items = next((_schema(each) for each in value if each is not None), None) or {"type": "string"}
        return {"type": "array", "items": {**items, "optional": True}, "optional": False}
    for kind, name in ((bool, "boolean"), (int, "int64"), (float, "double"), (bytes, "bytes")):
        if isinstance(value, kind):
            return {"type": name, "optional": False}
    return {"type": "string", "optional": False}
