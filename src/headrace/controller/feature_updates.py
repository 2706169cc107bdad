"""Which level of a feature may be finalised instead of the one that is, on somebody's demand.

A level may be raised once every broker can do what it promises. None may be lowered:
- metadata.version: records of a level cannot be said in an older one.
- transaction.version: a producer that has begun under 2 counts its batches from 0 again after each
  transaction, trusting that its epoch is raised. If it is not, new batches look like old ones, and are
  dropped as duplicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from headrace.controller.features import SUPPORTED
from headrace.controller.image import MetadataImage
from headrace.controller.operations import Result
from headrace.core.errors import InvalidUpdateVersion
from headrace.protocol.message import Message
from headrace.protocol.stored.feature_level_record import FeatureLevelRecord


class UpgradeType(IntEnum):
    """The numbers are those of the request."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    feature: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


def update_features(image: MetadataImage, updates: Sequence[FeatureUpdate]) -> Result[None]:
    """Raises InvalidUpdateVersion if one of them cannot be made: then none is."""
    records: list[Message] = []
    for update in updates:
        if _changes(image, update):
            records.append(FeatureLevelRecord(name=update.feature, feature_level=update.level))
    return Result([records] if records else [], None)


def _changes(image: MetadataImage, update: FeatureUpdate) -> bool:
    """In the order in which Kafka looks. False: the level is that already."""
    feature, level, kind = update
    if kind not in tuple(UpgradeType):
        raise InvalidUpdateVersion(f"{feature}={level}: there is no upgrade type {kind}")
    if level < 0:
        raise InvalidUpdateVersion(f"{feature}={level}: a level is not below 0")
    _require_support(image, feature, level)
    current = image.features.get(feature, 0)
    if level < current:
        if kind == UpgradeType.UPGRADE:
            raise InvalidUpdateVersion(f"{feature} is at {current}: an upgrade does not lower it to {level}")
        raise InvalidUpdateVersion(
            f"{feature} is at {current} and cannot be lowered to {level}: what has begun with {current}"
            " depends on it"
        )
    if level > current and kind != UpgradeType.UPGRADE:
        raise InvalidUpdateVersion(f"{feature} is at {current}: a downgrade does not raise it to {level}")
    return level != current


def _require_support(image: MetadataImage, feature: str, level: int) -> None:
    if feature not in SUPPORTED:
        raise InvalidUpdateVersion(f"{feature}={level}: the controller has no such feature")
    everybody = [("the controller", SUPPORTED)]
    everybody += [(f"broker {each.broker_id}", each.features) for each in image.brokers.values()]
    for who, features in everybody:
        lowest, highest = features.get(feature, (0, 0))
        if not lowest <= level <= highest:
            raise InvalidUpdateVersion(
                f"{feature}={level}: {who} supports {lowest} to {highest}"
                if highest
                else f"{feature}={level}: {who} does not support it"
            )
