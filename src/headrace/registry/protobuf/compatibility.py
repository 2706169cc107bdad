"""Whether a reader with one Protobuf schema understands what was written with another: Confluent's rules.

Fields are known by their numbers. Names may change, fields may come and go; what a number means must stay.
What breaks: a message that is gone, another package, a field of another kind, fields that come to exclude
each other.
"""

from __future__ import annotations

from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor, OneofDescriptor

_SCALAR_KINDS: Final = {
    FieldDescriptor.TYPE_INT32: "a number",
    FieldDescriptor.TYPE_INT64: "a number",
    FieldDescriptor.TYPE_UINT32: "a number",
    FieldDescriptor.TYPE_UINT64: "a number",
    FieldDescriptor.TYPE_BOOL: "a number",
    FieldDescriptor.TYPE_ENUM: "a number",
    FieldDescriptor.TYPE_SINT32: "a zig-zag number",
    FieldDescriptor.TYPE_SINT64: "a zig-zag number",
    FieldDescriptor.TYPE_STRING: "a string or bytes",
    FieldDescriptor.TYPE_BYTES: "a string or bytes",
    FieldDescriptor.TYPE_FIXED32: "32 fixed bits",
    FieldDescriptor.TYPE_SFIXED32: "32 fixed bits",
    FieldDescriptor.TYPE_FIXED64: "64 fixed bits",
    FieldDescriptor.TYPE_SFIXED64: "64 fixed bits",
    FieldDescriptor.TYPE_FLOAT: "a float",
    FieldDescriptor.TYPE_DOUBLE: "a double",
}
"""Types of one kind have one form on the wire, and readers convert between them."""
_LENGTH_DELIMITED: Final = "a string or bytes"


def differences(reader: FileDescriptor, writer: FileDescriptor) -> list[str]:
    """Each as `TYPE at path: reason`; nothing if the reader understands all."""
    comparison = _Comparison()
    if reader.package != writer.package:
        comparison.add("PACKAGE_CHANGED", "/", f"from {writer.package!r} to {reader.package!r}")
    comparison.types(dict(reader.message_types_by_name), dict(writer.message_types_by_name), "")
    return comparison.found


class _Comparison:
    def __init__(self) -> None:
        self.found: list[str] = []
        self._seen: set[tuple[str, str]] = set()
        """Pairs of messages that were compared, or are: a message may hold itself."""

    def add(self, kind: str, path: str, reason: str) -> None:
        self.found.append(f"{kind} at {path}: {reason}")

    def types(self, reader: dict[str, Descriptor], writer: dict[str, Descriptor], path: str) -> None:
        for name, written in writer.items():
            if written.GetOptions().map_entry:
                continue
            place = f"{path}/{name}"
            if name in reader:
                self.message(reader[name], written, place)
            else:
                self.add("MESSAGE_REMOVED", place, f"message {name} is gone")

    def message(self, reader: Descriptor, writer: Descriptor, path: str) -> None:
        pair = (reader.full_name, writer.full_name)
        if pair in self._seen:
            return
        self._seen.add(pair)
        read = {field.number: field for field in reader.fields}
        written = {field.number: field for field in writer.fields}
        self._exclusions(reader, written, path)
        abandoned = _abandoned_oneofs(reader, writer, read)
        for number in sorted(read.keys() | written.keys()):
            place = f"{path}/{number}"
            if number not in read:
                self._removed(written[number], abandoned, place)
            elif number not in written:
                if read[number].is_required:
                    self.add(
                        "REQUIRED_FIELD_ADDED",
                        place,
                        f"{read[number].name} is required and was never written",
                    )
            else:
                self._field(read[number], written[number], place)
        self.types(dict(reader.nested_types_by_name), dict(writer.nested_types_by_name), path)

    def _removed(self, field: FieldDescriptor, abandoned: set[str], path: str) -> None:
        oneof = _oneof(field)
        if oneof is not None and oneof.name not in abandoned:
            self.add("ONEOF_FIELD_REMOVED", path, f"{field.name} is gone from oneof {oneof.name}")
        elif field.is_required:
            self.add("REQUIRED_FIELD_REMOVED", path, f"{field.name} was required")

    def _exclusions(self, reader: Descriptor, written: dict[int, FieldDescriptor], path: str) -> None:
        """Fields that could be set together must not come to exclude each other: one would be lost."""
        for oneof in reader.oneofs:
            if _is_synthetic(oneof):
                continue
            known = [written[field.number] for field in oneof.fields if field.number in written]
            groups = {source.name if (source := _oneof(field)) else field.number for field in known}
            if len(groups) > 1:
                alone = sum(_oneof(field) is None for field in known)
                kind = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if alone > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF"
                self.add(
                    kind, f"{path}/{oneof.name}", "fields that could be set together exclude each other now"
                )

    def _field(self, reader: FieldDescriptor, writer: FieldDescriptor, path: str) -> None:
        before, now = _kind(writer), _kind(reader)
        if before != now:
            self.add("FIELD_KIND_CHANGED", path, f"{writer.name} was {before} and is {now}")
        elif now == "a scalar":
            self._scalar(reader, writer, path)
        elif now == "a map":
            for number in (1, 2):
                inner = f"{path}/{'key' if number == 1 else 'value'}"
                self._field(_entry_field(reader, number), _entry_field(writer, number), inner)
        else:
            self._message_field(reader, writer, path)

    def _scalar(self, reader: FieldDescriptor, writer: FieldDescriptor, path: str) -> None:
        before, now = _SCALAR_KINDS[writer.type], _SCALAR_KINDS[reader.type]
        if before != now:
            self.add("FIELD_SCALAR_KIND_CHANGED", path, f"{writer.name} was {before} and is {now}")
            return
        labels = (_label(writer), _label(reader))
        if None not in labels and labels[0] != labels[1] and now != _LENGTH_DELIMITED:
            self.add("FIELD_NUMERIC_LABEL_CHANGED", path, f"{writer.name} was {labels[0]} and is {labels[1]}")

    def _message_field(self, reader: FieldDescriptor, writer: FieldDescriptor, path: str) -> None:
        new, old = reader.message_type, writer.message_type
        assert new is not None
        assert old is not None
        if _local_name(new) != _local_name(old):
            self.add(
                "FIELD_NAMED_TYPE_CHANGED", path, f"{writer.name} was {old.full_name}, is {new.full_name}"
            )
            return
        self.message(new, old, f"{path}/{new.name}")


def _abandoned_oneofs(reader: Descriptor, writer: Descriptor, read: dict[int, FieldDescriptor]) -> set[str]:
    """Oneofs that went as a whole, which is as if a field had gone."""
    staying = {oneof.name for oneof in reader.oneofs}
    return {
        oneof.name
        for oneof in writer.oneofs
        if oneof.name not in staying and not any(field.number in read for field in oneof.fields)
    }


def _is_synthetic(oneof: OneofDescriptor) -> bool:
    """Made by the compiler for an `optional` of proto3."""
    return len(oneof.fields) == 1 and oneof.name.lstrip("X") == f"_{oneof.fields[0].name}"


def _oneof(field: FieldDescriptor) -> OneofDescriptor | None:
    oneof = field.containing_oneof
    return None if oneof is None or _is_synthetic(oneof) else oneof


def _kind(field: FieldDescriptor) -> str:
    if field.message_type is None:
        return "a scalar"
    return "a map" if field.message_type.GetOptions().map_entry else "a message"


def _entry_field(field: FieldDescriptor, number: int) -> FieldDescriptor:
    assert field.message_type is not None
    return field.message_type.fields_by_number[number]


def _label(field: FieldDescriptor) -> str | None:
    """As it stands in the file; None where proto3 has none, and in oneofs and maps."""
    if field.is_repeated:
        return "repeated"
    if field.is_required:
        return "required"
    if _oneof(field) is not None or field.containing_type.GetOptions().map_entry:
        return None
    return "optional" if field.has_presence else None


def _local_name(message: Descriptor) -> str:
    """Without the package, which may differ between a message and its copy elsewhere."""
    return str(message.full_name).removeprefix(f"{message.file.package}.")
