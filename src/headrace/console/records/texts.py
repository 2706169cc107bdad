"""Bytes of strangers as text that can be shown: never markup, never whole where they are long."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

from headrace.protocol.records import Record

IN_A_LIST: Final = 1200
ALONE: Final = 64 * 1024
HEADERS: Final = 20
DEEPEST: Final = 64
"""Of JSON that is taken apart. What others nest deeper stays text: their parsers and ours have a stack."""
_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
HEADER_BYTES: Final = 5
"""That a registry's serialiser writes before a record: a zero, and the id of the schema."""


class Text(NamedTuple):
    kind: str
    """null, empty, json, text or bytes."""
    text: str
    whole_bytes: int
    shown_bytes: int
    schema_id: int | None = None
    """Where the bytes begin as a registry's serialiser writes them."""

    @property
    def is_cut(self) -> bool:
        return self.shown_bytes < self.whole_bytes


class SchemaUsed(NamedTuple):
    """Which schema a record names. Where it was not decoded by it, why."""

    id: int
    type: str
    subject: str
    version: int
    problem: str


class Decoding(Protocol):
    def text(self, data: bytes | None, most: int, *, is_key: bool) -> tuple[Text, SchemaUsed | None]:
        """None where the bytes name no schema."""


class Header(NamedTuple):
    name: str
    value: Text


class Row(NamedTuple):
    partition: int
    offset: int
    timestamp_ms: int
    key: Text
    value: Text
    headers: Sequence[Header]
    more_headers: int = 0
    key_schema: SchemaUsed | None = None
    """None where it names none, or no registry is there to be asked."""
    value_schema: SchemaUsed | None = None


def row(partition: int, record: Record, most: int = IN_A_LIST, decoding: Decoding | None = None) -> Row:
    of_key = min(most, 4 * IN_A_LIST)
    key, key_schema = text_of(record.key, of_key), None
    value, value_schema = text_of(record.value, most), None
    if decoding is not None:
        key, key_schema = decoding.text(record.key, of_key, is_key=True)
        value, value_schema = decoding.text(record.value, most, is_key=False)
    return Row(
        partition,
        record.offset,
        record.timestamp,
        key,
        value,
        [Header(name[:IN_A_LIST], text_of(each, IN_A_LIST)) for name, each in record.headers[:HEADERS]],
        max(0, len(record.headers) - HEADERS),
        key_schema,
        value_schema,
    )


def text_of(data: bytes | None, most: int) -> Text:
    if data is None:
        return Text("null", "", 0, 0)
    if not data:
        return Text("empty", "", 0, 0)
    shown = bytes(data[:most])
    schema_id = schema_id_of(shown)
    try:
        decoded = shown.decode()
    except UnicodeDecodeError as error:
        if len(shown) < len(data) and error.start >= len(shown) - 4:
            # The cut went through a character.
            shown = shown[: error.start]
            decoded = shown.decode()
        else:
            return Text("bytes", escaped(shown), len(data), len(shown), schema_id)
    if schema_id is not None:
        return Text("bytes", escaped(shown), len(data), len(shown), schema_id)
    kind = "json" if decoded.lstrip()[:1] in ("{", "[") else "text"
    return Text(kind, decoded, len(data), len(shown))


def escaped(data: bytes) -> str:
    """What is UTF-8 stays, what is not becomes \\xNN."""
    return data.decode("utf-8", "backslashreplace").replace("\x00", "\\x00")


def schema_id_of(data: bytes | None) -> int | None:
    if data is None or len(data) <= HEADER_BYTES or data[0]:
        return None
    found = int.from_bytes(data[1:HEADER_BYTES], "big")
    return found if 0 < found < 2**24 else None


def pretty(text: Text) -> str:
    """Whole JSON with a line for each member; everything else as it is."""
    if text.kind != "json" or text.is_cut:
        return text.text
    return text.text if parsed_json(text.text) is None else _laid_out(text.text)


def _laid_out(text: str) -> str:
    """Of JSON. Nothing but space is changed: a member that is there twice is shown twice, and numbers have
    the digits that they were written with."""
    parts: list[str] = []
    depth = 0
    for token in _TOKENS.findall(text):
        if token in ("}", "]"):
            depth -= 1
            if parts[-1].strip() in ("{", "["):
                parts[-1] = parts[-1].strip() + token
            else:
                parts += (_line(depth), token)
        elif token in ("{", "["):
            depth += 1
            parts.append(token + _line(depth))
        elif token == ",":
            parts.append(token + _line(depth))
        else:
            parts.append(": " if token == ":" else token)
    return "".join(parts)


def _line(depth: int) -> str:
    return "\n" + "  " * depth


class NotTakenApart(Exception):
    """It is JSON, as far as anybody has looked, and is nested too deeply or has a number of thousands of
    digits."""


def parsed_json(text: str) -> Any:
    """None where it is no JSON, or is not taken apart."""
    try:
        return json_in(text)
    except NotTakenApart:
        return None


def json_in(text: str) -> Any:
    """None where it is no JSON. Raises NotTakenApart."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return None
    except (ValueError, RecursionError):
        raise NotTakenApart from None
    if not _is_shallow(value, text):
        raise NotTakenApart
    return value


def _is_shallow(value: Any, text: str) -> bool:
    if text.count("[") + text.count("{") <= DEEPEST:
        return True
    level = [value]
    for _ in range(DEEPEST):
        level = [
            child
            for each in level
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return True
    return not any(isinstance(each, dict | list) for each in level)
