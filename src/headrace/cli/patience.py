"""A command that waits says what for, on standard error, within two seconds; and why, where that is known."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

import click

from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, ConnectionLost, Refused, TimedOut, Unreachable
from headrace.client.refusals import RETRIABLE

SILENT_SECONDS: Final = 1.5
_LOOK_SECONDS: Final = 0.2
_AGAIN_SECONDS: Final = 10.0
_CAUSE_SECONDS: Final = 5.0

Progress = Callable[[], str]
"""How far the command is, for the same line; empty if there is nothing to say."""


async def tell_of_waiting(cluster: Cluster, over: asyncio.Event, progress: Progress = str) -> None:
    """Until it is over: tell of trouble, every ten seconds while it lasts, and of its end."""
    began: float | None = None
    next_at = 0.0
    while not await _is_over(over):
        trouble, now = cluster.waits.trouble(SILENT_SECONDS), time.monotonic()
        if trouble is None:
            if began is not None:
                _say(f"the cluster answers again, after {now - began:.0f} s", progress())
                began = None
        elif began is None or now >= next_at:
            _say(f"waiting: {trouble}", progress())
            cause = await frozen(cluster)
            if cause:
                _say(f"waiting: {cause}")
            began = now - SILENT_SECONDS if began is None else began
            next_at = now + _AGAIN_SECONDS


async def _is_over(over: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(_LOOK_SECONDS):
            return await over.wait()
    except TimeoutError:
        return False


def _say(text: str, more: str = "") -> None:
    click.echo(f"{text}; {more}" if more else text, err=True)


async def frozen(cluster: Cluster) -> str:
    """Why nothing can be changed, if that is so: no broker that answers reaches ZooKeeper."""
    from headrace.client.broker_health import ask_brokers  # most commands never wait

    try:
        async with asyncio.timeout(_CAUSE_SECONDS):
            reports = await ask_brokers(cluster, cluster.known_brokers)
    except TimeoutError:
        return ""
    answering = [report for report in reports.values() if report.answers]
    if not answering or any(report.reaches_zookeeper is not False for report in answering):
        return ""
    servers = answering[0].figures.get("zookeeper.servers", "")
    return (
        f"no broker reaches ZooKeeper at {servers}: until it answers, the controller can change no topic and"
        " elect no leader"
    )


async def explain(cluster: Cluster, error: ClientFailure) -> None:
    """Add to the hint of an error that passes what keeps it from passing."""
    passing = isinstance(error, (TimedOut, ConnectionLost, Unreachable)) or (
        isinstance(error, Refused) and error.code in RETRIABLE
    )
    cause = await frozen(cluster) if passing else ""
    if cause:
        error.hint = f"{cause}; `headrace cluster status` shows the whole picture"
