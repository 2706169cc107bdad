"""Levels that the whole cluster has agreed on, and the record versions that a level allows.

A record is written in the version of the finalised `metadata.version`, so that every broker that could
register can read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.controller.image import METADATA_VERSION, TRANSACTION_VERSION, MetadataImage
from headrace.controller.operations import RecordGroup, Result
from headrace.core.ids import BrokerId
from headrace.protocol.message import Message
from headrace.protocol.stored.feature_level_record import FeatureLevelRecord

LATEST_METADATA_VERSION: Final = 25
"""Kafka's number for its release 4.0 (4.0-IV3): directories in partitions, eligible leaders."""

LATEST_TRANSACTION_VERSION: Final = 2
"""Every end of a transaction raises the producer's epoch (KIP-890). Clients switch to it by themselves."""

SUPPORTED: Final[Mapping[str, tuple[int, int]]] = {
    METADATA_VERSION: (LATEST_METADATA_VERSION, LATEST_METADATA_VERSION),
    TRANSACTION_VERSION: (0, LATEST_TRANSACTION_VERSION),
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
    groups.extend(finalise_agreed(image))
    return Result(groups, None)


def finalise_agreed(
    image: MetadataImage, joining: tuple[int, Mapping[str, tuple[int, int]]] | None = None
) -> list[RecordGroup]:
    """Levels that a cluster of an earlier version has not got, once no broker of that version is left.

    `joining`: a broker that registers now, and what it supports.
    """
    if TRANSACTION_VERSION in image.features:
        return []
    supported = {broker.broker_id: broker.features for broker in image.brokers.values()}
    if joining is not None:
        supported[BrokerId(joining[0])] = joining[1]
    if any(
        features.get(TRANSACTION_VERSION, (0, 0))[1] < LATEST_TRANSACTION_VERSION
        for features in supported.values()
    ):
        return []
    record = FeatureLevelRecord(name=TRANSACTION_VERSION, feature_level=LATEST_TRANSACTION_VERSION)
    return [[record]]
