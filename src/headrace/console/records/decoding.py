"""Keys and values by the schemas that a registry has: what a page shows in place of bytes, by which schema,
and why not where that cannot be."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

from headrace.console.records import avro_schemas, avro_values
from headrace.console.records.avro_schemas import Unreadable
from headrace.console.records.protobuf_values import Messages
from headrace.console.records.texts import (
    ALONE,
    DEEPEST,
    HEADER_BYTES,
    SchemaUsed,
    Text,
    parsed_json,
    schema_id_of,
    text_of,
)
from headrace.console.services.registry import RegistrySeen, Version

MOST_BYTES: Final = 32 * 1024
"""Of a value in a list."""
MOST_BYTES_ALONE: Final = 256 * 1024
SECONDS: Final = 0.5
"""Of one page for all of its records: what comes later stays as it is."""
LONGEST_SCHEMA: Final = 512 * 1024
"""With all that it refers to."""
MOST_REFERENCES: Final = 200
MOST_KEPT: Final = 200
_TYPES: Final = {"AVRO": "Avro", "JSON": "JSON Schema", "PROTOBUF": "Protobuf"}

Read = Callable[[bytes], Any]


class Decoder:
    """For one page and one viewer."""

    def __init__(
        self, topic: str, seen: RegistrySeen | None, mine: RegistrySeen | None, unknown: str = ""
    ) -> None:
        """`mine`: what this viewer may see of `seen`. Without it nothing is decoded, and `unknown` is why."""
        self._topic = topic
        self._seen = seen
        self._mine = mine
        self._unknown = unknown
        self._spent = 0.0

    def text(self, data: bytes | None, most: int, *, is_key: bool = False) -> tuple[Text, SchemaUsed | None]:
        """As `text_of`, or what the bytes say by the schema that they name."""
        plain = text_of(data, most)
        number = schema_id_of(data)
        if data is None or number is None:
            return plain, None
        used, version = self._used(number, is_key=is_key)
        if version is None or used.problem:
            return plain, used
        began = time.monotonic()
        try:
            return self._decoded(version, bytes(data), most), used
        except Unreadable as error:
            return plain, used._replace(problem=str(error))
        finally:
            self._spent += time.monotonic() - began

    def _used(self, number: int, *, is_key: bool) -> tuple[SchemaUsed, Version | None]:
        nothing = SchemaUsed(number, "", "", 0, self._unknown)
        if self._seen is None or self._mine is None:
            return nothing, None
        if number not in self._seen.by_id:
            return nothing._replace(problem="the registry has no such schema"), None
        mine = self._mine.by_id.get(number)
        if not mine:
            return nothing._replace(problem="it belongs to subjects that you may not read"), None
        expected = f"{self._topic}-{'key' if is_key else 'value'}"
        version = next((each for each in mine if each.subject == expected), mine[0])
        kind = _TYPES.get(version.type, version.type)
        return SchemaUsed(number, kind, version.subject, version.number, ""), version

    def _decoded(self, version: Version, data: bytes, most: int) -> Text:
        limit = MOST_BYTES_ALONE if most >= ALONE else MOST_BYTES
        if len(data) > limit:
            where = "" if most >= ALONE else " in a list"
            raise Unreadable(f"it has more than {limit // 1024} KB, which are not decoded{where}")
        if self._spent > SECONDS:
            raise Unreadable("the records before it took too long; by itself it is decoded")
        assert self._mine is not None, "a version was found in it"
        read = _reader(version, _references(self._mine, version))
        body = data[HEADER_BYTES:]
        if version.type == "JSON":
            return _json(body, most)
        try:
            written = json.dumps(read(body), ensure_ascii=False)
        except (RecursionError, ValueError) as error:
            raise Unreadable(f"it cannot be written as JSON: {error}") from None
        return _cut(written, most)


def _json(body: bytes, most: int) -> Text:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise Unreadable("its bytes are not UTF-8, and so not JSON") from None
    if text.lstrip()[:1] in ("{", "[") and parsed_json(text) is None:
        raise Unreadable(f"it is not JSON, or nested more than {DEEPEST} levels deep")
    return _cut(text, most)


def _cut(written: str, most: int) -> Text:
    data = written.encode("utf-8", "backslashreplace")
    found = text_of(data, most)
    return Text("json", found.text if found.kind != "bytes" else written[:most], len(data), found.shown_bytes)


def _references(seen: RegistrySeen, version: Version) -> dict[str, str]:
    """The texts of all that it refers to, by name, each after what it needs itself. Raises Unreadable."""
    found: dict[str, str] = {}
    length = len(version.text)

    def visit(current: Version, above: tuple[tuple[str, int], ...]) -> None:
        nonlocal length
        for reference in current.references:
            place = reference.subject, reference.version
            if reference.name in found:
                continue
            if place in above or len(above) > DEEPEST or len(found) >= MOST_REFERENCES:
                raise Unreadable("its schema refers to itself, or to very many others")
            target = seen.version(*place)
            if target is None:
                raise Unreadable(
                    f"its schema refers to {reference.subject} version {reference.version}, which is not"
                    " there, or not for you to read"
                )
            length += len(target.text)
            visit(target, (*above, place))
            found[reference.name] = target.text

    visit(version, ())
    if length > LONGEST_SCHEMA:
        raise Unreadable("its schema is very long")
    return found


_READERS: OrderedDict[tuple[str, str, tuple[tuple[str, str], ...]], Read] = OrderedDict()
_TURN: Final = threading.Lock()
"""Records of several pages are decoded in threads."""


def _reader(version: Version, references: Mapping[str, str]) -> Read:
    """Kept: a schema is read once for many records. Raises Unreadable."""
    key = version.type, version.text, tuple(references.items())
    with _TURN:
        read = _READERS.get(key)
    if read is None:
        read = _made(version, references)
    with _TURN:
        _READERS[key] = read
        _READERS.move_to_end(key)
        while len(_READERS) > MOST_KEPT:
            _READERS.popitem(last=False)
    return read


def _made(version: Version, references: Mapping[str, str]) -> Read:
    if version.type == "PROTOBUF":
        return Messages(version.text, references).read
    if version.type == "AVRO":
        node = avro_schemas.parse(version.text, references.values())
        return lambda data: avro_values.read(node, data)
    if version.type == "JSON":
        return lambda data: data
    raise Unreadable(f"schemas of type {version.type} are not read here")
