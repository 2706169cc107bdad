from __future__ import annotations

import pytest

from headrace.controller.image import DEFAULT_BROKER, ConfigResource, ResourceType
from headrace.controller.operations import ConfigChange, ConfigOp
from headrace.core.errors import (
    HeadraceError,
    InvalidConfig,
    InvalidRequest,
    UnknownTopicOrPartition,
)
from tests.unit.controller.cluster import Cluster

TOPIC = ConfigResource(ResourceType.TOPIC, "t")
BROKER = ConfigResource(ResourceType.BROKER, "0")


def set_to(name: str, value: str | None) -> ConfigChange:
    return ConfigChange(ConfigOp.SET, name, value)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.create("t")
    return cluster


def amend(cluster: Cluster, resource: ConfigResource, *changes: ConfigChange) -> HeadraceError | None:
    (outcome,) = cluster.do(cluster.machine.incremental_alter_configs([(resource, changes)]))
    assert outcome.resource == resource
    return outcome.error


def test_set_and_delete(cluster: Cluster) -> None:
    assert amend(cluster, TOPIC, set_to("retention.ms", "5"), set_to("segment.ms", "60000")) is None
    assert amend(cluster, TOPIC, ConfigChange(ConfigOp.DELETE, "retention.ms")) is None
    assert cluster.image.configs(TOPIC) == {"segment.ms": "60000"}


def test_nothing_is_written_where_nothing_changes(cluster: Cluster) -> None:
    amend(cluster, TOPIC, set_to("retention.ms", "5"))
    same = [set_to("retention.ms", "5"), ConfigChange(ConfigOp.DELETE, "segment.ms")]
    assert cluster.machine.incremental_alter_configs([(TOPIC, same)]).records == []


def test_append_begins_with_the_default_and_adds_once(cluster: Cluster) -> None:
    amend(cluster, TOPIC, ConfigChange(ConfigOp.APPEND, "cleanup.policy", "compact"))
    assert cluster.image.configs(TOPIC)["cleanup.policy"] == "delete,compact"
    amend(cluster, TOPIC, ConfigChange(ConfigOp.APPEND, "cleanup.policy", "delete"))
    assert cluster.image.configs(TOPIC)["cleanup.policy"] == "delete,compact"


def test_subtract_takes_away_what_is_there(cluster: Cluster) -> None:
    amend(cluster, TOPIC, set_to("cleanup.policy", "delete,compact"))
    amend(cluster, TOPIC, ConfigChange(ConfigOp.SUBTRACT, "cleanup.policy", "delete"))
    assert cluster.image.configs(TOPIC)["cleanup.policy"] == "compact"


def test_the_older_form_replaces_everything(cluster: Cluster) -> None:
    amend(cluster, TOPIC, set_to("retention.ms", "5"), set_to("segment.ms", "60000"))
    asked = [(TOPIC, [("retention.ms", "6"), ("flush.ms", "9")])]
    (outcome,) = cluster.do(cluster.machine.alter_configs(asked))
    assert outcome.error is None
    assert cluster.image.configs(TOPIC) == {"retention.ms": "6", "flush.ms": "9"}
    cluster.do(cluster.machine.alter_configs([(TOPIC, [])]))
    assert cluster.image.configs(TOPIC) == {}


@pytest.mark.parametrize(
    ("resource", "change", "error"),
    [
        (TOPIC, set_to("no.such.thing", "1"), InvalidConfig),
        (TOPIC, set_to("retention.ms", "never"), InvalidConfig),
        (TOPIC, set_to("retention.ms", None), InvalidRequest),
        (TOPIC, ConfigChange(ConfigOp.APPEND, "retention.ms", "1"), InvalidConfig),
        (TOPIC, ConfigChange(ConfigOp.APPEND, "cleanup.policy", "burn"), InvalidConfig),
        (TOPIC, ConfigChange(9, "retention.ms", "1"), InvalidRequest),
        (ConfigResource(ResourceType.TOPIC, "none"), set_to("retention.ms", "1"), UnknownTopicOrPartition),
        (ConfigResource(ResourceType.BROKER, "7"), set_to("log.retention.ms", "1"), InvalidRequest),
        (ConfigResource(ResourceType.BROKER, "x"), set_to("log.retention.ms", "1"), InvalidRequest),
        (ConfigResource(ResourceType.CLIENT_METRICS, "m"), set_to("a", "1"), InvalidRequest),
        (BROKER, set_to("log.dirs", "/elsewhere"), InvalidRequest),
        (DEFAULT_BROKER, set_to("log.retention.ms", "later"), InvalidRequest),
    ],
)
def test_refused(
    cluster: Cluster, resource: ConfigResource, change: ConfigChange, error: type[HeadraceError]
) -> None:
    before = len(cluster.log)
    assert type(amend(cluster, resource, change)) is error
    assert len(cluster.log) == before


def test_one_bad_change_refuses_its_resource_and_no_other(cluster: Cluster) -> None:
    cluster.create("u")
    other = ConfigResource(ResourceType.TOPIC, "u")
    asked = [
        (TOPIC, [set_to("retention.ms", "5"), set_to("segment.ms", "bad")]),
        (other, [set_to("retention.ms", "5")]),
    ]
    outcomes = cluster.do(cluster.machine.incremental_alter_configs(asked))
    assert [type(outcome.error) for outcome in outcomes] == [InvalidConfig, type(None)]
    assert cluster.image.configs(TOPIC) == {}
    assert cluster.image.configs(other) == {"retention.ms": "5"}


def test_a_name_or_a_resource_listed_twice_is_refused(cluster: Cluster) -> None:
    twice = [set_to("retention.ms", "5"), set_to("retention.ms", "6")]
    assert isinstance(amend(cluster, TOPIC, *twice), InvalidRequest)
    asked = [(TOPIC, [("retention.ms", "5")]), (TOPIC, [("retention.ms", "6")])]
    result = cluster.machine.alter_configs(asked)
    assert result.records == []
    assert [type(outcome.error) for outcome in result.response] == [InvalidRequest]


def test_overrides_are_checked_together_with_those_that_stand(cluster: Cluster) -> None:
    assert amend(cluster, TOPIC, set_to("max.compaction.lag.ms", "100")) is None
    assert isinstance(amend(cluster, TOPIC, set_to("min.compaction.lag.ms", "200")), InvalidConfig)


def test_brokers_have_values_of_their_own_and_of_all(cluster: Cluster) -> None:
    assert amend(cluster, DEFAULT_BROKER, set_to("log.retention.ms", "7")) is None
    assert amend(cluster, BROKER, set_to("log.retention.ms", "8")) is None
    assert cluster.image.broker_configs(None) == {"log.retention.ms": "7"}
    assert cluster.image.broker_configs(0) == {"log.retention.ms": "8"}
    assert cluster.image.broker_configs(1) == {}
