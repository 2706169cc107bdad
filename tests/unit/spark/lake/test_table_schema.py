"""How tables name their columns and follow the schema of their records."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from headrace.spark.lake.table_schema import ddl, follow, statements, table_names, table_struct


def struct(**types: DataType) -> StructType:
    return StructType([StructField(name, each) for name, each in types.items()])


def test_a_field_called_like_a_column_of_the_record_gets_another_name() -> None:
    names = table_names(["id", "Timestamp", "a b", "a_b"], ["timestamp"])
    assert names == ["id", "value_Timestamp", "a_b", "value_a_b"]
    assert table_names(["x", "X", "x"]) == ["x", "value_X", "value_x_2"]


def test_everything_in_a_table_may_be_null_and_has_a_type() -> None:
    required = StructType([StructField("c", IntegerType(), False), StructField("n", NullType())])
    found = table_struct(struct(b=required, d=ArrayType(required, False)))
    loose = struct(c=IntegerType(), n=StringType())
    assert found == struct(b=loose, d=ArrayType(loose))


def test_a_struct_without_fields_is_a_text() -> None:
    """Parquet has no such struct, and a table could not be written."""
    found = table_struct(struct(a=StructType(), b=struct(c=ArrayType(StructType()))))
    assert found == struct(a=StringType(), b=struct(c=ArrayType(StringType())))
    assert table_struct(StructType()) == StructType()


def test_columns_are_added_and_widened_by_sql() -> None:
    table = struct(a=IntegerType(), s=struct(x=FloatType()), gone=StringType())
    odd = StructType([StructField("c d", IntegerType())])
    records = struct(a=LongType(), s=struct(x=DoubleType(), y=StringType()), b=ArrayType(odd))
    found = follow(table, records)
    assert found.conflicts == ()
    assert set(statements("t", found.changes)) == {
        "ALTER TABLE t ALTER COLUMN `a` TYPE bigint",
        "ALTER TABLE t ALTER COLUMN `s`.`x` TYPE double",
        "ALTER TABLE t ADD COLUMNS (`s`.`y` string)",
        "ALTER TABLE t ADD COLUMNS (`b` array<struct<`c d`: int>>)",
    }
    assert "gone" in found.schema.names
    assert follow(found.schema, records).changes == ()


def test_a_column_that_cannot_follow_stays_and_the_others_go_on() -> None:
    table = struct(a=IntegerType(), s=struct(x=IntegerType()))
    found = follow(table, struct(a=StringType(), s=struct(x=BooleanType()), b=IntegerType()))
    assert [conflict.column for conflict in found.conflicts] == ["a", "s"]
    assert "int cannot become string" in found.conflicts[0].reason
    assert found.schema == struct(a=IntegerType(), s=struct(x=IntegerType()), b=IntegerType())


def test_values_of_maps_are_widened() -> None:
    narrow, wide = MapType(StringType(), IntegerType()), MapType(StringType(), LongType())
    found = follow(struct(m=narrow), struct(m=wide))
    assert found.schema == struct(m=wide)
    assert list(statements("t", found.changes)) == ["ALTER TABLE t ALTER COLUMN `m`.`value` TYPE bigint"]
    odd = StructType([StructField("a`b", wide)])
    assert ddl(odd) == "struct<`a``b`: map<string, bigint>>"
