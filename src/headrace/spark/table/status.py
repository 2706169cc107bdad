"""How far tables are: what checkpoints say was read, beside what the brokers have. Needs no Spark."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from headrace.client.cluster import Cluster
from headrace.spark.lake import status as topics
from headrace.spark.lake.checkpoint import Offsets
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
    lineages = [Lineage(files, table_state(config.store, spec)) for spec in specs]
    current = [lineage.current() for lineage in lineages]
    routes = [route_of(config.store, spec, number) for spec, number in zip(specs, current, strict=True)]
    found = await topics.of_routes(cluster, routes, there, files)
    return TableStatus(
        tuple(
            OneTable(
                _after_rebuild(topic, lineage.begin(number)),
                steps.fetch(files, route.state),
                tuple(derived_definitions(spec)),
            )
            for topic, route, spec, lineage, number in zip(
                found, routes, specs, lineages, current, strict=True
            )
        ),
        tuple(sorted({spec.topic for spec in config.tables} - set(there))),
    )


def _after_rebuild(status: TopicStatus, begin: Offsets) -> TopicStatus:
    """Before its first batch a table is where the rebuild ended."""
    return replace(
        status,
        partitions=tuple(
            replace(each, loaded=begin.get((status.topic, each.partition))) if each.loaded is None else each
            for each in status.partitions
        ),
    )


def document(status: OneTable, now_ms: int) -> dict[str, object]:
    return {
        **topics.document(status.topic, now_ms),
        "derived": list(status.derived),
        "last": None if status.last is None else asdict(status.last),
    }
