"""UpdateFeatures: a level may be raised to what every broker can do, and never lowered; all or nothing."""

from __future__ import annotations

import pytest

from headrace.controller.feature_updates import FeatureUpdate, UpgradeType
from headrace.controller.features import LATEST_METADATA_VERSION, LATEST_TRANSACTION_VERSION
from headrace.controller.image import METADATA_VERSION, TRANSACTION_VERSION
from headrace.core.errors import InvalidUpdateVersion
from headrace.core.ids import BrokerEpoch
from headrace.protocol.stored.feature_level_record import FeatureLevelRecord
from tests.unit.controller.cluster import Cluster, description

UPGRADE, SAFE, UNSAFE = UpgradeType


def at(level: int) -> Cluster:
    """A cluster whose transactions are at `level`, of brokers that could do more."""
    cluster = Cluster()
    cluster.apply([FeatureLevelRecord(name=TRANSACTION_VERSION, feature_level=level)])
    return cluster


def levels(cluster: Cluster) -> dict[str, int]:
    return dict(cluster.image.features)


@pytest.mark.parametrize(("before", "after"), [(0, 1), (0, 2), (1, 2)])
def test_a_level_is_raised(before: int, after: int) -> None:
    cluster = at(before)
    cluster.do(cluster.machine.update_features([FeatureUpdate(TRANSACTION_VERSION, after)]))
    assert levels(cluster)[TRANSACTION_VERSION] == after


@pytest.mark.parametrize("kind", list(UpgradeType))
def test_the_level_that_is_costs_no_record(kind: UpgradeType) -> None:
    cluster = Cluster()
    updates = [
        FeatureUpdate(TRANSACTION_VERSION, LATEST_TRANSACTION_VERSION, kind),
        FeatureUpdate(METADATA_VERSION, LATEST_METADATA_VERSION, kind),
    ]
    assert cluster.machine.update_features(updates).groups == []


@pytest.mark.parametrize(
    ("update", "words"),
    [
        (FeatureUpdate("no.such.feature", 1), "no such feature"),
        (FeatureUpdate("no.such.feature", 0), "no such feature"),
        (FeatureUpdate(TRANSACTION_VERSION, 3), "the controller supports 0 to 2"),
        (FeatureUpdate(TRANSACTION_VERSION, -1), "not below 0"),
        (FeatureUpdate(TRANSACTION_VERSION, 2, 0), "no upgrade type 0"),
        (FeatureUpdate(TRANSACTION_VERSION, 2, 4), "no upgrade type 4"),
        (FeatureUpdate(TRANSACTION_VERSION, 0, UPGRADE), "an upgrade does not lower"),
        (FeatureUpdate(TRANSACTION_VERSION, 0, SAFE), "cannot be lowered"),
        (FeatureUpdate(TRANSACTION_VERSION, 0, UNSAFE), "cannot be lowered"),
        (FeatureUpdate(TRANSACTION_VERSION, 2, SAFE), "a downgrade does not raise"),
        (FeatureUpdate(METADATA_VERSION, LATEST_METADATA_VERSION + 1), "supports"),
        (FeatureUpdate(METADATA_VERSION, LATEST_METADATA_VERSION - 1, UNSAFE), "supports"),
    ],
)
def test_what_cannot_be_is_refused_and_takes_the_rest_with_it(update: FeatureUpdate, words: str) -> None:
    cluster = at(1)
    before = levels(cluster)
    for updates in ([update], [FeatureUpdate(TRANSACTION_VERSION, 2), update]):
        with pytest.raises(InvalidUpdateVersion, match=words):
            cluster.do(cluster.machine.update_features(updates))
    assert levels(cluster) == before


def test_a_broker_that_cannot_do_it_is_named() -> None:
    cluster = at(1)
    features = {**description(5).features, TRANSACTION_VERSION: (0, 1)}
    cluster.do(cluster.machine.register_broker(description(5)._replace(features=features), BrokerEpoch(50)))
    with pytest.raises(InvalidUpdateVersion, match="broker 5 supports 0 to 1"):
        cluster.machine.update_features([FeatureUpdate(TRANSACTION_VERSION, 2)])
