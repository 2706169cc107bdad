"""Values as Confluent's serialisers write them: a zero byte, four bytes of schema id, then the record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sf

_MAGIC: Final = b"\0"
_HEADER_BYTES: Final = 5


def header_of(schema_id: int) -> bytes:
    return _MAGIC + schema_id.to_bytes(4, "big")


def has_id(value: Column, schema_id: int) -> Column:
    """Compares bytes with bytes: nothing has to be turned into a number for every record."""
    return sf.substring(value, 1, _HEADER_BYTES) == sf.lit(header_of(schema_id))


def is_listed(value: Column, schema_ids: Iterable[int]) -> Column:
    return sf.substring(value, 1, _HEADER_BYTES).isin([header_of(each) for each in schema_ids])


def schema_id(value: Column) -> Column:
    return sf.conv(sf.hex(sf.substring(value, 2, 4)), 16, 10)


def record(value: Column) -> Column:
    """What follows the header."""
    return sf.substring(value, _HEADER_BYTES + 1, 2**31 - 1)


def problem(value: Column) -> Column:
    """What is wrong with the header itself, else null."""
    return sf.when(
        sf.octet_length(value) < _HEADER_BYTES,
        "not in the registry's wire format: shorter than the five bytes of its header",
    ).when(
        sf.substring(value, 1, 1) != sf.lit(_MAGIC),
        sf.concat(
            sf.lit("not in the registry's wire format: the first byte is 0x"),
            sf.hex(sf.substring(value, 1, 1)),
            sf.lit(", not 0x00"),
        ),
    )
