"""What a shell offers after Tab: names that a broker knows, if one answers quickly, otherwise nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

from headrace.cli.options import DEFAULT_BOOTSTRAP, connect

if TYPE_CHECKING:
    from headrace.client.cluster import Cluster

PATIENCE_SECONDS = 2.0
"""Who pressed Tab waits. A broker that takes longer is as good as none."""


def complete_groups(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    async def names(cluster: Cluster) -> list[str]:
        from headrace.client.groups import list_groups

        return [group.group_id for group in await list_groups(cluster)]

    return _begin_with(context, parameter, incomplete, names)


def complete_transactions(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    async def names(cluster: Cluster) -> list[str]:
        from headrace.client.transactions import list_transactions

        return [entry.transactional_id for entry in await list_transactions(cluster)]

    return _begin_with(context, parameter, incomplete, names)


def complete_topics(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    async def names(cluster: Cluster) -> list[str]:
        from headrace.client.topics import list_topics

        return [topic.name for topic in await list_topics(cluster)]

    return _begin_with(context, parameter, incomplete, names)


def _begin_with(
    context: click.Context,
    parameter: click.Parameter,
    incomplete: str,
    ask: Callable[[Cluster], Awaitable[list[str]]],
) -> list[str]:
    import asyncio

    from headrace.core.errors import HeadraceError

    async def names() -> list[str]:
        bootstrap = context.params.get("bootstrap") or DEFAULT_BOOTSTRAP
        async with asyncio.timeout(PATIENCE_SECONDS), connect(bootstrap, context) as cluster:
            return await ask(cluster)

    given = context.params.get(parameter.name or "") or ()
    try:
        found = asyncio.run(names())
    except (HeadraceError, TimeoutError, OSError):
        return []  # a completion that prints an error would land in the middle of somebody's line
    return [name for name in found if name.startswith(incomplete) and name not in given]
