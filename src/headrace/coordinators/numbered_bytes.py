"""A message behind its number, as keys and values lie in the internal topics: by the general encoder."""

from __future__ import annotations

from headrace.protocol.message import Message
from headrace.protocol.primitives import Writer


def numbered_bytes(number: int, message: Message, version: int) -> bytes:
    writer = Writer()
    writer.int16(number)
    message.encode(writer, version)
    return writer.getvalue()
