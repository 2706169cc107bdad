"""Whether all data written with one Avro schema can be read with another: Avro's resolution rules.

Named types match by their last name or by an alias of the reader; readers in use go by that, also where the
namespace differs.
"""

from __future__ import annotations

from typing import Final

from headrace.registry.avro.model import Array, Avro, Enum, Fixed, Map, Named, Primitive, Record, Union

_PROMOTIONS: Final = {
    "long": frozenset(("int",)),
    "float": frozenset(("int", "long")),
    "double": frozenset(("int", "long", "float")),
    "string": frozenset(("bytes",)),
    "bytes": frozenset(("string",)),
}
"""What else a reader of each type takes."""


def differences(reader: Avro, writer: Avro) -> list[str]:
    """Each place where the reader fails, as `TYPE at /path: reason`; nothing if there is none."""
    return _Comparison().compare(reader, writer, "")


class _Comparison:
    def __init__(self) -> None:
        # A pair that is being compared further up is taken for compatible: a record that holds itself can
        # only fail in its other fields. What failed is kept, so that a pair is looked at once.
        self._seen: dict[tuple[int, int], list[str]] = {}
        self._journal: list[tuple[int, int]] = []

    def compare(self, reader: Avro, writer: Avro, path: str) -> list[str]:
        if not isinstance(reader, Record) or not isinstance(writer, Record):
            return self._compare(reader, writer, path)
        pair = (id(reader), id(writer))
        if pair not in self._seen:
            self._seen[pair] = []
            self._journal.append(pair)
            self._seen[pair] = self._record(reader, writer, path)
        return self._seen[pair]

    def _compare(self, reader: Avro, writer: Avro, path: str) -> list[str]:
        if isinstance(writer, Union):
            found = []
            for at, branch in enumerate(writer.branches):
                found += self.compare(reader, branch, f"{path}/{at}")
            return found
        if isinstance(reader, Union):
            return self._reader_union(reader, writer, path)
        if isinstance(reader, Array) and isinstance(writer, Array):
            return self.compare(reader.items, writer.items, f"{path}/items")
        if isinstance(reader, Map) and isinstance(writer, Map):
            return self.compare(reader.values, writer.values, f"{path}/values")
        if isinstance(reader, Fixed) and isinstance(writer, Fixed):
            return _fixed(reader, writer, path)
        if isinstance(reader, Enum) and isinstance(writer, Enum):
            return _enum(reader, writer, path)
        if isinstance(reader, Primitive) and isinstance(writer, Primitive) and _takes(reader, writer):
            return []
        return [f"TYPE_MISMATCH at {path or '/'}: {kind(writer)} was written, {kind(reader)} is expected"]

    def _reader_union(self, reader: Union, writer: Avro, path: str) -> list[str]:
        if any(not self._attempt(branch, writer, path) for branch in reader.branches):
            return []
        return [f"MISSING_UNION_BRANCH at {path or '/'}: no branch of the reader takes {kind(writer)}"]

    def _attempt(self, reader: Avro, writer: Avro, path: str) -> list[str]:
        """A branch that fails must not leave pairs behind that were only taken for compatible on its way."""
        before = len(self._journal)
        found = self.compare(reader, writer, path)
        if found:
            for pair in self._journal[before:]:
                del self._seen[pair]
            del self._journal[before:]
        return found

    def _record(self, reader: Record, writer: Record, path: str) -> list[str]:
        found = _names(reader, writer, path)
        written = {field.name: field for field in writer.fields}
        for at, field in enumerate(reader.fields):
            source = next((written[name] for name in (field.name, *field.aliases) if name in written), None)
            place = f"{path}/fields/{at}"
            if source is not None:
                found = found + self.compare(field.type, source.type, f"{place}/type")
            elif not field.has_default:
                reason = f"{field.name} was not written and has no default"
                found = [*found, f"READER_FIELD_MISSING_DEFAULT_VALUE at {place}: {reason}"]
        return found


def _takes(reader: Primitive, writer: Primitive) -> bool:
    return reader.name == writer.name or writer.name in _PROMOTIONS.get(reader.name, ())


def _names(reader: Named, writer: Named, path: str) -> list[str]:
    if reader.short_name == writer.short_name or writer.name in reader.aliases:
        return []
    return [f"NAME_MISMATCH at {path}/name: expected {writer.name}, found {reader.name}"]


def _fixed(reader: Fixed, writer: Fixed, path: str) -> list[str]:
    found = _names(reader, writer, path)
    if reader.size != writer.size:
        found.append(f"FIXED_SIZE_MISMATCH at {path}/size: expected {writer.size}, found {reader.size}")
    return found


def _enum(reader: Enum, writer: Enum, path: str) -> list[str]:
    found = _names(reader, writer, path)
    missing = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
    if missing and not reader.has_default:
        found.append(f"MISSING_ENUM_SYMBOLS at {path}/symbols: {', '.join(missing)}")
    return found


def kind(schema: Avro) -> str:
    if isinstance(schema, Primitive):
        return schema.name
    if isinstance(schema, Named):
        return f"{type(schema).__name__.lower()} {schema.name}"
    return type(schema).__name__.lower()
