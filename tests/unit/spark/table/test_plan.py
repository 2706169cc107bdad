"""What has to be done before a table's next batch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from headrace.spark.decoding.formats import Decoding, Format
from headrace.spark.lake.table_schema import follow
from headrace.spark.table.config import IndexSpec, KeyFormat, TableSpec, ViewSpec
from headrace.spark.table.plan import (
    NeedsRebuild,
    Standing,
    check_key,
    definition,
    derived_definitions,
    renumbered,
    starting,
    to_derive,
)

_SPEC = TableSpec(
    name="orders",
    topic="orders",
    decoding=Decoding(Format.BYTES),
    dead_letters="dead",
    indexes=(IndexSpec("by_customer", ("customer",)), IndexSpec("by_day", ("day",))),
    views=(ViewSpec("customers", "by_customer", ("count(*) AS n",)),),
)
_NAMES = list(derived_definitions(_SPEC))


def standing(
    step: int = 7,
    derived: dict[str, int] | None = None,
    definitions: dict[str, str] | None = None,
    rebuilt: int = 0,
) -> Standing:
    return Standing(
        step,
        dict.fromkeys(_NAMES, step) | (derived or {}),
        derived_definitions(_SPEC) | (definitions or {}),
        rebuilt,
    )


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        (standing(), []),
        (standing(step=-1, derived=dict.fromkeys(_NAMES, -1)), []),
        # New ones, and changed ones: a view with its index.
        (standing(derived={"by_day": -1}), ["by_day"]),
        (standing(derived={"by_customer": -1}), ["by_customer", "customers"]),
        (standing(definitions={"by_day": "other"}), ["by_day"]),
        (standing(definitions={"by_customer": "other"}), ["by_customer", "customers"]),
        (standing(definitions={"customers": "other"}), ["customers"]),
        # Cut off in a batch, of which a repetition may lack records.
        (standing(derived=dict.fromkeys(_NAMES, 6)), _NAMES),
        (standing(derived={"by_day": 6}), ["by_day"]),
        # Batches without changes leave gaps between steps.
        (standing(derived=dict.fromkeys(_NAMES, 3)), _NAMES),
        # Cut off after a rebuild's commit.
        (standing(derived=dict.fromkeys(_NAMES, 6), rebuilt=7), _NAMES),
        (standing(step=8, derived=dict.fromkeys(_NAMES, 6), rebuilt=7), _NAMES),
        (standing(rebuilt=7), []),
    ],
)
def test_what_is_derived_whole(before: Standing, wanted: list[str]) -> None:
    assert to_derive(_SPEC, before) == wanted


def test_a_definition_has_what_a_key_means() -> None:
    assert definition(_SPEC) == definition(replace(_SPEC, indexes=(), decoding=Decoding(Format.BYTES)))
    assert definition(_SPEC) != definition(replace(_SPEC, key_fields=("id",)))
    assert definition(_SPEC) != definition(replace(_SPEC, topic="other"))


def test_a_definition_has_how_a_key_is_decoded() -> None:
    def by(decoding: Decoding) -> str:
        return definition(replace(_SPEC, key=KeyFormat.AVRO, key_decoding=decoding))

    registered = by(Decoding(Format.AVRO, registry="http://one", subject="k"))
    assert registered == by(Decoding(Format.AVRO, registry="http://two", subject="k"))  # it moved
    others = [
        by(Decoding(Format.AVRO, registry="http://one", subject="j")),
        by(Decoding(Format.AVRO, schema='"a"')),
        by(Decoding(Format.AVRO, schema='"b"')),
    ]
    assert len({registered, *others}) == 4


def test_a_key_that_would_change_is_refused() -> None:
    spec = replace(_SPEC, key_fields=("id",))
    table = StructType().add("id", IntegerType()).add("total", IntegerType())
    check_key(spec, follow(table, table))
    check_key(spec, follow(table, StructType().add("id", IntegerType()).add("total", LongType())))
    check_key(spec, follow(table, StructType().add("id", IntegerType()).add("total", StringType())))
    for other in (LongType(), StringType()):
        with pytest.raises(NeedsRebuild, match=r"column id.*headrace table rebuild orders"):
            check_key(spec, follow(table, StructType().add("id", other)))


@pytest.mark.parametrize(
    ("planned", "last", "first"),
    [
        (4, 14, 10),  # all are through, or the last is to be repeated
        (4, 13, 10),
        (4, 0, 10),
        # The tables are past the checkpoint: the batch to be repeated, and all after it, get new steps.
        (4, 15, 12),
        (4, 30, 27),
        (0, 11, 12),
    ],
)
def test_a_batch_after_an_old_checkpoint_has_a_step_that_is_new(planned: int, last: int, first: int) -> None:
    assert renumbered(10, planned, last) == first
    assert renumbered(first, planned, last) == first  # a start that is cut off does no more
    assert last <= first + planned


def test_a_start_is_behind_what_is_there() -> None:
    begins = {("t", 0): 10, ("t", 1): 5}
    following = {("t", 1): 8, ("t", 2): 3}
    assert starting(begins, following, {"t": [0, 1, 2, 3]}) == {
        ("t", 0): 10,
        ("t", 1): 8,
        ("t", 2): 3,
        ("t", 3): -2,
    }
