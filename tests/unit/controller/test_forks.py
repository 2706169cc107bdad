"""What has to be true of a fork when it is created, and that nothing changes it."""

from __future__ import annotations

from uuid import UUID

import pytest

from headrace.config.broker import BrokerConfig
from headrace.config.tiering import FORK, ForkPoint, fork_point, fork_text
from headrace.config.validation import validate_topic_overrides
from headrace.controller.declared_schema import DeclaredSchema
from headrace.controller.image import ConfigResource, ResourceType
from headrace.controller.operations import ConfigChange, ConfigOp, CreatedTopic, NewTopic
from headrace.core.errors import InvalidConfig, UnknownTopicId
from tests.unit.controller.cluster import Cluster

WITH_STORE = {"remote.log.storage.system.enable": "true", "headrace.tier.url": "s3://history/kafka"}
TIERED = [("remote.storage.enable", "true")]
POINT = ForkPoint(UUID(int=77), (0, 4000, 2**40))


def test_a_point_is_written_and_read() -> None:
    assert fork_point(fork_text(POINT)) == POINT
    assert fork_point("") is None


@pytest.mark.parametrize("text", ["x", "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAA:", "A:1", "A:1,,2"])
def test_what_is_no_point_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig):
        validate_topic_overrides({FORK: text})
    validate_topic_overrides({FORK: fork_text(POINT)})


def forked(cluster: Cluster, origin: UUID, *offsets: int, partitions: int | None = None) -> CreatedTopic:
    configs = [*TIERED, (FORK, fork_text(ForkPoint(origin, offsets)))]
    topic = NewTopic("fork", partitions or len(offsets), 1, configs=configs)
    (created,) = cluster.do(cluster.machine.create_topics([topic]))
    return created


def test_the_epochs_of_a_fork_come_after_those_of_its_origin() -> None:
    cluster = Cluster([0, 1], schema=DeclaredSchema(BrokerConfig.parse(WITH_STORE)))
    origin = cluster.create("origin", 2, 1, configs=TIERED)
    topic = cluster.image.topic("origin")
    assert topic is not None
    topic.leader_epochs[1] = 7
    assert forked(cluster, origin, 10, 20).error is None
    fork = cluster.image.topic("fork")
    assert fork is not None
    assert [fork.leader_epoch(partition) for partition in (0, 1)] == [1, 8]


def test_what_cannot_be_forked() -> None:
    cluster = Cluster([0, 1], schema=DeclaredSchema(BrokerConfig.parse(WITH_STORE)))
    plain = cluster.create("plain", 1, 1)
    origin = cluster.create("origin", 2, 1, configs=TIERED)
    assert isinstance(forked(cluster, UUID(int=5), 1).error, UnknownTopicId)
    assert "no history" in str(forked(cluster, plain, 1).error)
    assert "as many partitions" in str(forked(cluster, origin, 1, 2, 3).error)
    assert "as many partitions" in str(forked(cluster, origin, 1, 2, partitions=3).error)
    fork = forked(cluster, origin, 1, 2)
    assert fork.error is None
    again = NewTopic("again", 2, 1, configs=[*TIERED, (FORK, fork_text(ForkPoint(fork.topic_id, (1, 1))))])
    (refused,) = cluster.do(cluster.machine.create_topics([again]))
    assert "is a fork itself" in str(refused.error)


def test_nothing_changes_what_a_topic_was_made_as() -> None:
    cluster = Cluster([0, 1], schema=DeclaredSchema(BrokerConfig.parse(WITH_STORE)))
    origin = cluster.create("origin", 1, 1, configs=TIERED)
    forked(cluster, origin, 1)
    for name in ("origin", "fork"):
        resource = ConfigResource(ResourceType.TOPIC, name)
        for change in (
            ConfigChange(ConfigOp.SET, FORK, fork_text(ForkPoint(origin, (9,)))),
            *([ConfigChange(ConfigOp.DELETE, FORK, None)] if name == "fork" else []),
        ):
            (altered,) = cluster.do(cluster.machine.incremental_alter_configs([(resource, [change])]))
            assert "cannot be changed" in str(altered.error)
    whole = ConfigResource(ResourceType.TOPIC, "fork")
    (altered,) = cluster.do(cluster.machine.alter_configs([(whole, TIERED)]))
    assert altered.error is None
    assert FORK in cluster.image.configs(whole)  # not to name it leaves it
