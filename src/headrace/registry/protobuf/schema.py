"""A Protobuf schema: parsed here, linked by a descriptor pool, compared by our own rules."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from headrace.registry import errors
from headrace.registry.parsed import Parsed
from headrace.registry.protobuf.compatibility import differences
from headrace.registry.protobuf.lexer import SyntaxFault
from headrace.registry.protobuf.linking import MAIN, link, read_schema, resolved
from headrace.registry.protobuf.rendering import render


class ProtobufSchema:
    def __init__(self, text: str, descriptor: FileDescriptor) -> None:
        self._text = text
        self.descriptor = descriptor

    @classmethod
    def parse(cls, text: str, references: Mapping[str, str]) -> ProtobufSchema:
        """RegistryError where it is no schema, or imports what is not among the references."""
        try:
            file = read_schema(text, MAIN)
            sent_as_text = any(character in text for character in "{};")
            return cls(text if sent_as_text else render(file), link(file, references))
        except SyntaxFault as error:
            raise errors.invalid_schema(f"of type PROTOBUF: {error}") from None

    @property
    def text(self) -> str:
        """As it was sent if that was text: comments are worth keeping."""
        return self._text

    @property
    def normalized(self) -> str:
        file = resolved(self.descriptor)
        file.dependency.sort()
        return render(file)

    @property
    def identity(self) -> bytes:
        file = resolved(self.descriptor)
        file.ClearField("name")
        _forget_json_names(file)
        return bytes(file.SerializeToString(deterministic=True))

    def cannot_read(self, writer: Parsed) -> list[str]:
        assert isinstance(writer, ProtobufSchema)
        return differences(self.descriptor, writer.descriptor)

    def formatted(self, format_name: str) -> str:
        if format_name == "serialized":
            return base64.b64encode(resolved(self.descriptor).SerializeToString()).decode()
        return self._text


def _forget_json_names(file: FileDescriptorProto) -> None:
    """A linked descriptor names all of them, one that was sent perhaps none; they follow from the names."""
    pending = list(file.message_type)
    while pending:
        message = pending.pop()
        pending += message.nested_type
        for field in message.field:
            field.ClearField("json_name")
