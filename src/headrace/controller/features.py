"""Levels that the whole cluster has agreed on, and the record versions that a level allows.

A record is written in the version of the finalised `metadata.version`, so that every broker that could
register can read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.controller.image import METADATA_VERSION, MetadataImage
from headrace.controller.operations import RecordGroup, Result
from headrace.protocol.message import Message
from headrace.protocol.stored.feature_level_record import FeatureLevelRecord

LATEST_METADATA_VERSION: Final = 25
"""Kafka's number for its release 4.0 (4.0-IV3): directories in partitions, eligible leaders."""

SUPPORTED: Final[Mapping[str, tuple[int, int]]] = {
    METADATA_VERSION: (LATEST_METADATA_VERSION, LATEST_METADATA_VERSION)
}
"""What this code can read and write; a broker says it when it registers."""

_VERSIONS: Final[Mapping[str, int]] = {
    "PartitionRecord": 2,
    "PartitionChangeRecord": 2,
    "RegisterBrokerRecord": 3,
    "BrokerRegistrationChangeRecord": 2,
}


def record_version(record: Message) -> int:
    """The version at LATEST_METADATA_VERSION, the only level there is; 0 for records with one version."""
    return _VERSIONS.get(type(record).__name__, 0)


def finalise_first(image: MetadataImage) -> Result[None]:
    """The first record of a cluster is the level that is needed to read the rest."""
    groups: list[RecordGroup] = []
    if not image.metadata_version:
        groups.append([FeatureLevelRecord(name=METADATA_VERSION, feature_level=LATEST_METADATA_VERSION)])
    return Result(groups, None)
