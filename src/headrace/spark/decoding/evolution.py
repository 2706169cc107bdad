"""What a table must become when its records' schema changes. Pure: it compares two schemas and nothing else.

| The schema changes                              | The table                                            |
|-------------------------------------------------|------------------------------------------------------|
| a field is added, at any depth                  | gets a column, nullable; older rows have null        |
| byte, short, int becomes a longer one           | the column becomes the longer one                    |
| float becomes double                            | the column becomes double                            |
| a decimal gets more digits before or after the point | the column gets room for both, up to 38 digits  |
| any of these the other way round                | stays: what is narrower fits                         |
| a field is removed                              | keeps the column; newer rows have null               |
| a field becomes nullable, or required           | stays: every column is nullable                      |
| fields change their order                       | stays: fields are found by their name                |
| anything else, for example int becomes string   | refused                                              |

A field that is renamed is one removed and one added.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructField,
    StructType,
)

#: From narrow to wide; a type may become any that stands behind it in the same line.
_LINES: Final[tuple[tuple[DataType, ...], ...]] = (
    (ByteType(), ShortType(), IntegerType(), LongType()),
    (FloatType(), DoubleType()),
)

#: A path to a field: names, with "element" within an array and "key" or "value" within a map.
Path = tuple[str, ...]


@dataclass(frozen=True)
class AddColumn:
    path: Path
    type: DataType

    def __str__(self) -> str:
        return f"add column {'.'.join(self.path)} {self.type.simpleString()}"


@dataclass(frozen=True)
class WidenColumn:
    path: Path
    old: DataType
    new: DataType

    def __str__(self) -> str:
        name = ".".join(self.path)
        return f"widen column {name} from {self.old.simpleString()} to {self.new.simpleString()}"


Change = AddColumn | WidenColumn


@dataclass(frozen=True)
class Evolution:
    """What to change, in this order, and the schema that the table then has. No changes: it fits already."""

    changes: tuple[Change, ...]
    schema: StructType


@dataclass(frozen=True)
class Refusal:
    """Why the table cannot follow. The first cause that was found."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"column {'.'.join(self.path)}: {self.reason}"


def evolve(table: StructType, records: StructType, *, scale_may_grow: bool = True) -> Evolution | Refusal:
    """`scale_may_grow=False` is for tables that widen decimals only before the point, as Iceberg does."""
    evolving = _Evolving(scale_may_grow)
    try:
        schema = evolving.struct((), table, records)
    except _Refused as refused:
        return refused.refusal
    return Evolution(tuple(evolving.changes), schema)


class _Refused(Exception):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(reason)
        self.refusal = Refusal(path, reason)


@dataclass
class _Evolving:
    scale_may_grow: bool
    changes: list[Change] = field(default_factory=list)

    def struct(self, path: Path, old: StructType, new: StructType) -> StructType:
        # Spark compares names without regard to case, so two that differ only in it cannot be told apart.
        ours = {each.name.lower(): each for each in old.fields}
        theirs = Counter(each.name.lower() for each in new.fields)
        for each in new.fields:
            twin = ours.get(each.name.lower())
            if theirs[each.name.lower()] > 1 or (twin is not None and twin.name != each.name):
                raise _Refused((*path, each.name), "another column differs from it only in case")
        found = {each.name: each.dataType for each in new.fields}
        fields = [
            StructField(
                each.name,
                self.type((*path, each.name), each.dataType, found[each.name])
                if each.name in found
                else each.dataType,
                each.nullable,
                each.metadata,
            )
            for each in old.fields
        ]
        for each in new.fields:
            if each.name not in old.names:
                added = nullable(each.dataType)
                self.changes.append(AddColumn((*path, each.name), added))
                fields.append(StructField(each.name, added))
        return StructType(fields)

    def type(self, path: Path, old: DataType, new: DataType) -> DataType:
        if isinstance(old, StructType) and isinstance(new, StructType):
            return self.struct(path, old, new)
        if isinstance(old, ArrayType) and isinstance(new, ArrayType):
            element = self.type((*path, "element"), old.elementType, new.elementType)
            return ArrayType(element, old.containsNull)
        if isinstance(old, MapType) and isinstance(new, MapType):
            key = self.type((*path, "key"), old.keyType, new.keyType)
            value = self.type((*path, "value"), old.valueType, new.valueType)
            return MapType(key, value, old.valueContainsNull)
        wide = self._wider(path, old, new)
        if wide != old:
            self.changes.append(WidenColumn(path, old, wide))
        return wide

    def _wider(self, path: Path, old: DataType, new: DataType) -> DataType:
        if old == new:
            return old
        for line in _LINES:
            if old in line and new in line:
                return max(old, new, key=line.index)
        if isinstance(old, DecimalType) and isinstance(new, DecimalType):
            scale = max(old.scale, new.scale)
            precision = max(old.precision - old.scale, new.precision - new.scale) + scale
            if scale > old.scale and not self.scale_may_grow:
                raise _Refused(path, f"this table cannot widen a decimal to {scale} digits after the point")
            if precision > 38:
                raise _Refused(path, f"no decimal holds both {old.simpleString()} and {new.simpleString()}")
            return DecimalType(precision, scale)
        raise _Refused(path, f"{old.simpleString()} cannot become {new.simpleString()}")


def nullable(type_: DataType) -> DataType:
    """The same type with everything in it nullable: what a removed field leaves behind must be writable."""
    if isinstance(type_, StructType):
        return StructType(
            [StructField(each.name, nullable(each.dataType), True, each.metadata) for each in type_.fields]
        )
    if isinstance(type_, ArrayType):
        return ArrayType(nullable(type_.elementType), True)
    if isinstance(type_, MapType):
        return MapType(nullable(type_.keyType), nullable(type_.valueType), True)
    return type_
