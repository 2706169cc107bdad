"""Configs of groups in the metadata: a group need not exist, but it has a name."""

from __future__ import annotations

import pytest

from headrace.controller.image import ConfigResource, ResourceType
from headrace.controller.operations import ConfigChange, ConfigOp
from headrace.controller.snapshot import records_of
from headrace.core.errors import HeadraceError, InvalidConfig, InvalidRequest
from headrace.protocol.stored.config_record import ConfigRecord
from tests.unit.controller.cluster import Cluster

GROUP = ConfigResource(ResourceType.GROUP, "g")
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def amend(cluster: Cluster, *changes: ConfigChange, resource: ConfigResource = GROUP) -> HeadraceError | None:
    (outcome,) = cluster.do(cluster.machine.incremental_alter_configs([(resource, changes)]))
    return outcome.error


def set_to(name: str, value: str | None) -> ConfigChange:
    return ConfigChange(ConfigOp.SET, name, value)


def test_set_and_deleted_and_in_a_snapshot() -> None:
    cluster = Cluster()
    assert amend(cluster, set_to(SESSION, "50000"), set_to(HEARTBEAT, "6000")) is None
    assert amend(cluster, ConfigChange(ConfigOp.DELETE, HEARTBEAT)) is None
    assert cluster.image.configs(GROUP) == {SESSION: "50000"}
    kept = [each for each in records_of(cluster.image) if isinstance(each, ConfigRecord)]
    assert [(each.resource_type, each.resource_name, each.name, each.value) for each in kept] == [
        (32, "g", SESSION, "50000")
    ]


def test_the_older_form_replaces_everything() -> None:
    cluster = Cluster()
    amend(cluster, set_to(SESSION, "50000"))
    (outcome,) = cluster.do(cluster.machine.alter_configs([(GROUP, [(HEARTBEAT, "7000")])]))
    assert outcome.error is None
    assert cluster.image.configs(GROUP) == {HEARTBEAT: "7000"}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (set_to(SESSION, "1"), InvalidConfig),
        (set_to("retention.ms", "1"), InvalidConfig),
        (set_to(SESSION, None), InvalidRequest),
        (ConfigChange(ConfigOp.APPEND, SESSION, "1"), InvalidConfig),
    ],
)
def test_what_is_wrong_changes_nothing(change: ConfigChange, error: type[HeadraceError]) -> None:
    cluster = Cluster()
    assert isinstance(amend(cluster, set_to(HEARTBEAT, "7000"), change), error)
    assert cluster.image.configs(GROUP) == {}


def test_there_are_no_defaults_of_all_groups() -> None:
    nameless = ConfigResource(ResourceType.GROUP, "")
    assert isinstance(amend(Cluster(), set_to(SESSION, "50000"), resource=nameless), InvalidRequest)


def test_a_topic_of_the_same_name_keeps_its_own() -> None:
    cluster = Cluster()
    cluster.create("g")
    amend(cluster, set_to(SESSION, "50000"))
    assert cluster.image.topic_configs("g") == {}
