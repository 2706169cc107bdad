"""What all shards of one coordinator have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from headrace.coordinators.codec import Kinds
from headrace.coordinators.shard import Shard, Timers

S = TypeVar("S", bound=Shard)

ShardFactory = Callable[[Timers, int, int], S]
"""Makes an empty shard: its timers, the partition's index, the leader epoch."""
OnEffect = Callable[[int, int, Any], None]
"""Partition, leader epoch, and what is to be done."""


class Terms(NamedTuple, Generic[S]):
    """How a shard is made, written and obeyed, whichever partition it is of."""

    kinds: Kinds
    factory: ShardFactory[S]
    on_effect: OnEffect
    compression: int
    commit_timeout_seconds: float
