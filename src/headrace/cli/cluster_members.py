"""`headrace cluster unregister` and `headrace cluster recover-metadata`."""

from __future__ import annotations

import click

from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.render import print_json
from headrace.client import admin, health, reassignments
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure


@click.command()
@click.argument("broker", type=click.IntRange(0))
@bootstrap_option
@json_option
def unregister(broker: int, bootstrap: str, as_json: bool) -> None:
    """Forget a broker that has stopped for good.

    It must be down and hold no replica any more: drain it first, then stop it.
    """

    async def operation(cluster: Cluster) -> None:
        view = await health.describe_cluster(cluster)
        if any(known.alive and known.broker_id == broker for known in view.brokers):
            raise ClientFailure(f"broker {broker} is alive", "drain it, stop it, then unregister it")
        held = [
            f"{topic.name}-{state.partition}"
            for topic in await admin.list_topics(cluster, internal=True)
            for state in topic.partitions
            if broker in state.replicas
        ]
        if held:
            raise ClientFailure(
                f"broker {broker} still has replicas of {len(held)} partitions, {held[0]} among them",
                f"`headrace cluster drain {broker}` moves them to other brokers",
            )
        await reassignments.unregister_broker(cluster, broker)

    with_cluster(bootstrap, operation)
    if as_json:
        print_json({"unregistered": broker})
    else:
        click.echo(f"unregistered broker {broker}")
