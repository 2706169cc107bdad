from __future__ import annotations

from headrace.controller.image import DEFAULT_BROKER, ConfigResource, ResourceType
from headrace.controller.operations import ConfigChange, ConfigOp
from headrace.controller.topics import TopicDefaults
from headrace.core.errors import InvalidConfig
from tests.unit.controller.cluster import Cluster, row

TOPIC = ConfigResource(ResourceType.TOPIC, "t")


def shrunken(own: str | None, default: int = 1) -> Cluster:
    cluster = Cluster(range(3), defaults=TopicDefaults(min_insync_replicas=default))
    configs = [] if own is None else [("min.insync.replicas", own)]
    cluster.create("t", assignments=[(0, [0, 1, 2])], configs=configs)
    cluster.do(cluster.machine.fence_brokers([1, 2]))
    return cluster


def configure(cluster: Cluster, resource: ConfigResource, value: str | None) -> int:
    """How many groups it took."""
    op = ConfigOp.DELETE if value is None else ConfigOp.SET
    changes = [ConfigChange(op, "min.insync.replicas", value)]
    result = cluster.machine.incremental_alter_configs([(resource, changes)])
    assert result.response[0].error is None
    cluster.do(result)
    return len(result.groups)


def test_a_lower_minimum_ends_eligibility_in_the_same_group() -> None:
    cluster = shrunken("2")
    assert row(cluster) == (0, (0,), (1, 2))
    assert configure(cluster, TOPIC, "1") == 1
    assert row(cluster) == (0, (0,), ())


def test_a_value_that_still_leaves_the_isr_below_it_changes_nothing() -> None:
    cluster = shrunken("3")
    configure(cluster, TOPIC, "2")
    assert row(cluster) == (0, (0,), (1, 2))


def test_removing_the_topics_value_lets_the_clusters_count() -> None:
    cluster = shrunken("2")
    configure(cluster, DEFAULT_BROKER, "3")
    configure(cluster, TOPIC, None)
    assert row(cluster)[2] == (1, 2)
    configure(cluster, DEFAULT_BROKER, "1")
    assert row(cluster)[2] == ()


def test_the_clusters_value_is_not_removed() -> None:
    """Each broker would go by its own file then, leaders and controller alike."""
    cluster = shrunken(None)
    configure(cluster, DEFAULT_BROKER, "2")
    changes = [ConfigChange(ConfigOp.DELETE, "min.insync.replicas", None)]
    (outcome,) = cluster.machine.incremental_alter_configs([(DEFAULT_BROKER, changes)]).response
    assert isinstance(outcome.error, InvalidConfig)
    (outcome,) = cluster.do(cluster.machine.alter_configs([(DEFAULT_BROKER, [("log.retention.ms", "7")])]))
    assert outcome.error is None
    assert cluster.image.broker_configs(None) == {"min.insync.replicas": "2", "log.retention.ms": "7"}


def test_the_clusters_value_counts_where_the_topic_says_nothing() -> None:
    cluster = shrunken(None, default=2)
    assert row(cluster)[2] == (1, 2)
    configure(cluster, DEFAULT_BROKER, "1")
    assert row(cluster)[2] == ()
    own = shrunken("2")
    configure(own, DEFAULT_BROKER, "1")
    assert row(own)[2] == (1, 2)


def test_the_older_way_to_alter_configs_counts_too() -> None:
    cluster = shrunken("2")
    cluster.do(cluster.machine.alter_configs([(TOPIC, [])]))
    assert row(cluster)[2] == ()


def test_the_leaderless_keep_their_heirs() -> None:
    cluster = shrunken("2")
    cluster.fence(0)
    configure(cluster, TOPIC, "1")
    assert row(cluster) == (-1, (), (0, 1, 2))


def test_the_minimum_cannot_differ_by_broker() -> None:
    """The leader moves the high watermark by its own value; the controller must know the same."""
    cluster = Cluster([0])
    resource = ConfigResource(ResourceType.BROKER, "0")
    for op, error in ((ConfigOp.SET, InvalidConfig), (ConfigOp.DELETE, type(None))):
        changes = [ConfigChange(op, "min.insync.replicas", "1")]
        (outcome,) = cluster.machine.incremental_alter_configs([(resource, changes)]).response
        assert type(outcome.error) is error
