"""The bytes of a manifest and of its pages: JSON that other tools can read, with a checksum.

    {"crc32c":"0a1b2c3d","manifest":{"version":1,"topic":"...","partition":0,"epoch":5,"writer":"...",...}}

The checksum is that of the bytes between `"manifest":` and the last brace. A segment takes about 220 bytes,
so that a partition with ten of them has a manifest of 2.4 KB. Fields that a version does not have are
refused: whoever wrote them meant something by them, and a rewrite would lose it. Version 2 adds the origin of
a fork, and is written for forks alone: all others can be read by those who know only version 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar
from uuid import UUID

from crc32c import crc32c

from headrace.tier.manifest import Manifest, Origin, Removed
from headrace.tier.names import TieredPartition, decode_id, encode_id, parse_name
from headrace.tier.segments import (
    EpochStart,
    Misfit,
    PageRef,
    RemoteSegment,
    Stored,
    check_order,
    check_range,
    page_of,
)

VERSION: Final = 1
FORK_VERSION: Final = 2
FOLD_ABOVE_BYTES: Final = 64 * 1024
"""A manifest that has come to be larger gets a page."""
LARGEST_BYTES: Final = 16 * 1024 * 1024
_HEX8: Final = re.compile(r"[0-9a-f]{8}\Z")
_MOST: Final = 2**63
_FRAME: Final = {kind: b'","%s":' % kind.encode() for kind in ("manifest", "page")}
_BEGIN: Final = b'{"crc32c":"'
_END: Final = b"}\n"

_Found = TypeVar("_Found")


class CorruptManifest(Exception):
    """Bytes that cannot be what was written."""


class NewerManifest(Exception):
    """Written by a later version of Headrace, in a form that this one does not know."""


# --- writing -------------------------------------------------------------------------------------------


def encode(manifest: Manifest) -> bytes:
    topic_id, partition = manifest.partition
    origin = manifest.origin
    of_fork = {} if origin is None else {"origin": [encode_id(origin.topic_id), origin.until]}
    return _frame(
        "manifest",
        {
            "version": VERSION if origin is None else FORK_VERSION,
            "topic": encode_id(topic_id),
            "partition": partition,
            "epoch": manifest.epoch,
            "writer": manifest.writer.hex,
            "change": manifest.change,
            "start": manifest.start,
            "oldest": [_segment(each) for each in manifest.oldest],
            "pages": [_page_ref(each) for each in manifest.pages],
            "segments": [_segment(each) for each in manifest.segments],
            "removed": [[str(name), at_ms] for name, at_ms in manifest.removed],
            "deleted": manifest.deleted_ms,
            **of_fork,
        },
    )


def encode_page(partition: TieredPartition, segments: Sequence[RemoteSegment]) -> bytes:
    return _frame(
        "page",
        {
            "version": VERSION,
            "topic": encode_id(partition.topic_id),
            "partition": partition.partition,
            "segments": [_segment(each) for each in segments],
        },
    )


def stored(data: bytes) -> Stored:
    return Stored(len(data), crc32c(data))


def _frame(kind: str, value: dict[str, Any]) -> bytes:
    body = json.dumps(value, separators=(",", ":")).encode("ascii")
    return b"%s%08x%s%s%s" % (_BEGIN, crc32c(body), _FRAME[kind], body, _END)


def _segment(each: RemoteSegment) -> dict[str, Any]:
    return {
        "name": str(each.name),
        "next": each.next_offset,
        "bytes": each.records.size,
        "crc32c": f"{each.records.crc32c:08x}",
        "index": [each.indexes.size, f"{each.indexes.crc32c:08x}"],
        "time": each.max_timestamp,
        "epochs": each.epochs,
    }


def _page_ref(each: PageRef) -> dict[str, Any]:
    return {
        "name": str(each.name),
        "next": each.next_offset,
        "count": each.segment_count,
        "bytes": each.size,
        "time": each.max_timestamp,
        "epochs": each.epochs,
        "content": [each.content.size, f"{each.content.crc32c:08x}"],
    }


# --- reading -------------------------------------------------------------------------------------------


def decode(data: bytes, partition: TieredPartition) -> Manifest:
    """CorruptManifest or NewerManifest, and nothing else, if it is no manifest of this partition."""
    return _read(data, "manifest", FORK_VERSION, lambda body, version: _manifest(body, version, partition))


def decode_page(data: bytes, partition: TieredPartition, page: PageRef) -> tuple[RemoteSegment, ...]:
    """What a page lists. It must be the one that the manifest means."""
    if stored(data) != page.content:
        raise CorruptManifest(f"the page {page.name} is not what was written")
    return _read(data, "page", VERSION, lambda body, _: _page(body, partition, page))


def _read(data: bytes, kind: str, newest: int, parse: Callable[[_Fields, int], _Found]) -> _Found:
    before, checksum, frame = data[:11], data[11:19], _FRAME[kind]
    body = data[19 + len(frame) : -len(_END)]
    if len(data) > LARGEST_BYTES:
        raise CorruptManifest(f"it has {len(data)} bytes")
    if before != _BEGIN or data[19 : 19 + len(frame)] != frame or not data.endswith(_END):
        raise CorruptManifest(f"it is not in the form of a {kind}")
    if checksum != b"%08x" % crc32c(body):
        raise CorruptManifest("its checksum is wrong")
    try:
        fields = _Fields(json.loads(body.decode("ascii")))
        version = fields.number("version")
        if version > newest:
            raise NewerManifest(f"it is of version {version}, and this build knows {newest}")
        if version < VERSION:
            raise Misfit(f"there is no version {version}")
        found = parse(fields, version)
        fields.end()
    except (ValueError, RecursionError) as error:  # a Misfit, JSON and UTF-8 errors are ValueErrors
        raise CorruptManifest(str(error)) from None
    return found


def _manifest(body: _Fields, version: int, partition: TieredPartition) -> Manifest:
    _is_of(body, partition)
    found = Manifest(
        partition,
        body.number("epoch"),
        UUID(hex=body.text("writer")),
        body.number("change"),
        body.number("start"),
        body.each("oldest", _to_segment),
        body.each("pages", _to_page_ref),
        body.each("segments", _to_segment),
        body.each("removed", _to_removed),
        body.optional_number("deleted"),
        _to_origin(body.list("origin")) if version == FORK_VERSION else None,
    )
    found.check()
    return found


def _page(body: _Fields, partition: TieredPartition, page: PageRef) -> tuple[RemoteSegment, ...]:
    _is_of(body, partition)
    segments = body.each("segments", _to_segment)
    for each in segments:
        check_range(each)
    check_order(segments)
    if not segments or page_of(page.name, segments, page.content) != page:
        raise Misfit(f"the page {page.name} does not list what the manifest says")
    return segments


def _is_of(body: _Fields, partition: TieredPartition) -> None:
    found = TieredPartition(decode_id(body.text("topic")), body.number("partition"))
    if found != partition:
        raise Misfit(f"it belongs to partition {found.partition} of {encode_id(found.topic_id)}")


class _Fields:
    """A JSON object of which every field is taken, and nothing but what is expected there."""

    def __init__(self, value: object) -> None:
        if not isinstance(value, dict):
            raise Misfit("a value is no object")
        self._left: dict[str, object] = dict(value)

    def _take(self, name: str) -> object:
        try:
            return self._left.pop(name)
        except KeyError:
            raise Misfit(f"{name} is missing") from None

    def number(self, name: str, at_least: int = 0) -> int:
        return _number(self._take(name), at_least)

    def optional_number(self, name: str) -> int | None:
        value = self._take(name)
        return None if value is None else _number(value)

    def text(self, name: str) -> str:
        value = self._take(name)
        if not isinstance(value, str):
            raise Misfit(f"{name} is no text")
        return value

    def list(self, name: str) -> list[object]:
        return _list(self._take(name))

    def each(self, name: str, parse: Callable[[object], Any]) -> tuple[Any, ...]:
        return tuple(parse(value) for value in self.list(name))

    def end(self) -> None:
        if self._left:
            raise Misfit(f"unknown fields: {', '.join(self._left)}"[:200])


def _number(value: object, at_least: int = 0) -> int:
    if type(value) is not int or not at_least <= value < _MOST:
        raise Misfit("a number is missing, or out of range")
    return value


def _list(value: object, length: int | None = None) -> list[object]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise Misfit("a list is missing, or has another length")
    return value


def _checksum(value: object) -> int:
    if not isinstance(value, str) or not _HEX8.match(value):
        raise Misfit("a checksum is missing")
    return int(value, 16)


def _to_stored(value: object) -> Stored:
    size, checksum = _list(value, 2)
    return Stored(_number(size), _checksum(checksum))


def _to_epochs(value: object) -> EpochStart:
    epoch, offset = _list(value, 2)
    return EpochStart(_number(epoch), _number(offset))


def _to_segment(value: object) -> RemoteSegment:
    fields = _Fields(value)
    found = RemoteSegment(
        parse_name(fields.text("name")),
        fields.number("next"),
        Stored(fields.number("bytes"), _checksum(fields.text("crc32c"))),
        _to_stored(fields.list("index")),
        fields.number("time", at_least=-1),
        fields.each("epochs", _to_epochs),
    )
    fields.end()
    return found


def _to_page_ref(value: object) -> PageRef:
    fields = _Fields(value)
    found = PageRef(
        parse_name(fields.text("name")),
        fields.number("next"),
        fields.number("count", at_least=1),
        fields.number("bytes"),
        fields.number("time", at_least=-1),
        fields.each("epochs", _to_epochs),
        _to_stored(fields.list("content")),
    )
    fields.end()
    return found


def _to_origin(value: object) -> Origin:
    topic_id, until = _list(value, 2)
    if not isinstance(topic_id, str):
        raise Misfit("an origin has no topic")
    return Origin(decode_id(topic_id), _number(until))


def _to_removed(value: object) -> Removed:
    name, at_ms = _list(value, 2)
    if not isinstance(name, str):
        raise Misfit("a removed object has no name")
    return Removed(parse_name(name), _number(at_ms))
