"""Kafka's primitive types, in one place to import from."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from headrace.protocol.limits import (
    MAX_BODY_TAGS,
    MAX_ELEMENTS,
    MAX_HEADER_TAGS,
    MAX_STRING,
    ProtocolError,
)
from headrace.protocol.reader import Reader
from headrace.protocol.writer import Writer, required

ZERO_UUID: Final = UUID(int=0)

__all__ = [
    "MAX_BODY_TAGS",
    "MAX_ELEMENTS",
    "MAX_HEADER_TAGS",
    "MAX_STRING",
    "ZERO_UUID",
    "ProtocolError",
    "Reader",
    "Writer",
    "required",
]
