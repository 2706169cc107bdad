"""`headrace cluster secure-zookeeper`"""

from __future__ import annotations

import click

from headrace.cli.options import json_option
from headrace.cli.render import print_json
from headrace.client.errors import ClientFailure


@click.command("secure-zookeeper")
@click.option(
    "--config",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="The server.properties of one of the brokers.",
)
@click.option("--undo", is_flag=True, help="Open the nodes to everybody again.")
@json_option
def secure_zookeeper(config: str, undo: bool, as_json: bool) -> None:
    """Give every node that a cluster has in ZooKeeper to its brokers alone.

    Nodes keep the rights that they were made with, so those from before ACLs were switched on are open still.
    First restart all brokers with TLS to ZooKeeper, then all of them with zookeeper.set.acl=true, then run
    this once; brokers go on meanwhile. To go back, restart all brokers with zookeeper.set.acl=false, and run
    this with --undo; only then may brokers come without TLS.
    """
    import asyncio

    from headrace.cli.zookeeper_options import ensemble_of
    from headrace.coordination.ensemble.access import hand_over
    from headrace.coordination.zookeeper import SESSION_TIMEOUT_MS

    address, security = ensemble_of(config, None)
    if not undo and not security.sets_acl:
        raise ClientFailure(
            f"zookeeper.set.acl is not true in {config}: a broker would make open nodes again",
            "set it in the files of all brokers, and restart them first",
        )
    count = asyncio.run(hand_over(address, security, to_everybody=undo, timeout_ms=SESSION_TIMEOUT_MS))
    if not count:
        raise ClientFailure(f"ZooKeeper at {address} has no cluster", "check zookeeper.connect and its path")
    if as_json:
        print_json({"zookeeper": str(address), "nodes": count, "open": undo})
    else:
        click.echo(f"{count} nodes at {address} are {'open to everybody' if undo else 'closed to others'}")
