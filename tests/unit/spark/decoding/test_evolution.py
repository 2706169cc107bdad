"""Which changes of a schema a table follows, and which it refuses."""

from __future__ import annotations

import itertools

import pytest
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
    StringType,
    StructField,
    StructType,
)

from headrace.spark.decoding.evolution import AddColumn, Evolution, Refusal, WidenColumn, evolve


def _struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, type_) for name, type_ in fields.items()])


def _changes(table: StructType, records: StructType) -> list[str]:
    found = evolve(table, records)
    assert isinstance(found, Evolution), found
    # Whatever was changed, nothing is left to change: a table that followed has arrived.
    again = evolve(found.schema, records)
    assert again == Evolution((), found.schema)
    return [str(change) for change in found.changes]


def test_the_same_schema_changes_nothing() -> None:
    schema = _struct(a=IntegerType(), b=_struct(c=ArrayType(StringType())))
    assert evolve(schema, schema) == Evolution((), schema)


def test_new_fields_become_nullable_columns_at_the_end() -> None:
    inner = StructType([StructField("y", IntegerType(), nullable=False)])
    records = StructType([StructField("new", inner, nullable=False), StructField("a", LongType())])
    found = evolve(_struct(a=LongType()), records)
    assert isinstance(found, Evolution)
    assert found.changes == (AddColumn(("new",), _struct(y=IntegerType())),)
    assert found.schema == _struct(a=LongType(), new=_struct(y=IntegerType()))


def test_removed_fields_leave_their_columns() -> None:
    table = _struct(a=LongType(), b=StringType())
    assert evolve(table, _struct(b=StringType())) == Evolution((), table)


_LINES: list[list[DataType]] = [
    [ByteType(), ShortType(), IntegerType(), LongType()],
    [FloatType(), DoubleType()],
]


@pytest.mark.parametrize("line", _LINES)
def test_numbers_widen_and_never_narrow(line: list[DataType]) -> None:
    for narrow, wide in itertools.combinations(line, 2):
        found = evolve(_struct(n=narrow), _struct(n=wide))
        assert found == Evolution((WidenColumn(("n",), narrow, wide),), _struct(n=wide))
        assert evolve(_struct(n=wide), _struct(n=narrow)) == Evolution((), _struct(n=wide))


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        ((10, 2), (12, 2), (12, 2)),
        ((10, 2), (12, 4), (12, 4)),
        ((10, 2), (8, 4), (12, 4)),
        ((10, 2), (10, 0), (12, 2)),
        ((10, 2), (5, 1), (10, 2)),
    ],
)
def test_decimals_widen_to_hold_both(
    old: tuple[int, int], new: tuple[int, int], result: tuple[int, int]
) -> None:
    found = evolve(_struct(d=DecimalType(*old)), _struct(d=DecimalType(*new)))
    assert isinstance(found, Evolution)
    assert found.schema == _struct(d=DecimalType(*result))
    assert bool(found.changes) == (result != old)


def test_decimals_have_38_digits_and_some_tables_keep_their_scale() -> None:
    table = _struct(d=DecimalType(38, 2))
    assert isinstance(evolve(table, _struct(d=DecimalType(38, 3))), Refusal)
    small = _struct(d=DecimalType(8, 2))
    refusal = evolve(small, _struct(d=DecimalType(8, 3)), scale_may_grow=False)
    assert isinstance(refusal, Refusal)
    assert "3 digits after the point" in str(refusal)
    assert isinstance(evolve(small, _struct(d=DecimalType(9, 2)), scale_may_grow=False), Evolution)


def test_changes_within_structs_arrays_and_maps() -> None:
    table = _struct(
        s=_struct(x=IntegerType()),
        a=ArrayType(_struct(x=FloatType())),
        m=MapType(StringType(), _struct(x=DecimalType(4, 1))),
    )
    records = _struct(
        s=_struct(x=LongType(), y=StringType()),
        a=ArrayType(_struct(x=DoubleType(), z=ByteType())),
        m=MapType(StringType(), _struct(x=DecimalType(6, 1))),
    )
    assert _changes(table, records) == [
        "widen column s.x from int to bigint",
        "add column s.y string",
        "widen column a.element.x from float to double",
        "add column a.element.z tinyint",
        "widen column m.value.x from decimal(4,1) to decimal(6,1)",
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (IntegerType(), StringType()),
        (StringType(), IntegerType()),
        (LongType(), DoubleType()),
        (IntegerType(), DecimalType(10, 0)),
        (StringType(), _struct(x=StringType())),
        (ArrayType(StringType()), StringType()),
    ],
)
def test_what_is_neither_wider_nor_narrower_is_refused(old: DataType, new: DataType) -> None:
    refusal = evolve(_struct(s=_struct(f=old)), _struct(s=_struct(f=new)))
    assert refusal == Refusal(("s", "f"), f"{old.simpleString()} cannot become {new.simpleString()}")
    assert str(refusal).startswith("column s.f: ")


def test_names_that_differ_only_in_case_are_refused() -> None:
    assert isinstance(evolve(_struct(name=LongType()), _struct(Name=LongType())), Refusal)
    assert isinstance(evolve(_struct(), _struct(x=LongType(), X=LongType())), Refusal)
