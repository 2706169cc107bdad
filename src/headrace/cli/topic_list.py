"""`headrace topic list`."""

from __future__ import annotations

import click

from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.render import print_json, print_table
from headrace.client.topics import list_topics


@click.command("list")
@click.option("--internal", is_flag=True, help="Also the topics that brokers keep for themselves.")
@bootstrap_option
@json_option
def list_(internal: bool, bootstrap: str, as_json: bool) -> None:
    """List topics."""
    topics = with_cluster(bootstrap, lambda cluster: list_topics(cluster, internal=internal))
    rows = [(state.name, len(state.partitions), state.replication_factor) for state in topics]
    if as_json:
        print_json(
            [
                {"name": name, "partitions": count, "replication_factor": factor}
                for name, count, factor in rows
            ]
        )
    else:
        print_table(
            ("NAME", "PARTITIONS", "REPLICAS"),
            rows,
            empty="no topics yet: `headrace topic create NAME` makes one",
        )
