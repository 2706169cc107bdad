"""What commands share that look into a bucket: which one, what it lists, and whose objects they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

import click

from headrace.cli.options import F, bundled
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure

if TYPE_CHECKING:
    from headrace.core.ports_objects import ObjectEntry, ObjectStore
    from headrace.tier.names import TieredPartition

_SCHEMES: Final = ("s3://", "gs://", "az://")


def _complete_url(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return [scheme for scheme in _SCHEMES if scheme.startswith(incomplete)]


class Bucket(NamedTuple):
    url: str
    endpoint: str | None
    region: str | None
    deadline: float

    @contextmanager
    def opened(self) -> Iterator[ObjectStore]:
        from headrace.objects.opening import open_bucket

        store = open_bucket(self.url, endpoint=self.endpoint, region=self.region)
        try:
            yield store
        finally:
            store.close()


def bucket_options(command: F) -> F:
    """As one argument, `bucket`."""
    return bundled(
        "bucket",
        Bucket,
        ("url", "endpoint", "region", "deadline"),
        (
            click.argument("url", metavar="BUCKET_URL", shell_complete=_complete_url),
            click.option("--endpoint", metavar="URL", help="Of a store that speaks S3 and is not Amazon's."),
            click.option("--region", metavar="NAME", help="Of an S3 bucket; by default AWS_REGION."),
            click.option(
                "--deadline",
                type=click.FloatRange(0, min_open=True),
                default=30.0,
                show_default=True,
                metavar="SECONDS",
                help="How long the store may take to answer one call.",
            ),
        ),
    )(command)


class Known(NamedTuple):
    """What brokers say."""

    cluster_id: str
    topics: dict[UUID, str]


async def known_topics(cluster: Cluster) -> Known:
    reply = await cluster.retried(cluster.metadata)
    if not reply.cluster_id:
        raise ClientFailure("the brokers tell no cluster id, which keys in the bucket begin with")
    return Known(reply.cluster_id, {topic.topic_id: topic.name or "" for topic in reply.topics})


def listed(store: ObjectStore, prefix: str, deadline_seconds: float) -> Sequence[ObjectEntry]:
    from headrace.core.ports_objects import Listing

    outcome = store.list(prefix, deadline_seconds=deadline_seconds)
    if not isinstance(outcome, Listing):
        raise ClientFailure(
            f"the store does not list its objects: {outcome.reason}",
            "`headrace tier check` says what it lacks; --deadline gives it longer",
        )
    return outcome.objects


def by_partition(
    objects: Sequence[ObjectEntry],
) -> dict[tuple[str, TieredPartition], list[ObjectEntry]]:
    """By cluster id and partition; what belongs to none is somebody else's."""
    from headrace.tier.names import parse_key

    found: dict[tuple[str, TieredPartition], list[ObjectEntry]] = {}
    for each in objects:
        place = parse_key(each.key)
        if place is not None:
            found.setdefault(place, []).append(each)
    return found
