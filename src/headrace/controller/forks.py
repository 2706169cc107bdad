"""Forks of topics with history in an object store: what has to be true of one when it is created."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.config.tiering import ENABLE, FORK, fork_point
from headrace.controller.image import ConfigResource, MetadataImage, ResourceType
from headrace.core.errors import InvalidConfig, UnknownTopicId


def first_epochs(image: MetadataImage, configs: Mapping[str, str], partitions: int) -> Sequence[int]:
    """The leader epochs with which partitions begin. Those of a fork come after all that its origin had: the
    records that both name carry the origin's."""
    point = fork_point(configs.get(FORK, ""))
    if point is None:
        return [0] * partitions
    origin = image.topic_by_id(point.origin)
    if origin is None:
        raise UnknownTopicId("the topic to be forked does not exist any more")
    settings = image.configs(ConfigResource(ResourceType.TOPIC, origin.name))
    if settings.get(ENABLE, "").strip().lower() != "true":
        raise InvalidConfig(f"{origin.name!r} has no history in an object store, and cannot be forked")
    if settings.get(FORK):
        raise InvalidConfig(f"{origin.name!r} is a fork itself, and cannot be forked: fork its origin")
    if not len(origin) == len(point.offsets) == partitions:
        raise InvalidConfig(
            f"a fork has as many partitions as its origin: {len(origin)}, and not {partitions} with"
            f" {len(point.offsets)} offsets"
        )
    return [origin.leader_epoch(partition) + 1 for partition in range(partitions)]
