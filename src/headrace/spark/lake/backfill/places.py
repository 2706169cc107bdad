"""From what people say of a topic's history to the place where it is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from headrace.arrow.identity import ask_ids
from headrace.client.errors import ClientFailure
from headrace.spark.lake.config import LakeConfig
from headrace.spark.segments.place import Bucket, Directories, Place
from headrace.tier.names import encode_id


def place_of(
    config: LakeConfig,
    topic: str,
    *,
    files: Sequence[str | Path] = (),
    tier: str | None = None,
    cluster_id: str | None = None,
    topic_id: str | None = None,
    endpoint: str | None = None,
    region: str | None = None,
) -> Place:
    """Brokers are asked for the ids of cluster and topic where one is not given."""
    if bool(files) == (tier is not None):
        raise ClientFailure(
            "a history is in a bucket or in directories",
            'say which: tier "s3://BUCKET/PREFIX", or files, the log directories of brokers',
        )
    if tier is None:
        return Directories(tuple(os.path.abspath(path) for path in files))
    if cluster_id is None or topic_id is None:
        told_cluster, told_topic = ask_ids(config.bootstrap, config.kafka.security(), topic)
        cluster_id, topic_id = cluster_id or told_cluster, topic_id or encode_id(told_topic)
    return Bucket(tier, cluster_id, topic_id, endpoint, region)
