"""`headrace top`: brokers, topics, groups and moves of a cluster, live in a terminal."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import click

from headrace.cli.options import bootstrap_option, with_cluster
from headrace.cli.render import is_terminal
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.core.tasks import spawn

if TYPE_CHECKING:
    from headrace.cli.top_app import TopApp


@click.command()
@click.option(
    "--interval",
    type=click.FloatRange(0.5),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two looks. A huge cluster is looked at less often.",
)
@bootstrap_option
def top(interval: float, bootstrap: str) -> None:
    """Show brokers (1), topics by rate (2), groups by lag (3) and moves (4), live. q ends it.

    It only asks. On something that is no terminal, use `headrace cluster status --watch`.
    """
    if importlib.util.find_spec("textual") is None:
        raise ClientFailure("headrace top needs textual", 'pip install "headrace[top]"')
    if not is_terminal():
        raise ClientFailure(
            "headrace top needs a terminal", "`headrace cluster status --watch` writes lines instead"
        )
    with_cluster(bootstrap, lambda cluster: _run(cluster, interval), live=True)


async def _run(cluster: Cluster, interval: float) -> None:
    from headrace.cli.top_app import TopApp
    from headrace.observe.poller import Poller

    poller = Poller(cluster, interval_seconds=interval)

    async def watch(app: TopApp) -> None:
        looking = spawn("looks at the cluster", poller.run(), is_awaited=True)
        try:
            while True:
                await poller.moved()
                if poller.failing is not None:
                    app.fail(poller.failing.reason)
                elif poller.snapshot is not None:
                    app.take(poller.snapshot)
        finally:
            looking.cancel()

    await TopApp(watch).run_async()
