"""By which ids a cluster and a topic are known in a bucket: asked of the brokers."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from headrace.client import health
from headrace.client.cluster import Cluster
from headrace.client.security import ClientSecurity


def ask_ids(bootstrap: str, security: ClientSecurity, topic: str) -> tuple[str, UUID]:
    async def ask() -> tuple[str, UUID]:
        async with Cluster(bootstrap, client_id="headrace-arrow", security=security) as cluster:
            view = await health.describe_cluster(cluster)
            found = await cluster.retried(lambda: cluster.topic(topic))
            return view.cluster_id, found.topic_id

    with ThreadPoolExecutor(1) as apart:  # a notebook has a loop of its own
        return apart.submit(asyncio.run, ask()).result()
