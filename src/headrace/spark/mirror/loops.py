"""How a mirror knows what it must not carry back: each mirrored record says through which clusters it came.

Names of topics need not differ, then: two mirrors may go between the same topics of two clusters, one in each
direction. A record is left out where it has been on the target before.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, BinaryType, StringType, StructField, StructType

HEADER: Final = "headrace.mirrored.from"
"""Its value is the id of a cluster. Who was mirrored twice has it twice, the first cluster first."""
_HEADERS: Final = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)


def was_on(cluster_id: str, headers: Column) -> Column:
    """True where a record has been on that cluster before."""
    return sf.coalesce(
        sf.exists(
            headers,
            lambda each: (each["key"] == HEADER) & (each["value"] == sf.lit(cluster_id.encode())),
        ),
        sf.lit(False),
    )


def with_origin(cluster_id: str, headers: Column) -> Column:
    """The headers with one more, behind those that are there."""
    origin = sf.struct(sf.lit(HEADER).alias("key"), sf.lit(cluster_id.encode()).alias("value"))
    none = sf.array().cast(_HEADERS)
    return sf.concat(sf.coalesce(headers, none), sf.array(origin).cast(_HEADERS))
