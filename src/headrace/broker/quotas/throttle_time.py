"""Writes `throttle_time_ms` into an answer that is encoded already.

Answers are encoded, some of them once for many clients, before anybody knows how long this client has to
wait. Where the field stands is found out once for each version, with an answer that holds nothing else.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from headrace.core.ports import FileRange
from headrace.network.response import Parts
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.headers import frame_response, response_header_version
from headrace.protocol.message import Message

_FIELD: Final = Struct(">i")
_SENTINEL: Final = 0x7A6B5C4D
_BEFORE_BODY: Final = 8
"""The length and the correlation id."""

_NO_THROTTLE_NO_TAGS: Final = 5
_ZEROS: Final = bytes(_NO_THROTTLE_NO_TAGS)

NOWHERE: Final = 0
FIRST: Final = 1
"""At the beginning of the body."""
LAST: Final = 2
"""At its end, before the number of tagged fields."""


_places: Final[dict[tuple[int, int], int]] = {}


def place_of(response: type[Message], version: int) -> int:
    """FIRST, LAST or NOWHERE."""
    key = response.API_KEY, version
    known = _places.get(key)
    if known is None:
        known = _places[key] = _find_place(response, version)
    return known


def _find_place(response: type[Message], version: int) -> int:
    if response.API_KEY == ApiKey.API_VERSIONS:
        return NOWHERE  # its tagged fields may be anything, also what looks like the field
    fields: Any = {"throttle_time_ms": _SENTINEL}
    try:
        frame = frame_response(response(**fields), version, 0)
    except (TypeError, ValueError):
        return NOWHERE  # there is no such field, or no such version
    is_flexible = response_header_version(response.API_KEY, version)
    begin = _BEFORE_BODY + is_flexible
    mark = _FIELD.pack(_SENTINEL)
    if frame[begin : begin + _FIELD.size] == mark:
        return FIRST
    end = len(frame) - is_flexible
    return LAST if frame[end - _FIELD.size : end] == mark else NOWHERE


def write_throttle_time(parts: Parts, response: type[Message], version: int, throttle_ms: int) -> None:
    """Changes the list, and no part of it: others may hold the same parts."""
    place = place_of(response, version)
    field = _FIELD.pack(throttle_ms)
    is_flexible = response_header_version(response.API_KEY, version)
    if place == FIRST:
        _replace(parts, 0, _BEFORE_BODY + is_flexible, field)
    elif place == LAST and parts:
        last = parts[-1]
        # Of Produce, tagged fields may stand behind it: the new leaders. They never end with five zeros: a
        # port that is not 0 stands before the rack.
        if isinstance(last, FileRange) or (is_flexible and last[-_NO_THROTTLE_NO_TAGS:] != _ZEROS):
            return
        _replace(parts, len(parts) - 1, len(last) - is_flexible - _FIELD.size, field)


def _replace(parts: Parts, index: int, at: int, field: bytes) -> None:
    """`at`: from the beginning of the part `index`; the field may stand in a later one."""
    while index < len(parts):
        part = parts[index]
        if isinstance(part, FileRange) or at < 0:
            return
        if at < len(part):
            if at + len(field) <= len(part):
                view = memoryview(part)
                parts[index : index + 1] = [view[:at], field, view[at + len(field) :]]
            return
        at -= len(part)
        index += 1
