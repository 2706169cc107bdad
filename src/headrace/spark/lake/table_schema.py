"""The columns of a table: how they are named, how they follow the records' schema, and the SQL that says so.

Pure. What may become what is for `decoding.evolution` to decide. A column that cannot follow stays as it is,
and the records that have a value for it are dead letters: one bad column stops no table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StringType, StructField, StructType

from headrace.spark.decoding.evolution import AddColumn, Change, Refusal, evolve

_FORBIDDEN: Final = re.compile(r"[ ,;{}()\n\t=.`]")


class Conflict(NamedTuple):
    """A column of the records that the table cannot take, and why."""

    column: str
    reason: str


class Following(NamedTuple):
    """What the table has to become."""

    schema: StructType
    changes: tuple[Change, ...]
    conflicts: tuple[Conflict, ...]


def follow(table: StructType, incoming: StructType, *, scale_may_grow: bool = True) -> Following:
    conflicts: list[Conflict] = []
    left = list(incoming.fields)
    while True:
        outcome = evolve(table, StructType(left), scale_may_grow=scale_may_grow)
        if not isinstance(outcome, Refusal):
            return Following(outcome.schema, outcome.changes, tuple(conflicts))
        conflicts.append(
            Conflict(outcome.path[0], f"{outcome} (the table {table_says(table, outcome.path[0])})")
        )
        left = [field for field in left if field.name != outcome.path[0]]


def table_says(table: StructType, column: str) -> str:
    there = [field for field in table.fields if field.name.lower() == column.lower()]
    return f"has {there[0].name} {there[0].dataType.simpleString()}" if there else "has no such column"


def table_type(incoming: DataType) -> DataType:
    """As tables keep it: everything may be null, and names are what every format takes."""
    if isinstance(incoming, StructType):
        # No file format has a struct without fields. Spark's text of one is {}, or null where there is none.
        return table_struct(incoming) if incoming.fields else StringType()
    if isinstance(incoming, ArrayType):
        return ArrayType(table_type(incoming.elementType))
    if isinstance(incoming, MapType):
        return MapType(table_type(incoming.keyType), table_type(incoming.valueType))
    # A column of which nothing is known but null; text can hold whatever comes later.
    return StringType() if isinstance(incoming, NullType) else incoming


def table_struct(incoming: StructType, reserved: Iterable[str] = ()) -> StructType:
    names = table_names(incoming.names, reserved)
    return StructType(
        [
            StructField(name, table_type(field.dataType), True)
            for name, field in zip(names, incoming.fields, strict=True)
        ]
    )


def table_names(names: Iterable[str], reserved: Iterable[str] = ()) -> list[str]:
    """One for each: clean, and different from each other and from `reserved` also where case is ignored.

    A field that is called like one of the record's own columns gets `value_` before its name.
    """
    taken = {name.lower() for name in reserved}
    found = []
    for name in names:
        clean = _FORBIDDEN.sub("_", name)
        if clean.lower() in taken:
            clean = f"value_{clean}"
        unique, number = clean, 2
        while unique.lower() in taken:
            unique, number = f"{clean}_{number}", number + 1
        taken.add(unique.lower())
        found.append(unique)
    return found


def ddl(type_: DataType) -> str:
    """For SQL, with every name quoted."""
    if isinstance(type_, StructType):
        inner = ", ".join(f"{quoted(field.name)}: {ddl(field.dataType)}" for field in type_.fields)
        return f"struct<{inner}>"
    if isinstance(type_, ArrayType):
        return f"array<{ddl(type_.elementType)}>"
    if isinstance(type_, MapType):
        return f"map<{ddl(type_.keyType)}, {ddl(type_.valueType)}>"
    return type_.simpleString()


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def statements(table: str, changes: Iterable[Change]) -> Iterator[str]:
    """The same SQL for Delta and for Iceberg. `table` is quoted already."""
    for change in changes:
        column = ".".join(quoted(part) for part in change.path)
        if isinstance(change, AddColumn):
            yield f"ALTER TABLE {table} ADD COLUMNS ({column} {ddl(change.type)})"
        else:
            yield f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {ddl(change.new)}"
