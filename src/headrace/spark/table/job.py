"""Tables of latest values, kept up: one streaming query for each table.

from headrace.spark.table import config, job
job.run(spark, config.load(Path("table.toml")), once=True)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from headrace.spark.jvm import require_kafka
from headrace.spark.lake import locks
from headrace.spark.lake.batch_errors import told_to_spark
from headrace.spark.lake.batches import Done
from headrace.spark.lake.failures import is_loss, short
from headrace.spark.lake.job import Lake, LoadFailed, Loading, attend, judge
from headrace.spark.lake.plan import Route, reader_options
from headrace.spark.table.config import TableConfig, TableSpec
from headrace.spark.table.identity import check_topic
from headrace.spark.table.lineage import Lineage
from headrace.spark.table.loader import TableLoader
from headrace.spark.table.opened import Opened
from headrace.spark.table.plan import route_of, table_state
from headrace.spark.table.starting import prepare, settle


@dataclass
class Tables(Lake):
    """The lake's way of looking after queries, with a query for each table instead of each topic."""

    specs: dict[str, TableSpec] = field(default_factory=dict)
    behind: dict[str, dict[str, str]] = field(default_factory=dict)
    """Of each table the views that cannot be computed, and why."""

    def discover(self) -> None:
        there = set(self.topic_ids.names())
        self.absent = sorted({spec.topic for spec in self.specs.values()} - there)
        for spec in self.specs.values():
            if spec.topic in there and spec.name not in self.loading:
                route = self._route(spec)
                self.loading[spec.name] = Loading(route, self.done_before(route))

    def _lineage(self, spec: TableSpec) -> Lineage:
        return Lineage(self.files, table_state(self.config, spec))

    def _opened(self, spec: TableSpec) -> Opened:
        return Opened(self.spark, self.config, spec)

    def _route(self, spec: TableSpec) -> Route:
        return route_of(self.config, spec, settle(self._lineage(spec), self._opened(spec)))

    def start(self, topic: Loading) -> None:
        spec = self.specs[topic.route.table]
        opened, lineage = self._opened(spec), self._lineage(spec)
        start = prepare(lineage, opened, settle(lineage, opened), self.topic_ids.of(spec.topic))
        topic.route = route_of(self.config, spec, start.rebuilt)
        reader = self.spark.readStream.format("kafka").options(
            **reader_options(self.config, spec.topic, start.offsets)
        )

        def check() -> None:
            check_topic(spec, start.topic_id, self.topic_ids.of(spec.topic))

        loader = TableLoader(
            self.config, spec, topic.route, start.first_step, self.files, check, start.behind
        )
        self.behind[spec.name] = loader.behind
        topic.written = loader.written
        topic.query = self.begin(
            reader.load()
            .writeStream.queryName(f"table {spec.name}")
            .option("checkpointLocation", topic.route.checkpoint)
            .foreachBatch(told_to_spark(loader, lambda: self.stopping))
        )
        topic.topic_id = start.topic_id

    def dead_letters_of(self, topic: Loading) -> DataFrame:
        return self._opened(self.specs[topic.route.table]).dead.read()

    def explain(self, text: str, route: Route) -> str:
        if is_loss(text) and self.config.on_data_loss == "stop":
            return (
                f"records of {route.topic} that {route.table} has not seen are gone (retention), or the "
                f"topic was made anew. `headrace table rebuild {route.table}` begins again with what there "
                f"is. Spark said: {short(text)}"
            )
        return short(text)


def judge_views(behind: Mapping[str, Mapping[str, str]]) -> None:
    """Tables and indexes are kept up; whoever waits for a view must hear of it."""
    said = [f"{table}: {why}" for table, views in behind.items() for why in views.values()]
    if said:
        raise LoadFailed("\n".join(said))


def run(
    spark: SparkSession,
    config: TableConfig,
    *,
    once: bool = False,
    stop: threading.Event | None = None,
    told: Callable[[Tables], None] = lambda _: None,
) -> list[Done]:
    """Keep tables up until `stop` is set, or with `once` bring them to where the topics end now."""
    require_kafka(spark, "a table")
    stopping = threading.Event() if stop is None else stop
    with locks.held(config.store.state, "run", spark, part="table"):
        tables = Tables(spark, config.store, once, specs={spec.name: spec for spec in config.tables})
        attend(tables, stopping, told, lambda: None)
    tables.look_into_dead_letters()
    if once and not stopping.is_set():
        judge(tables)
        judge_views(tables.behind)
    return [table.done for table in tables.loading.values()]
