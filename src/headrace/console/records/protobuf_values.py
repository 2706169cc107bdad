"""Protobuf records as what JSON can say, by the registry's own reading of schemas. Its library is that of
`headrace[registry]`, and is imported with the first such record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headrace.console.records.avro_schemas import Unreadable

_LONGEST_PATH: Final = 100
_LONGEST_VARINT: Final = 5


class Messages:
    """All messages of a schema, by their places in its file."""

    def __init__(self, text: str, references: Mapping[str, str]) -> None:
        """Raises Unreadable."""
        try:
            from headrace.registry.protobuf.linking import MAIN, link, read_schema
        except ModuleNotFoundError:
            raise Unreadable("to read Protobuf takes `pip install 'headrace[registry]'`") from None
        try:
            self._file = link(read_schema(text, MAIN), references)
        except Exception as error:  # whoever can write to a registry can put there what is not taken here
            what = str(error) or type(error).__name__
            raise Unreadable(f"the schema cannot be used: {what[:300]}") from None

    def read(self, data: bytes) -> Any:
        """`data`: what follows the schema's id. Raises Unreadable."""
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message_factory import GetMessageClass

        path, start = _path(data)
        descriptor = self._descriptor(path)
        try:
            message = GetMessageClass(descriptor).FromString(data[start:])
            return MessageToDict(message, preserving_proto_field_name=True)
        except Exception as error:  # bytes can make the library raise almost anything; they are to blame
            what = str(error) or type(error).__name__
            raise Unreadable(f"the bytes are not a {descriptor.full_name}: {what[:300]}") from None

    def _descriptor(self, path: tuple[int, ...]) -> Any:
        found: Any = None
        level: Any = self._file.message_types_by_name
        for index in path:
            there = list(level.values())
            if not 0 <= index < len(there):
                raise Unreadable(f"the schema has no message at {list(path)}")
            found = there[index]
            level = found.nested_types_by_name
        return found


def _path(data: bytes) -> tuple[tuple[int, ...], int]:
    """Where the message stands in its file, and where it begins. A count and so many numbers; a count of zero
    stands for the first message."""
    count, at = _varint(data, 0)
    if not 0 <= count <= _LONGEST_PATH:
        raise Unreadable("it does not tell which message it is")
    path = []
    for _ in range(count):
        index, at = _varint(data, at)
        path.append(index)
    return tuple(path) or (0,), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """With its sign in the last bit."""
    found = 0
    for place in range(_LONGEST_VARINT):
        if at + place >= len(data):
            break
        byte = data[at + place]
        found |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at + place + 1
    raise Unreadable("it does not tell which message it is")
