"""What the shards of a coordinator need of the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from headrace.broker.cluster.lifecycle import BrokerLifecycle
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.storage.flusher import Flusher
from headrace.replication.partition import Partition


class ShardHost(NamedTuple):
    runtime: Runtime
    node: BrokerLifecycle
    flusher: Flusher
    on_suspected_corruption: Callable[[Partition, int], asyncio.Future[None]]
    may_be_had: Callable[[Partition], bool]
    """Whether another broker may have what is damaged here of a partition."""
