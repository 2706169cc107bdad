"""The copies: made, watched, and taken away again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from headrace.client import links, quotas
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.links import LinkView
from headrace.client.topics import list_topics
from headrace.migration import ends
from headrace.migration.ends import Both
from headrace.migration.state import Migration

LINK_CLIENT: Final = "headrace-link"
"""The client id of brokers that copy."""
_RATE: Final = "consumer_byte_rate"
_QUOTA: Final = ((quotas.CLIENT_ID, LINK_CLIENT),)
LOOK_SECONDS: Final = 0.5

Save = Callable[[], None]
Tell = Callable[[str], None]


async def make(both: Both, migration: Migration, save: Save, tell: Tell) -> None:
    """Each topic that is not there yet. The file says so before it is asked for."""
    known = {state.name for state in await list_topics(both.target)}
    for name, topic in migration.topics.items():
        found = await links.look_at_source(both.source, name)
        if not topic.was_made:
            if name in known:
                raise ClientFailure(
                    f"there is a topic {name} at the target now",
                    "delete or rename it; nothing of it was touched",
                )
            topic.was_made = True
            save()
        await links.create(
            both.target,
            found,
            name,
            bootstrap=migration.source.bootstrap,
            client_config=migration.source.client_config,
            replication_factor=migration.replication_factor,
            groups=migration.group_patterns if migration.carries_groups else (),
        )
        tell(f"{name} is linked")


async def throttle(source: Cluster, migration: Migration, rate: int | None, save: Save) -> None:
    """A client quota at the source, which Kafka and Headrace both have, for what the links read. It holds for
    each broker there; None takes away what this migration has set."""
    if rate is None and migration.throttle is None:
        return
    if rate is not None:
        migration.throttle = rate
        save()
    await quotas.alter_quotas(source, _QUOTA, {_RATE: None if rate is None else float(rate)})
    if rate is None:
        migration.throttle = None
        save()


async def until_close(both: Both, migration: Migration, small: int, tell: Tell) -> int:
    """Wait until all copies together are at most `small` records behind, and say how far they are. A source
    that is away is waited for: the brokers go on by themselves as soon as it is back."""
    while True:
        found = await ends.views(both, migration)
        check_running(found)
        lag = total_lag(found)
        if 0 <= lag <= small:
            return lag
        errors = sorted({error for view in found for error in view.errors})
        trouble = f"; the source: {errors[0]}" if errors else ""
        tell(f"{'an unknown number of' if lag < 0 else f'{lag:,}'} records behind{trouble}")
        await asyncio.sleep(LOOK_SECONDS)


def total_lag(found: Sequence[LinkView]) -> int:
    """-1 while one is not known."""
    lags = [view.lag for view in found]
    return -1 if min(lags, default=0) < 0 else sum(lags)


def check_running(found: Sequence[LinkView]) -> None:
    for view in found:
        for row in view.partitions:
            if row.stopped is not None and view.state == links.ACTIVE:
                raise ClientFailure(
                    f"partition {row.partition} of {view.topic} is copied no more: {row.stopped}",
                    "`headrace link resume` once the cause is gone, or `headrace migrate link --undo`",
                )
        if view.state == links.PAUSED:
            raise ClientFailure(
                f"the link of {view.topic} is paused", f"`headrace link resume {view.topic}` goes on"
            )


async def unmake(both: Both, migration: Migration, save: Save, tell: Tell) -> None:
    """Delete each copy that this migration has made, and nothing else."""
    known = {state.name for state in await list_topics(both.target)}
    for name, topic in migration.topics.items():
        if not topic.was_made:
            continue
        values = await links.values_of(both.target, name)
        if values.get(links.SOURCE_TOPIC_ID) == topic.topic_id and values.get(links.STATE) in (
            links.ACTIVE,
            links.PAUSED,
        ):
            await links.delete(both.target, name)
            tell(f"{name} is deleted at the target")
        elif name in known:
            tell(f"{name} stays: it is no copy of this migration any more")
        topic.was_made = False
        save()
    migration.proof, migration.carries_groups = None, False
    save()
