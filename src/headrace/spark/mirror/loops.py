"""How a mirror knows what it must not carry back: each mirrored record says through which clusters it came.

Names of topics need not differ, then: two mirrors may go between the same topics of two clusters, one in each
direction. A record is left out where it has been on the target before.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sf

HEADER: Final = "headrace.mirrored.from"
"""Its value is the id of a cluster. Who was mirrored twice has it twice, the first cluster first."""


def was_on(cluster_id: str, headers: Column) -> Column:
    """True where a record has been on that cluster before."""
    return sf.coalesce(
        sf.exists(
            headers,
            lambda each: (each["key"] == HEADER) & (each["value"] == sf.lit(cluster_id.encode())),
        ),
        sf.lit(False),
    )
