"""Builds what copies linked topics, of the parts of the broker."""

from __future__ import annotations

from concurrent.futures import Executor

from headrace.broker.cluster.channel import ServeHere
from headrace.broker.coordinators.coordinators import Coordinators
from headrace.broker.linking.host import LinkHost
from headrace.broker.linking.linking import Linking
from headrace.broker.replicas.host import ReplicaHost


def make_linking(
    host: ReplicaHost, coordinators: Coordinators, threads: Executor, serve_here: ServeHere
) -> Linking:
    """It needs what followers need, and who commits the offsets of groups."""
    ensure = coordinators.internal_topics.ensure
    return Linking(
        LinkHost(
            host.runtime,
            host.metadata,
            host.partitions,
            host.channel,
            host.flusher,
            host.truncations,
            serve_here,
            ensure,
            threads,
        )
    )
