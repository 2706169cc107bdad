"""Sessions of Spark Connect, which have no Java of their own: whoever needs it says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkAttributeError

from headrace.core.errors import HeadraceError
from headrace.spark import read_topic
from headrace.spark.lake import config as lake_config
from headrace.spark.lake import job as lake_job
from headrace.spark.table import config as table_config
from headrace.spark.table import job as table_job

_KAFKA = '[kafka]\n"bootstrap.servers" = "127.0.0.1:1"\n'
_LAKE = f'{_KAFKA}[lake]\nlocation = "/nowhere"\n[[topics]]\nname = "t"\n'
_TABLE = f'{_KAFKA}[store]\nlocation = "/nowhere"\n[[tables]]\ntopic = "t"\n'
_FILE = Path("some.toml")


class Connected:
    """As Spark's own class refuses. That one needs gRPC, which nothing else here does."""

    def __getattr__(self, name: str) -> Any:
        raise PySparkAttributeError(
            errorClass="JVM_ATTRIBUTE_NOT_SUPPORTED", messageParameters={"attr_name": name}
        )


@pytest.mark.parametrize(
    "use",
    [
        lambda spark: read_topic(spark, "t", kafka={"bootstrap.servers": "127.0.0.1:1"}),
        lambda spark: lake_job.run(spark, lake_config.parse(_LAKE, _FILE), once=True),
        lambda spark: table_job.run(spark, table_config.parse(_TABLE, _FILE), once=True),
    ],
    ids=["source", "lake", "table"],
)
def test_a_session_of_spark_connect_is_refused_with_what_to_use(use: Callable[[Any], object]) -> None:
    with pytest.raises(HeadraceError, match=r"one of Spark Connect.*headrace\.spark\.session\(\)"):
        use(Connected())
