"""The schema of a file of Avro, for columns as Arrow has them."""

from __future__ import annotations

from typing import Any

from headrace.connect.api import GiveUp


def avro_schema(schema: Any) -> dict[str, Any]:
    """Every column may be null. Raises GiveUp for a type that Avro has not."""
    fields = [
        {"name": each.name, "type": ["null", _type_of(each.type, each.name)], "default": None}
        for each in schema
    ]
    return {"type": "record", "name": "Record", "namespace": "headrace", "fields": fields}


def _type_of(kind: Any, path: str) -> Any:
    import pyarrow.types as pat

    if pat.is_boolean(kind):
        return "boolean"
    if pat.is_int64(kind):
        return "long"
    if pat.is_integer(kind):
        return "int"
    if pat.is_float64(kind):
        return "double"
    if pat.is_float32(kind):
        return "float"
    if pat.is_string(kind) or pat.is_large_string(kind):
        return "string"
    if pat.is_binary(kind) or pat.is_large_binary(kind):
        return "bytes"
    if pat.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros" if kind.tz else "local-timestamp-micros"}
    if pat.is_date32(kind):
        return {"type": "int", "logicalType": "date"}
    if pat.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pat.is_list(kind):
        return {"type": "array", "items": ["null", _type_of(kind.value_type, f"{path}_item")]}
    if pat.is_struct(kind):
        fields = [
            {
                "name": (field := kind.field(at)).name,
                "type": ["null", _type_of(field.type, f"{path}_{field.name}")],
            }
            for at in range(kind.num_fields)
        ]
        return {"type": "record", "name": path, "fields": fields}
    raise GiveUp(f"Avro has no type for column {path}, which is {kind}: choose another one in value.schema")
