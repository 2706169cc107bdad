from __future__ import annotations

import pytest

from headrace.controller.image import ConfigResource, ResourceType
from headrace.controller.link_image import Link, LinkState
from headrace.controller.operations import ConfigChange, ConfigOp, TopicDeletion
from headrace.core.errors import (
    FencedLeaderEpoch,
    HeadraceError,
    InvalidConfig,
    InvalidRequest,
    PolicyViolation,
    UnknownTopicOrPartition,
)
from headrace.core.ids import BrokerId
from tests.unit.controller.cluster import Cluster

ID = "11111111-2222-3333-4444-555555555555"
DEFINITION = {
    "source.bootstrap.servers": "there:9092",
    "source.topic": "t",
    "source.topic.id": ID,
    "source.cluster.id": "other",
    "state": "ACTIVE",
}


@pytest.fixture
def cluster() -> Cluster:
    """With a linked topic of two partitions."""
    cluster = Cluster()
    assert say(cluster, **DEFINITION) is None
    cluster.create("t", partitions=2)
    return cluster


def say(cluster: Cluster, topic: str = "t", **values: str | None) -> HeadraceError | None:
    changes = [
        ConfigChange(ConfigOp.DELETE if value is None else ConfigOp.SET, name, value)
        for name, value in values.items()
    ]
    resource = ConfigResource(ResourceType.LINK, topic)
    (outcome,) = cluster.do(cluster.machine.incremental_alter_configs([(resource, changes)]))
    return outcome.error


def link_of(cluster: Cluster) -> Link:
    return cluster.image.links["t"]


def epoch(cluster: Cluster, partition: int) -> int:
    topic = cluster.image.topic("t")
    assert topic is not None
    return topic.leader_epochs[partition]


def open_(cluster: Cluster, partition: int, offset: int, producer_id: int = 0) -> HeadraceError | None:
    said = f"{epoch(cluster, partition)}:{offset}:{producer_id}"
    return say(cluster, **{f"opened.{partition}": said})


def test_a_link_is_there_before_its_topic_and_seals_it(cluster: Cluster) -> None:
    assert link_of(cluster).state == LinkState.ACTIVE
    assert link_of(cluster).is_sealed(0)
    assert link_of(cluster).copies(1)
    assert link_of(cluster).source_topic_id.hex == ID.replace("-", "")


def test_the_same_link_once_more_changes_nothing(cluster: Cluster) -> None:
    resource = ConfigResource(ResourceType.LINK, "t")
    changes = [ConfigChange(ConfigOp.SET, name, value) for name, value in DEFINITION.items()]
    result = cluster.machine.incremental_alter_configs([(resource, changes)])
    assert result.records == []
    assert result.response[0].error is None


@pytest.mark.parametrize(
    ("topic", "changed", "error"),
    [
        ("plain", {"source.topic.id": ID.replace("1", "2")}, PolicyViolation),
        ("__consumer_offsets", {"source.topic.id": ID.replace("1", "2")}, PolicyViolation),
        ("u", {}, PolicyViolation),  # that topic of the source is linked already
        ("u", {"source.topic.id": "no id"}, InvalidConfig),
        ("u", {"source.topic.id": ID.replace("1", "2"), "state": "PAUSED"}, InvalidConfig),
        ("u", {"source.topic.id": ID.replace("1", "2"), "other": "value"}, InvalidConfig),
        ("u", {"source.topic.id": ID.replace("1", "2"), "source.client.config": "../secret"}, InvalidConfig),
        ("u", {"source.bootstrap.servers": ""}, InvalidConfig),
    ],
)
def test_what_cannot_be_linked(
    cluster: Cluster, topic: str, changed: dict[str, str], error: type[HeadraceError]
) -> None:
    cluster.create("plain")
    assert isinstance(say(cluster, topic, **{**DEFINITION, **changed}), error)
    assert list(cluster.image.links) == ["t"]


def test_nobody_may_take_a_link_away_from_a_topic(cluster: Cluster) -> None:
    assert isinstance(say(cluster, state=None), PolicyViolation)
    assert isinstance(say(cluster, **{"source.topic": "other"}), PolicyViolation)
    assert isinstance(say(cluster, state="PROMOTED"), PolicyViolation)
    resource = ConfigResource(ResourceType.LINK, "t")
    (outcome,) = cluster.do(cluster.machine.alter_configs([(resource, [])]))
    assert isinstance(outcome.error, InvalidRequest)
    assert link_of(cluster).is_sealed(0)


def test_a_creation_that_went_no_further_is_undone() -> None:
    cluster = Cluster()
    say(cluster, **DEFINITION)
    assert say(cluster, state=None) is None
    assert cluster.image.links == {}
    assert isinstance(say(cluster, state=None), UnknownTopicOrPartition)


def test_a_link_goes_with_its_topic(cluster: Cluster) -> None:
    cluster.do(cluster.machine.delete_topics([TopicDeletion("t")]))
    assert cluster.image.links == {}
    assert cluster.image.configs(ConfigResource(ResourceType.LINK, "t")) == {}


def test_paused_and_resumed(cluster: Cluster) -> None:
    say(cluster, state="PAUSED")
    assert not link_of(cluster).copies(0)
    say(cluster, state="ACTIVE")
    assert link_of(cluster).copies(0)


def test_a_leader_stops_its_partition_and_a_person_lets_it_go_on(cluster: Cluster) -> None:
    assert say(cluster, **{"stopped.1": f"{epoch(cluster, 1)}:it was cut: there"}) is None
    assert link_of(cluster).stopped == {1: "it was cut: there"}
    assert link_of(cluster).copies(0)
    assert not link_of(cluster).copies(1)
    say(cluster, state="ACTIVE")
    assert link_of(cluster).copies(1)


@pytest.mark.parametrize("name", ["stopped", "opened"])
def test_only_a_leader_in_its_epoch_is_believed(cluster: Cluster, name: str) -> None:
    say(cluster, state="PROMOTING")
    cluster.do(cluster.machine.renew_leaderships(BrokerId(0)))
    before = epoch(cluster, 0)
    assert before
    assert isinstance(say(cluster, **{f"{name}.0": f"{before - 1}:1:1"}), FencedLeaderEpoch)
    assert isinstance(say(cluster, **{f"{name}.0": f"{before + 1}:1:1"}), FencedLeaderEpoch)
    assert isinstance(say(cluster, **{f"{name}.0": "1"}), InvalidRequest)
    assert isinstance(say(cluster, **{f"{name}.9": f"{before}:1:1"}), UnknownTopicOrPartition)
    assert isinstance(say(cluster, **{f"{name}.x": f"{before}:1:1"}), InvalidRequest)
    assert link_of(cluster).opened == {}


def test_partitions_open_one_by_one_and_the_last_one_ends_the_promotion(cluster: Cluster) -> None:
    assert isinstance(open_(cluster, 0, 7), PolicyViolation)  # nobody promotes it
    say(cluster, state="PROMOTING")
    assert open_(cluster, 0, 7) is None
    assert link_of(cluster).state == LinkState.PROMOTING
    assert not link_of(cluster).is_sealed(0)
    assert link_of(cluster).is_sealed(1)
    assert link_of(cluster).aborts(1)
    assert not link_of(cluster).aborts(0)
    assert open_(cluster, 1, 9) is None
    assert link_of(cluster).state == LinkState.PROMOTED
    assert link_of(cluster).opened == {0: 7, 1: 9}


def test_a_partition_that_is_added_after_the_promotion_is_open(cluster: Cluster) -> None:
    say(cluster, state="PROMOTING")
    assert link_of(cluster).is_sealed(2)
    open_(cluster, 0, 0)
    open_(cluster, 1, 0)
    assert not link_of(cluster).is_sealed(2)


def test_what_is_refused_beside_another_change_reserves_nothing(cluster: Cluster) -> None:
    changes = [(ConfigResource(ResourceType.LINK, "t"), [ConfigChange(ConfigOp.SET, "state", "PAUSED")])]
    broken = [ConfigChange(ConfigOp.SET, "opened.0", "no number")]
    changes.append((ConfigResource(ResourceType.LINK, "u"), broken))
    first, second = cluster.do(cluster.machine.incremental_alter_configs(changes))
    assert first.error is None
    assert second.error is not None
    assert cluster.image.next_producer_id == 0


def test_what_was_opened_stays_as_it_was_told_first(cluster: Cluster) -> None:
    say(cluster, state="PROMOTING")
    open_(cluster, 0, 7)
    assert open_(cluster, 0, 8) is None
    assert link_of(cluster).opened == {0: 7}


def test_there_is_no_way_back_from_a_promotion(cluster: Cluster) -> None:
    say(cluster, state="PROMOTING")
    assert isinstance(say(cluster, state="ACTIVE"), PolicyViolation)
    assert isinstance(say(cluster, state="PAUSED"), PolicyViolation)
    assert say(cluster, state="PROMOTING") is None
    open_(cluster, 0, 0)
    open_(cluster, 1, 0)
    assert say(cluster, state="PROMOTING") is None
    assert link_of(cluster).state == LinkState.PROMOTED
    assert isinstance(say(cluster, state="ACTIVE"), PolicyViolation)


def test_producer_ids_of_the_source_are_never_handed_out(cluster: Cluster) -> None:
    """By the very commit that opens the partition: no producer can come in between."""
    say(cluster, state="PROMOTING")
    open_(cluster, 0, 7, producer_id=5001)
    assert cluster.image.next_producer_id == 5001
    open_(cluster, 1, 7, producer_id=12)
    assert cluster.image.next_producer_id == 5001


def test_an_opening_that_is_refused_reserves_no_ids(cluster: Cluster) -> None:
    said = f"{epoch(cluster, 0)}:7:9000"
    assert isinstance(say(cluster, **{"opened.0": said}), PolicyViolation)
    assert cluster.image.next_producer_id == 0
    say(cluster, state="PROMOTING")
    too_large = f"{epoch(cluster, 0)}:7:{2**63}"
    assert isinstance(say(cluster, **{"opened.0": too_large}), InvalidRequest)


@pytest.mark.parametrize("servers", ["a:b:c", "h:99999", "h:0", "h:1,,", "h:1\nx:2", "x y:1", ":1", "h:1²"])
def test_what_is_no_address_of_a_source_is_refused(cluster: Cluster, servers: str) -> None:
    assert isinstance(say(cluster, **{"source.bootstrap.servers": servers}), InvalidConfig)
    assert link_of(cluster).bootstrap == "there:9092"


@pytest.mark.parametrize("servers", ["h", "h:1, other:2", "[::1]:9092", "[::1]", "my_host.local:65535"])
def test_addresses_of_a_source_can_change(cluster: Cluster, servers: str) -> None:
    assert say(cluster, **{"source.bootstrap.servers": servers}) is None
    assert link_of(cluster).bootstrap == servers
