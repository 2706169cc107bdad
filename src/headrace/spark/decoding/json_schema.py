"""A JSON Schema document as the columns that its records have. Pure.

| JSON Schema                                              | Spark                                  |
|----------------------------------------------------------|----------------------------------------|
| object with properties                                   | struct                                 |
| object with only additionalProperties                    | map of strings to their type           |
| array of items                                           | array                                  |
| integer, number, boolean                                 | bigint, double, boolean                |
| integer of format int32, number of format float          | int, float: these can be widened later |
| string                                                   | string                                 |
| string of format date-time, date                         | timestamp, date                        |
| "type": [T, "null"], anyOf or oneOf of T and null        | T, nullable                            |
| allOf                                                    | the properties of all                  |
| anyOf or oneOf beside properties                         | these, and those of each, nullable     |
| enum, const                                              | the type that the values share         |
| anything else: no type, several types, a tuple           | string: the JSON as it is written      |

A property that `required` names, and that may not be null, is not nullable.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.spark.decoding.formats import DecodingRefused

_SCALARS: Final[dict[str, DataType]] = {
    "integer": LongType(),
    "number": DoubleType(),
    "boolean": BooleanType(),
    "string": StringType(),
}
#: Formats that say more than their type, by both.
_FORMATS: Final[dict[tuple[str, str], DataType]] = {
    ("string", "date-time"): TimestampType(),
    ("string", "date"): DateType(),
    ("integer", "int32"): IntegerType(),
    ("number", "float"): FloatType(),
}
#: Deeper than any record that people write; what goes deeper refers to itself.
_DEEPEST: Final = 32


def columns(text: str, references: Iterable[tuple[str, str]] = ()) -> StructType:
    """`references` are other documents by the names by which `$ref` speaks of them."""
    documents = {name: _parsed(each) for name, each in references}
    root = _parsed(text)
    if isinstance(root, Mapping) and isinstance(root.get("$id"), str):
        documents.setdefault(root["$id"], root)
    found, _ = _Reader(documents).type(root, root, 0)
    if not isinstance(found, StructType):
        raise DecodingRefused("the JSON Schema does not describe an object with properties")
    return found


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise DecodingRefused(f"the JSON Schema is not JSON: {error}") from None


class _Reader:
    def __init__(self, documents: Mapping[str, Any]) -> None:
        self._documents = documents

    def type(self, schema: Any, root: Any, depth: int) -> tuple[DataType, bool]:
        """The type, and whether null is allowed."""
        if depth > _DEEPEST:
            raise DecodingRefused("the JSON Schema refers to itself: no table has columns without end")
        if not isinstance(schema, Mapping):
            return StringType(), True
        if "$ref" in schema:
            target, its_root = self._resolved(schema["$ref"], root)
            return self.type(target, its_root, depth + 1)
        if "allOf" in schema:
            return self._all_of(schema, root, depth)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                own = {name: each for name, each in schema.items() if name != keyword}
                beside = self._beside(own, schema[keyword], root, depth)
                return beside or self._one_of(schema[keyword], root, depth)
        kinds, may_be_null = _kinds(schema)
        if len(kinds) != 1:
            return StringType(), may_be_null or not kinds
        return self._of_kind(kinds[0], schema, root, depth), may_be_null

    def _of_kind(self, kind: str, schema: Mapping[str, Any], root: Any, depth: int) -> DataType:
        if kind == "object":
            return self._object(schema, root, depth)
        if kind == "array":
            items = schema.get("items")
            if not isinstance(items, Mapping):  # a tuple, or elements of any kind
                return ArrayType(StringType())
            element, _ = self.type(items, root, depth + 1)
            return ArrayType(element)
        format_ = schema.get("format")
        known = _FORMATS.get((kind, format_)) if isinstance(format_, str) else None
        return known or _SCALARS.get(kind, StringType())

    def _object(self, schema: Mapping[str, Any], root: Any, depth: int) -> DataType:
        properties = schema.get("properties")
        if isinstance(properties, Mapping) and properties:
            required = schema.get("required") or ()
            fields = []
            for name, each in properties.items():
                type_, may_be_null = self.type(each, root, depth + 1)
                fields.append(StructField(name, type_, may_be_null or name not in required))
            return StructType(fields)
        values = schema.get("additionalProperties")
        if isinstance(values, Mapping):
            value, _ = self.type(values, root, depth + 1)
            return MapType(StringType(), value)
        return StringType()

    def _one_of(self, choices: Iterable[Any], root: Any, depth: int) -> tuple[DataType, bool]:
        others = [each for each in choices if not (isinstance(each, Mapping) and each.get("type") == "null")]
        may_be_null = len(others) < len(list(choices))
        found = [self.type(each, root, depth + 1) for each in others]
        may_be_null = may_be_null or any(null for _, null in found)
        types = [type_ for type_, _ in found]
        if types and all(each == types[0] for each in types):
            return types[0], may_be_null
        return StringType(), may_be_null

    def _beside(
        self, own: Mapping[str, Any], choices: Iterable[Any], root: Any, depth: int
    ) -> tuple[DataType, bool] | None:
        """What a schema says besides its choices, which then only restrict it, or add properties.

        None where that is no type, or an object or an array of which only the choices tell more.
        """
        kinds, _ = _kinds(own)
        if len(kinds) != 1 or (kinds == ["array"] and "items" not in own):
            return None
        type_, may_be_null = self.type(own, root, depth + 1)
        if kinds == ["object"] and isinstance(type_, StringType):
            return None
        if not isinstance(type_, StructType):
            return type_, may_be_null
        added: dict[str, DataType] = {}
        for choice in choices:
            theirs, _ = self.type(choice, root, depth + 1)
            for each in theirs.fields if isinstance(theirs, StructType) else ():
                same = added.get(each.name, each.dataType) == each.dataType
                added[each.name] = each.dataType if same else StringType()
        fields = [StructField(name, each) for name, each in added.items() if name not in type_.names]
        return StructType([*type_.fields, *fields]), may_be_null

    def _all_of(self, schema: Mapping[str, Any], root: Any, depth: int) -> tuple[DataType, bool]:
        """Structs become one. A part that describes no type only restricts, and is passed over."""
        own = {name: each for name, each in schema.items() if name != "allOf"}
        fields: dict[str, StructField] = {}
        last: tuple[DataType, bool] = (StringType(), True)
        required = set(own.get("required") or ())
        for part in [own, *schema["allOf"]]:
            type_, may_be_null = self.type(part, root, depth + 1)
            required |= set(part.get("required") or ()) if isinstance(part, Mapping) else set()
            if isinstance(type_, StructType):
                fields |= {field.name: field for field in type_.fields}
            elif not isinstance(type_, StringType) or (isinstance(part, Mapping) and "type" in part):
                last = (type_, may_be_null)
        if not fields:
            return last
        joined = [
            StructField(each.name, each.dataType, each.nullable and each.name not in required)
            for each in fields.values()
        ]
        return StructType(joined), False

    def _resolved(self, reference: str, root: Any) -> tuple[Any, Any]:
        document, _, pointer = reference.partition("#")
        if document:
            if document not in self._documents:
                raise DecodingRefused(f"the JSON Schema refers to {document}, which is not known")
            root = self._documents[document]
        if pointer and not pointer.startswith("/"):
            for anchored in _anchored(root, pointer):
                return anchored, root
            raise DecodingRefused(f"the JSON Schema refers to {reference}, which is not there")
        found = root
        for step in _steps(pointer):
            if isinstance(found, Mapping) and step in found:
                found = found[step]
            elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
                found = found[int(step)]
            else:
                raise DecodingRefused(f"the JSON Schema refers to {reference}, which is not there")
        return found, root


def _anchored(schema: Any, name: str) -> Iterator[Any]:
    """Those that call themselves so; before 2019 it was an $id."""
    if isinstance(schema, Mapping):
        if schema.get("$anchor") == name or schema.get("$id") == f"#{name}":
            yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for each in schema:
            yield from _anchored(each, name)


def _steps(pointer: str) -> Iterator[str]:
    for step in pointer.split("/")[1:]:
        yield step.replace("~1", "/").replace("~0", "~")


def _kinds(schema: Mapping[str, Any]) -> tuple[list[str], bool]:
    """The types that a value may have besides null, and whether it may be null."""
    given = schema.get("type")
    if given is None:
        given = list(_implied(schema))
    kinds = list(given) if isinstance(given, list) else [given]
    others = sorted({kind for kind in kinds if kind != "null"})
    if others == ["integer", "number"]:
        others = ["number"]
    return others, len(kinds) > len(others) and "null" in kinds


def _implied(schema: Mapping[str, Any]) -> Iterator[str]:
    if "properties" in schema or "additionalProperties" in schema:
        yield "object"
    if "items" in schema:
        yield "array"
    values = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]
    for value in values:
        if value is None:
            yield "null"
        elif isinstance(value, bool):
            yield "boolean"
        elif isinstance(value, int):
            yield "integer"
        elif isinstance(value, float):
            yield "number"
        elif isinstance(value, str):
            yield "string"
        else:
            yield "object" if isinstance(value, dict) else "array"
