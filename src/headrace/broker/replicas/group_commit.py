"""What a follower has copied, and must have on its disk before it says so."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from headrace.broker.replicas.fetch_session import Followed
from headrace.broker.replicas.host import FollowingPartition, ReplicaHost
from headrace.core.errors import HeadraceError

Member = Followed[FollowingPartition]


async def sync_all(host: ReplicaHost, unsynced: list[Member], on_failed: Callable[[Member], None]) -> None:
    """Group commit: what the next fetch reports must be on the disk. Several logs sync in parallel."""
    done = host.runtime.loop.create_future()
    left = len(unsynced)

    def told(one: Member, error: HeadraceError | None) -> None:
        nonlocal left
        left -= 1
        if error is not None:
            on_failed(one)
        if not left and not done.done():
            done.set_result(None)

    for one in unsynced:
        host.flusher.flush(one.partition.log, partial(told, one))
    await done
