"""A level is finalised when every broker can do what it promises: at once in a new cluster, and in one of an
earlier version when the last broker has been upgraded."""

from __future__ import annotations

import pytest

from headrace.controller.brokers import BrokerDescription
from headrace.controller.features import LATEST_TRANSACTION_VERSION, SUPPORTED
from headrace.controller.image import METADATA_VERSION, TRANSACTION_VERSION
from headrace.core.errors import UnsupportedVersion
from headrace.core.ids import BrokerEpoch
from headrace.protocol.stored.feature_level_record import FeatureLevelRecord
from tests.unit.controller.cluster import Cluster, description

EARLIER = {METADATA_VERSION: SUPPORTED[METADATA_VERSION]}


def earlier(broker_id: int) -> BrokerDescription:
    """A broker that knows nothing of transactions."""
    return description(broker_id)._replace(features=EARLIER)


def cluster_of_an_earlier_version(*brokers: int) -> Cluster:
    cluster = Cluster([])
    cluster.apply([FeatureLevelRecord(name=TRANSACTION_VERSION, feature_level=0)])
    for broker_id in brokers:
        cluster.do(cluster.machine.register_broker(earlier(broker_id), BrokerEpoch(10 + broker_id)))
    return cluster


def finalised(cluster: Cluster) -> int | None:
    return cluster.image.features.get(TRANSACTION_VERSION)


def test_a_new_cluster_has_it_from_the_start() -> None:
    cluster = Cluster([])
    assert finalised(cluster) == LATEST_TRANSACTION_VERSION
    assert cluster.machine.finalise_features().records == []


def test_an_earlier_cluster_waits_for_its_last_broker() -> None:
    cluster = cluster_of_an_earlier_version(0, 1)
    cluster.do(cluster.machine.finalise_features())
    assert finalised(cluster) is None
    cluster.do(cluster.machine.register_broker(description(0), BrokerEpoch(100)))
    cluster.do(cluster.machine.finalise_features())
    assert finalised(cluster) is None
    cluster.do(cluster.machine.register_broker(description(1), BrokerEpoch(101)))
    assert finalised(cluster) == LATEST_TRANSACTION_VERSION


def test_a_broker_that_is_removed_is_not_waited_for() -> None:
    cluster = cluster_of_an_earlier_version(0, 1)
    cluster.do(cluster.machine.register_broker(description(0), BrokerEpoch(100)))
    cluster.do(cluster.machine.unregister_broker(cluster.image.brokers[1].broker_id))
    assert finalised(cluster) is None
    cluster.do(cluster.machine.finalise_features())  # whoever becomes controller next
    assert finalised(cluster) == LATEST_TRANSACTION_VERSION


def test_a_broker_of_an_earlier_version_cannot_come_back() -> None:
    cluster = Cluster([0])
    with pytest.raises(UnsupportedVersion):
        cluster.machine.register_broker(earlier(1), BrokerEpoch(50))
