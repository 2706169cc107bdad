from __future__ import annotations

from uuid import UUID

import pytest

from headrace.controller.features import LATEST_METADATA_VERSION, SUPPORTED
from headrace.controller.image import METADATA_VERSION, Endpoint
from headrace.controller.producer_ids import BLOCK_LENGTH
from headrace.core.errors import CorruptLog, StaleBrokerEpoch, UnknownServerId, UnsupportedVersion
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.protocol.stored.broker_registration_change_record import BrokerRegistrationChangeRecord
from headrace.protocol.stored.producer_ids_record import ProducerIdsRecord
from tests.unit.controller.cluster import Cluster, description


def test_a_registration_says_who_and_where() -> None:
    cluster = Cluster([])
    cluster.do(cluster.machine.register_broker(description(3, "r1", 2), BrokerEpoch(4)))
    broker = cluster.image.brokers[3]
    assert broker.endpoints == (Endpoint("PLAINTEXT", "host3", 9092, 0),)
    assert (broker.epoch, broker.rack, broker.fenced, broker.active) == (4, "r1", True, False)
    assert broker.directories == (UUID(int=400), UUID(int=401))
    assert broker.features == SUPPORTED


def test_each_incarnation_has_a_higher_epoch() -> None:
    cluster = Cluster([0])
    epoch = cluster.image.brokers[0].epoch
    for stale in (epoch, BrokerEpoch(epoch - 1)):
        with pytest.raises(StaleBrokerEpoch):
            cluster.machine.register_broker(description(0), stale)
    cluster.do(cluster.machine.register_broker(description(0), BrokerEpoch(epoch + 1)))
    assert cluster.image.brokers[0].epoch == epoch + 1


def test_a_broker_that_cannot_read_the_metadata_is_refused() -> None:
    cluster = Cluster([0])
    old = description(1)._replace(features={METADATA_VERSION: (1, LATEST_METADATA_VERSION - 1)})
    with pytest.raises(UnsupportedVersion):
        cluster.machine.register_broker(old, BrokerEpoch(50))
    with pytest.raises(UnsupportedVersion):
        cluster.machine.register_broker(old._replace(features={}), BrokerEpoch(50))


def test_the_level_is_the_first_record_and_is_finalised_once() -> None:
    cluster = Cluster([0])
    assert type(cluster.log[0]).__name__ == "FeatureLevelRecord"
    assert cluster.image.metadata_version == LATEST_METADATA_VERSION
    assert cluster.machine.finalise_features().records == []


def test_fence_and_unfence() -> None:
    cluster = Cluster([0])
    cluster.fence(0)
    assert not cluster.image.brokers[0].active
    assert cluster.machine.fence_brokers([0]).records == []
    cluster.fence(0, fenced=False)
    assert cluster.image.brokers[0].active


def test_an_old_incarnation_may_not_act() -> None:
    cluster = Cluster([0])
    old = BrokerEpoch(cluster.image.brokers[0].epoch - 1)
    with pytest.raises(StaleBrokerEpoch):
        cluster.machine.unfence_broker(BrokerId(0), old)
    with pytest.raises(StaleBrokerEpoch):
        cluster.machine.allocate_producer_ids(BrokerId(0), old)
    with pytest.raises(UnknownServerId):
        cluster.machine.allocate_producer_ids(BrokerId(8), old)
    with pytest.raises(CorruptLog):
        cluster.apply([BrokerRegistrationChangeRecord(broker_id=0, broker_epoch=old, fenced=1)])


def test_a_change_of_registration_keeps_what_it_does_not_name() -> None:
    cluster = Cluster([0])
    before = cluster.image.brokers[0]
    epoch = before.epoch
    cluster.apply([BrokerRegistrationChangeRecord(broker_id=0, broker_epoch=epoch, in_controlled_shutdown=1)])
    assert cluster.image.brokers[0] == before._replace(stopping=True)
    moved = [UUID(int=5)]
    cluster.apply([BrokerRegistrationChangeRecord(broker_id=0, broker_epoch=epoch, log_dirs=moved)])
    assert cluster.image.brokers[0].directories == tuple(moved)


def test_blocks_of_producer_ids_never_overlap() -> None:
    cluster = Cluster([0, 1])
    blocks = []
    for broker_id in (0, 1, 0):
        epoch = cluster.image.brokers[broker_id].epoch
        blocks.append(cluster.do(cluster.machine.allocate_producer_ids(BrokerId(broker_id), epoch)))
    assert blocks == [(0, BLOCK_LENGTH), (BLOCK_LENGTH, BLOCK_LENGTH), (2 * BLOCK_LENGTH, BLOCK_LENGTH)]


def test_producer_ids_never_go_back() -> None:
    cluster = Cluster([0])
    cluster.apply([ProducerIdsRecord(broker_id=0, broker_epoch=0, next_producer_id=5000)])
    with pytest.raises(CorruptLog):
        cluster.apply([ProducerIdsRecord(broker_id=0, broker_epoch=0, next_producer_id=4000)])
