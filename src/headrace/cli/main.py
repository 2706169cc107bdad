"""The `headrace` command."""

from __future__ import annotations

import gc

import click

from headrace.cli.lazy_group import LazyGroup
from headrace.core.build import this_build

_COMMANDS = {
    "up": ("headrace.cli.up:up", "Run a local broker or cluster until Ctrl-C."),
    "broker": ("headrace.cli.broker:broker", "Run one broker from a server.properties file."),
    "host": ("headrace.cli.host:host", "Run one broker per core of this host."),
    "cluster": (
        "headrace.cli.cluster:cluster",
        "Begin a cluster, look at it; drain, rebalance and recover it.",
    ),
    "topic": ("headrace.cli.topic:topic", "Create, list, describe, alter, move, trim and delete topics."),
    "group": ("headrace.cli.group:group", "Look at consumer groups, find and fix their lag, delete them."),
    "txn": ("headrace.cli.txn:txn", "Look at transactions; find and abort those that hold consumers up."),
    "link": ("headrace.cli.link:link", "Copy topics of another cluster byte by byte; take them over."),
    "migrate": ("headrace.cli.migrate:migrate", "Move topics and groups of a running Apache Kafka here."),
    "apply": ("headrace.cli.apply:apply", "Make a cluster what a file says; or check that it is."),
    "export": ("headrace.cli.export:export", "Print what a cluster has, as the file for `apply`."),
    "config": ("headrace.cli.config:config", "Show and change the settings of topics and brokers."),
    "user": ("headrace.cli.user:user", "Create, list and delete users; change their passwords."),
    "acl": ("headrace.cli.acl:acl", "Grant and revoke rights, explain and check them."),
    "quota": ("headrace.cli.quota:quota", "Show and change quotas of users, client ids and addresses."),
    "cert": ("headrace.cli.cert:cert", "Make, renew and show certificates for brokers and clients."),
    "doctor": ("headrace.cli.doctor:doctor", "Find what is wrong with a cluster; say what to do."),
    "top": ("headrace.cli.top:top", "Watch brokers, topics, groups and moves in a terminal."),
    "produce": ("headrace.cli.produce:produce", "Send lines from standard input or a file to a topic."),
    "consume": ("headrace.cli.consume:consume", "Print the records of a topic."),
    "query": ("headrace.cli.query:query", "Ask a topic in SQL, by DuckDB."),
    "console": ("headrace.cli.console:console", "Serve pages that show a cluster in a browser."),
    "exporter": ("headrace.cli.exporter:exporter", "Serve lags of groups and the audit to Prometheus."),
    "registry": ("headrace.cli.registry:registry", "Run a schema registry over a topic."),
    "connect": ("headrace.cli.connect:connect", "Run a worker for connectors on Spark, and talk to it."),
    "log": ("headrace.cli.log:log", "Look into files of a log, verify them; adopt those of Apache Kafka."),
    "lake": ("headrace.cli.lake:lake", "Load topics into Delta, Iceberg or Parquet tables."),
    "table": ("headrace.cli.table:table", "Keep the latest value of each key of a topic as a table."),
    "mirror": ("headrace.cli.mirror:mirror", "Copy topics into another cluster, every record once."),
    "audit": ("headrace.cli.audit:audit", "Prove that every record arrived once, in log and lake."),
    "spark": ("headrace.cli.spark:spark", "Make this machine ready for the pipeline on Spark; check it."),
    "tier": ("headrace.cli.tier:tier", "Keep history in an object store: is a bucket fit for it?"),
    "zookeeper": (
        "headrace.cli.zookeeper:zookeeper",
        "Make this machine ready to run clusters of several brokers.",
    ),
    "completion": ("headrace.cli.completion:completion", "Print the completion script of a shell."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(str(this_build()), prog_name="headrace")
def cli() -> None:
    """Headrace, a Kafka-compatible log for Python and PySpark teams.

    Start one with `headrace up`. Any Kafka client can talk to it.
    """


def main() -> None:
    try:
        cli.main(prog_name="headrace")
    finally:
        # The process gives its memory back as a whole. To look through it for garbage before that would be a
        # tenth of what a short command costs.
        gc.freeze()


if __name__ == "__main__":
    main()
