"""Decoded records in the shape of their table: by name, at any depth, null where a field is lacking."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, MapType, StructType


def shaped(value: Column, records: DataType, table: DataType) -> Column:
    """`value`, which is of type `records`, as a `table`. Which pairs are possible is for `evolve` to say."""
    if records == table:
        return value
    if isinstance(records, StructType) and isinstance(table, StructType):
        found = {each.name: each.dataType for each in records.fields}
        fields = [
            (
                shaped(value[each.name], found[each.name], each.dataType)
                if each.name in found
                else sf.lit(None).cast(each.dataType)
            ).alias(each.name)
            for each in table.fields
        ]
        return sf.when(value.isNotNull(), sf.struct(*fields))
    if isinstance(records, ArrayType) and isinstance(table, ArrayType):
        old, new = records.elementType, table.elementType
        return value if old == new else sf.transform(value, lambda each: shaped(each, old, new))
    if isinstance(records, MapType) and isinstance(table, MapType):
        keys, values = (records.keyType, table.keyType), (records.valueType, table.valueType)
        if keys[0] != keys[1]:
            value = sf.transform_keys(value, lambda key, _: shaped(key, *keys))
        if values[0] != values[1]:
            value = sf.transform_values(value, lambda _, each: shaped(each, *values))
        return value
    return value.cast(table)
