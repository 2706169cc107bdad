"""What others get to see of a query: where secrets are looked for."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession


def plans(spark: SparkSession) -> str:
    """What Spark's UI and event log show of every query of this session."""
    store = spark._jsparkSession.sharedState().statusStore()
    executions = store.executionsList()
    found = []
    for at in range(executions.size()):
        each = executions.apply(at)
        found += [each.description(), each.details(), each.physicalPlanDescription()]
    return "\n".join(map(str, found))


def kept(directory: Path) -> bytes:
    """All that lies in the files of a directory."""
    return b"\n".join(path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file())
