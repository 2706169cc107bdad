"""Files that something else than Spark's writer puts beside a table, before one commit adds them to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pyspark.sql import SparkSession

from headrace.core.errors import HeadraceError

#: Parquet's codecs, by Spark's names for them. What is not here is written as Spark's default is.
_CODECS: Final = {"none": "none", "uncompressed": "none", "gzip": "gzip", "zstd": "zstd", "lz4_raw": "lz4"}
_DEFAULT_CODEC: Final = "snappy"


class Unsuitable(HeadraceError):
    """The table can only be written by Spark; says why, and what to do instead."""


class Landing(NamedTuple):
    """Where files of one commit are written. Nobody reads them there until it is made."""

    directory: str
    """With its scheme."""
    prefix: str
    """Of their names."""
    codec: str
    """Of Parquet."""
    field_ids: Mapping[str, int] = {}
    """Of columns, by their paths in the file, where the format knows them by numbers."""


class LandedFile(NamedTuple):
    """What its writer knows of a file; only rows that are in it count."""

    name: str
    rows: int
    size: int
    topic: str
    first_partition: int
    last_partition: int
    first_offset: int
    last_offset: int
    first_ms: int
    last_ms: int
    nulls: Mapping[str, int]
    """By column."""


def field_ids(schema: Mapping[str, Any]) -> dict[str, int]:
    """Of Iceberg's schema as JSON: for each column its number, those inside of others by `a.b` and, in a
    list, `a.list.element`, as Parquet has it."""
    found: dict[str, int] = {}
    _collect(found, "", schema)
    return found


def _collect(found: dict[str, int], path: str, kind: Any) -> None:
    if not isinstance(kind, Mapping):
        return
    if kind["type"] == "struct":
        for field in kind["fields"]:
            inner = f"{path}{field['name']}"
            found[inner] = field["id"]
            _collect(found, f"{inner}.", field["type"])
    elif kind["type"] == "list":
        inner = f"{path}list.element"
        found[inner] = kind["element-id"]
        _collect(found, f"{inner}.", kind["element"])


def codec_of(spark: SparkSession) -> str:
    """With which Spark itself would write the files."""
    chosen = str(spark.conf.get("spark.sql.parquet.compression.codec", _DEFAULT_CODEC))
    return codec(chosen)


def codec(name: str) -> str:
    return _CODECS.get(name.lower(), _DEFAULT_CODEC)
