"""`headrace cluster unregister` and `headrace cluster recover-metadata`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.render import print_json
from headrace.cli.values import counted
from headrace.cli.zookeeper_options import broker_file_option, ensemble_of
from headrace.client import health, reassignments
from headrace.client.balancing_exclusion import include_in_balancing
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.topics import list_topics

if TYPE_CHECKING:
    from headrace.broker.storage.metadata_recovery import MetadataCopy
    from headrace.config.zookeeper_address import ZooKeeperAddress
    from headrace.config.zookeeper_security import ZooKeeperSecurity


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
        if not any(known.broker_id == broker for known in view.brokers):
            raise ClientFailure(
                f"no broker {broker} is registered", "`headrace cluster status` shows the brokers that are"
            )
        if any(known.alive and known.broker_id == broker for known in view.brokers):
            raise ClientFailure(
                f"broker {broker} is alive",
                "drain it, stop it, then unregister it; if it has stopped just now, try again in a moment",
            )
        held = [
            f"{topic.name}-{state.partition}"
            for topic in await list_topics(cluster, internal=True)
            for state in topic.partitions
            if broker in state.replicas
        ]
        if held:
            raise ClientFailure(
                f"broker {broker} still has replicas of {counted(len(held), 'partition')}, "
                f"{held[0]} among them",
                f"`headrace cluster drain {broker}` moves them to other brokers",
            )
        await reassignments.unregister_broker(cluster, broker)
        await include_in_balancing(cluster, broker)

    with_cluster(bootstrap, operation)
    if as_json:
        print_json({"unregistered": broker})
    else:
        click.echo(f"unregistered broker {broker}")


@click.command("recover-metadata")
@click.option("--zookeeper", metavar="HOST:PORT/CHROOT", help="The empty ensemble to write into.")
@broker_file_option
@click.option(
    "--from",
    "directories",
    required=True,
    multiple=True,
    metavar="LOG_DIR",
    type=click.Path(exists=True, file_okay=False),
    help="A log directory of a stopped broker; may be repeated, the longest copy is used.",
)
@click.option("--accept-damage", is_flag=True, help="Use a copy up to where it is damaged.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def recover_metadata(
    zookeeper: str | None,
    config: str | None,
    directories: tuple[str, ...],
    accept_damage: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Write a broker's copy of the metadata into a ZooKeeper that has lost everything.

    Every broker keeps a copy in one of its log directories. Stop all brokers, give the directories of as many
    as you can reach, and start the brokers again afterwards. No data of any topic is touched. What the copy
    does not know, a topic that was created in the last second for instance, is not known afterwards.
    """
    from headrace.broker.storage.metadata_recovery import best_copy, read_copy

    address, security = ensemble_of(config, zookeeper)
    copies = [read_copy(directory) for directory in directories]
    for copy in copies:
        click.echo(_sentence(copy), err=True)
    usable = [copy for copy in copies if copy.fault is None or accept_damage]
    if not usable:
        raise ClientFailure(
            "every copy is damaged",
            "give the directory of another broker, or --accept-damage to use what is whole",
        )
    chosen = best_copy(usable)
    if not yes:
        click.confirm(
            f"write the metadata of {chosen.directory} to ZooKeeper at {address}?", abort=True, err=True
        )
    epoch = _restore(address, security, chosen)
    if as_json:
        print_json(
            {
                "from": chosen.directory,
                "cluster_id": chosen.cluster_id,
                "end_offset": chosen.end_offset,
                "topics": chosen.topics,
                "controller_epoch": epoch,
            }
        )
    else:
        click.echo(
            f"restored cluster {chosen.cluster_id} with {counted(chosen.topics, 'topic')}; start the brokers"
        )


def _sentence(copy: MetadataCopy) -> str:
    moment = datetime.fromtimestamp(copy.timestamp_ms / 1000, UTC).isoformat(timespec="seconds")
    damage = f"; damaged after that: {copy.fault}" if copy.fault else ""
    held = f"{counted(copy.topics, 'topic')}, {counted(copy.end_offset, 'record')}"
    return f"{copy.directory}: {held}, the last of {moment}{damage}"


def _restore(address: ZooKeeperAddress, security: ZooKeeperSecurity, copy: MetadataCopy) -> int:
    import asyncio

    from headrace.coordination.restore import restore
    from headrace.core.ids import BrokerEpoch

    return asyncio.run(
        restore(
            address,
            copy.batches,
            cluster_id=copy.cluster_id,
            broker_epoch=BrokerEpoch(copy.broker_epoch),
            security=security,
        )
    )
