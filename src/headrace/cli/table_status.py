"""`headrace table status`: how far tables are behind their topics, once or again and again."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.config_file import brokers_of
from headrace.cli.lake_status import check_reachable
from headrace.cli.lake_status import row as topic_row
from headrace.cli.options import json_option, watch_options, with_cluster
from headrace.cli.render import print_json, print_json_line, print_table
from headrace.cli.table_options import config_option, load_config
from headrace.client.cluster import Cluster

if TYPE_CHECKING:
    from headrace.spark.table.status import TableStatus

_COLUMNS = (
    "TABLE", "TOPIC", "PARTITIONS", "STEP", "LOADED", "LAG", "LAG-TIME", "RATE", "LAST-COMMIT",
    "UPSERTS", "DELETES",
)  # fmt: skip


@click.command()
@config_option
@watch_options
@json_option
def status(config_path: Path, watch: bool, interval: float, as_json: bool) -> None:
    """Show per table how far it is behind its topic.

    LOADED and LAG count records by offsets. STEP is the last commit of the table, its indexes and its views;
    UPSERTS and DELETES are the keys that it changed. Neither Spark nor a running job is needed.
    """
    config = load_config(config_path)
    check_reachable(config.store, "store")

    async def operation(cluster: Cluster) -> None:
        from headrace.spark.lake.files import files_for
        from headrace.spark.table.status import look

        files = files_for(config.store.state, None)
        while True:
            found = await look(cluster, config, files)
            if watch and as_json:
                print_json_line({"time": round(time.time(), 3), **_document(found)})
            elif as_json:
                print_json(_document(found))
            else:
                if watch:
                    click.echo(f"--- {time.strftime('%H:%M:%S')}")
                _print(found)
            if not watch:
                return
            sys.stdout.flush()
            await asyncio.sleep(interval)

    with brokers_of(config_path):
        with_cluster(config.bootstrap, operation, how=config.store.kafka.security())


def _document(found: TableStatus) -> dict[str, object]:
    from headrace.spark.table.status import document

    now_ms = time.time_ns() // 1_000_000
    return {"tables": [document(each, now_ms) for each in found.tables], "absent": list(found.absent)}


def _print(found: TableStatus) -> None:
    now_ms = time.time_ns() // 1_000_000
    rows = []
    for each in found.tables:
        topic, table, partitions, _batch, *rest = topic_row(each.topic, now_ms)
        last = each.last
        counts = (None, None) if last is None else (last.upserts, last.deletes)
        rows.append((table, topic, partitions, None if last is None else last.step, *rest, *counts))
    print_table(_COLUMNS, rows, empty="none of the topics exists yet")
    for each in found.tables:
        if each.topic.error is not None:
            click.echo(f"{each.topic.table}: {each.topic.error}")
    if found.absent:
        click.echo(f"topics that are not there yet: {', '.join(found.absent)}")
