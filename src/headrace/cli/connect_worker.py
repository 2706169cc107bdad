"""The worker that `headrace connect` runs: a Spark session, and the process around it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import click

from headrace.client.security import ClientSecurity
from headrace.config.http_listener import HttpListener


def run_worker(
    kafka: Mapping[str, str], listener: HttpListener, security: ClientSecurity, options: Mapping[str, Any]
) -> None:
    from headrace.broker.runtime.logging import configure
    from headrace.connect.plugins import installed
    from headrace.connect.server import WorkerOptions, serve
    from headrace.connect.stores import Topics
    from headrace.spark.connect.context import Context
    from headrace.spark.connect.runner import SparkRunner

    configure()
    topics = Topics(options["config_topic"], options["status_topic"], options["offset_topic"])
    plugins = installed()
    spark = _session(options["master"], options["settings"])
    context = Context(spark, kafka, topics, jobs=options["jobs"])
    wanted = WorkerOptions(
        kafka["bootstrap.servers"],
        listener,
        options["group"],
        topics,
        security,
        options["session_timeout_ms"],
        options["advertise"],
    )
    try:
        asyncio.run(serve(wanted, plugins, SparkRunner(context), lambda url: click.echo(f"ready url={url}")))
    finally:
        context.close()
        if context.spark_exit_code() is None:
            spark.stop()


def _session(master: str | None, settings: tuple[str, ...]) -> Any:
    from headrace.spark.sessions import session

    extra = {"spark.ui.showConsoleProgress": "false", "spark.ui.enabled": "false"}
    if (master or "local[*]").startswith("local"):
        # Spark's 200 tasks after each shuffle are for a cluster.
        extra["spark.sql.shuffle.partitions"] = str(2 * (os.cpu_count() or 2))
        # Many small jobs: those that are over must not fill the memory.
        extra["spark.ui.retainedJobs"] = extra["spark.ui.retainedStages"] = "50"
        extra["spark.sql.ui.retainedExecutions"] = "20"
    for each in settings:
        name, equals, value = each.partition("=")
        if not equals:
            raise click.BadParameter(f"{each!r} is not NAME=VALUE", param_hint="--spark")
        extra[name.strip()] = value
    made = session("headrace connect", master=master, extra=extra)
    made.sparkContext.setLogLevel("ERROR")
    return made
