"""How far tables are: what checkpoints say was read, beside what the brokers have. Needs no Spark."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from headrace.client.cluster import Cluster
from headrace.spark.lake import status as topics
from headrace.spark.lake.files import Files
from headrace.spark.lake.status import TopicStatus
from headrace.spark.table import steps
from headrace.spark.table.config import TableConfig
from headrace.spark.table.lineage import Lineage
from headrace.spark.table.plan import derived_definitions, route_of, table_state
from headrace.spark.table.steps import LastStep


@dataclass(frozen=True)
class OneTable:
    topic: TopicStatus
    last: LastStep | None
    derived: tuple[str, ...]


@dataclass(frozen=True)
class TableStatus:
    tables: tuple[OneTable, ...]
    absent: tuple[str, ...]
    """Topics that are not there."""


async def look(cluster: Cluster, config: TableConfig, files: Files) -> TableStatus:
    there = await topics.partitions_of_topics(cluster)
    specs = [spec for spec in config.tables if spec.topic in there]
    # A rebuild that is under way has the highest number, and nothing in it yet.
    lineages = [Lineage(files, table_state(config.store, spec)) for spec in specs]
    routes = [
        route_of(config.store, spec, lineage.current()) for spec, lineage in zip(specs, lineages, strict=True)
    ]
    found = await topics.of_routes(cluster, routes, there, files)
    return TableStatus(
        tuple(
            OneTable(topic, steps.fetch(files, route.state), tuple(derived_definitions(spec)))
            for topic, route, spec in zip(found, routes, specs, strict=True)
        ),
        tuple(sorted({spec.topic for spec in config.tables} - set(there))),
    )


def document(status: OneTable, now_ms: int) -> dict[str, object]:
    return {
        **topics.document(status.topic, now_ms),
        "derived": list(status.derived),
        "last": None if status.last is None else asdict(status.last),
    }
