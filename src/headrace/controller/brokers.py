"""Brokers: their registrations and incarnations.

Each registration is a new incarnation. What the one before it led moves in the same group of records, and
with it the memberships in ISRs: an epoch belongs to the process that was given it, and a log that a crash may
have shortened is in sync with nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple
from uuid import UUID

from headrace.controller.features import finalise_agreed
from headrace.controller.image import BrokerRegistration, Endpoint
from headrace.controller.operations import RecordGroup, Result
from headrace.controller.partition_changes import PartitionChanges
from headrace.controller.policy import ReplicationPolicy
from headrace.controller.topic_image import UNASSIGNED_DIRECTORY, TopicImage
from headrace.core.errors import InvalidRequest, StaleBrokerEpoch, UnknownServerId, UnsupportedVersion
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.protocol.message import Message
from headrace.protocol.stored.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from headrace.protocol.stored.unregister_broker_record import UnregisterBrokerRecord

Stopped = Literal["clean", "same-boot", "unknown"]
"""How the incarnation before ended: "same-boot" was killed on a host that stayed up, and lost nothing."""


class BrokerDescription(NamedTuple):
    """What a broker says of itself when it registers."""

    broker_id: BrokerId
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    directories: tuple[UUID, ...] = ()
    features: Mapping[str, tuple[int, int]] = MappingProxyType({})
    previous_epoch: int = -1
    """The broker epoch under which these directories were closed cleanly; -1 if they were not."""
    stopped: Stopped = "unknown"
    earlier_incarnations: tuple[UUID, ...] = ()
    """Those since which nothing was lost: a controller may have missed some of them, and knows the broker by
    one of these."""
    lost: frozenset[tuple[str, int]] = frozenset()
    """Replicas, by topic and partition, that are damaged or missing, though the rest is vouched for. By name:
    what is left of a folder need not say which topic of that name it was."""


def register(
    policy: ReplicationPolicy, broker: BrokerDescription, epoch: BrokerEpoch, *, fenced: bool = True
) -> Result[None]:
    """Each registration is a new incarnation: its epoch is above the one before it.

    `fenced` False is for a node that is a cluster of its own: nobody could take over from it, so it keeps its
    memberships, and `renew_leaderships` gives it new epochs.
    """
    before = policy.image.brokers.get(broker.broker_id)
    if before is not None and epoch <= before.epoch:
        raise StaleBrokerEpoch(
            f"broker {broker.broker_id} is registered with epoch {before.epoch}; {epoch} is older"
        )
    for feature, level in policy.image.features.items():
        lowest, highest = broker.features.get(feature, (0, 0))
        if not lowest <= level <= highest:
            raise UnsupportedVersion(
                f"the cluster runs {feature} {level}; broker {broker.broker_id} can do {lowest} to {highest}"
            )
    group: RecordGroup = [_registration(broker, epoch, fenced)]
    if fenced and policy.safeguards.no_resumed_leadership:
        group.extend(_losses(policy, broker, before))
    return Result([group, *finalise_agreed(policy.image, (broker.broker_id, broker.features))], None)


def _registration(broker: BrokerDescription, epoch: BrokerEpoch, fenced: bool) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
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


def _losses(
    policy: ReplicationPolicy, broker: BrokerDescription, before: BrokerRegistration | None
) -> Iterator[Message]:
    """What a new incarnation does not inherit: leaderships, memberships, replicas on directories it lost."""
    broker_id = broker.broker_id
    trusted = not policy.safeguards.proof_of_a_whole_log or (
        before is not None
        and broker.stopped != "unknown"
        and (before.epoch == broker.previous_epoch or before.incarnation_id in broker.earlier_incarnations)
    )
    had = () if before is None else before.directories
    all_kept = set(had) <= set(broker.directories)
    only = broker.directories[0] if len(broker.directories) == 1 else UNASSIGNED_DIRECTORY
    me = frozenset({broker_id})
    for topic in policy.image.topics_by_name.values():
        changes: PartitionChanges | None = None
        for partition in topic.partitions_with_replica(broker_id):
            directory = topic.directory_of(partition, broker_id)
            unassigned = directory == UNASSIGNED_DIRECTORY
            gone = not unassigned and directory not in broker.directories
            isr = topic.isr(partition)
            if not gone and broker_id not in isr and broker_id not in topic.exceptional(partition).elr:
                continue
            # A directory that died under the incarnation before is not trusted either, though it is back.
            same_place = all_kept if unassigned else not gone and directory in had
            whole = trusted and (same_place or not policy.safeguards.directory_identity)
            whole = whole and (topic.name, partition) not in broker.lost
            if changes is None:
                changes = PartitionChanges(policy, topic, unfit=me)
            record = changes.change(
                partition,
                isr=[each for each in isr if each != broker_id],
                incomplete=() if whole else me,
                directories={broker_id: only} if gone else None,
                emptied=me if gone and policy.safeguards.directory_identity else frozenset(),
            )
            if record is not None:
                yield record


def eligible_partitions(topic: TopicImage, broker_id: int) -> list[int]:
    return [i for i in topic.exceptional_partitions() if broker_id in topic.exceptional(i).elr]


def unregister(policy: ReplicationPolicy, broker_id: BrokerId) -> Result[None]:
    """Forget a broker that will not come back. What it alone held is given up."""
    broker = policy.image.brokers.get(broker_id)
    if broker is None:
        raise UnknownServerId(f"broker {broker_id} is not registered")
    if not broker.fenced:
        raise InvalidRequest(f"broker {broker_id} is alive: stop it before it is unregistered")
    group: RecordGroup = []
    me = frozenset({int(broker_id)})
    for topic in policy.image.topics_by_name.values():
        eligible = eligible_partitions(topic, broker_id)
        if eligible:
            changes = PartitionChanges(policy, topic, unfit=me)
            records = [changes.change(partition, incomplete=me) for partition in eligible]
            group.extend(record for record in records if record is not None)
    group.append(UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch))
    return Result([group], None)
