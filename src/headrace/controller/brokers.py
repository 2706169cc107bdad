"""Brokers: their registrations, incarnations and fences."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from headrace.controller.image import Endpoint, MetadataImage
from headrace.controller.operations import RecordGroup, Result
from headrace.core.errors import StaleBrokerEpoch, UnknownServerId, UnsupportedVersion
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.protocol.stored.broker_registration_change_record import BrokerRegistrationChangeRecord
from headrace.protocol.stored.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)

FENCED, UNFENCED = 1, -1
"""What a BrokerRegistrationChangeRecord says in its field `fenced`; 0 is no change."""


class BrokerDescription(NamedTuple):
    """What a broker says of itself when it registers."""

    broker_id: BrokerId
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    directories: tuple[UUID, ...] = ()
    features: Mapping[str, tuple[int, int]] = MappingProxyType({})


def register(
    image: MetadataImage, broker: BrokerDescription, epoch: BrokerEpoch, *, fenced: bool = True
) -> Result[None]:
    """Each registration is a new incarnation: its epoch is above the one before it."""
    before = image.brokers.get(broker.broker_id)
    if before is not None and epoch <= before.epoch:
        raise StaleBrokerEpoch(
            f"broker {broker.broker_id} is registered with epoch {before.epoch}; {epoch} is older"
        )
    for feature, level in image.features.items():
        lowest, highest = broker.features.get(feature, (0, 0))
        if not lowest <= level <= highest:
            raise UnsupportedVersion(
                f"the cluster runs {feature} {level}; broker {broker.broker_id} can do {lowest} to {highest}"
            )
    record = RegisterBrokerRecord(
        broker_id=broker.broker_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=epoch,
        end_points=[
            BrokerEndpoint(
                name=end.listener, host=end.host, port=end.port, security_protocol=end.security_protocol
            )
            for end in broker.endpoints
        ],
        features=[
            BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in sorted(broker.features.items())
        ],
        rack=broker.rack,
        fenced=fenced,
        log_dirs=sorted(broker.directories),
    )
    return Result([[record]], None)


def set_fenced(
    image: MetadataImage, broker_id: BrokerId, epoch: BrokerEpoch, *, fenced: bool
) -> Result[None]:
    """Empty if it is so already."""
    check_epoch(image, broker_id, epoch)
    groups: list[RecordGroup] = []
    if image.brokers[broker_id].fenced != fenced:
        change = BrokerRegistrationChangeRecord(
            broker_id=broker_id, broker_epoch=epoch, fenced=FENCED if fenced else UNFENCED
        )
        groups.append([change])
    return Result(groups, None)


def check_epoch(image: MetadataImage, broker_id: BrokerId, epoch: BrokerEpoch) -> None:
    """An old incarnation may not act for the new one."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise UnknownServerId(f"broker {broker_id} is not registered")
    if broker.epoch != epoch:
        raise StaleBrokerEpoch(f"broker {broker_id} has epoch {broker.epoch}, not {epoch}")
