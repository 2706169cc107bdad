"""The key of a record, as its table has it, and what is wrong with a record that has none."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructType

from headrace.spark import columns
from headrace.spark.decoding.columns import DECODED, PROBLEM
from headrace.spark.decoding.decode import decode
from headrace.spark.lake.table_schema import table_struct
from headrace.spark.table.config import KeyFormat, TableSpec

#: The key as it came. Dead letters keep that one.
RAW_KEY: Final = "__raw_key"
KEY_PROBLEM: Final = "__key_problem"
_DECODED_KEY: Final = "__decoded_key"
_NO_KEY: Final = "the record has no key"


def with_key(frame: DataFrame, spec: TableSpec) -> DataFrame:
    """`key` becomes what the table has; what came stands in RAW_KEY, and KEY_PROBLEM says what is wrong."""
    raw = sf.col(columns.KEY)
    frame = frame.withColumn(RAW_KEY, raw)
    if spec.key_fields:
        return frame.withColumn(KEY_PROBLEM, sf.lit(None).cast(StringType()))
    missing = sf.when(raw.isNull(), _NO_KEY)
    if spec.key is KeyFormat.BYTES:
        return frame.withColumn(KEY_PROBLEM, missing)
    if spec.key is KeyFormat.STRING:
        text = raw.cast(StringType())
        broken = sf.when(~sf.is_valid_utf8(text), "the key is not UTF-8")
        return frame.withColumns({columns.KEY: text, KEY_PROBLEM: sf.coalesce(missing, broken)})
    assert spec.key_decoding is not None, "the configuration was checked"
    decoded = decode(frame, spec.key_decoding, columns.KEY).withColumnsRenamed(
        {DECODED: _DECODED_KEY, PROBLEM: KEY_PROBLEM}
    )
    found = decoded.schema[_DECODED_KEY].dataType
    assert isinstance(found, StructType), "a decoded key is a struct"
    problem = sf.coalesce(missing, sf.concat(sf.lit("the key: "), sf.col(KEY_PROBLEM)))
    return decoded.withColumns(
        {columns.KEY: sf.col(_DECODED_KEY).cast(table_struct(found)), KEY_PROBLEM: problem}
    ).drop(_DECODED_KEY)


def field_problem(spec: TableSpec, values: dict[str, Column]) -> Column | None:
    """Of a key that is made of the value's fields."""
    problem: Column | None = None
    for name in spec.key_fields:
        lacking = sf.when(
            sf.col(columns.VALUE).isNull(), f"a tombstone has no field {name}, so its row cannot be found"
        ).when(values[name].isNull(), f"field {name}, a part of the key, is null or missing")
        problem = lacking if problem is None else sf.coalesce(problem, lacking)
    return problem
