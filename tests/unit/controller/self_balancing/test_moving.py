"""Moves of self-balancing in the metadata: begun, ended, cancelled, and what stands against them."""

from __future__ import annotations

from headrace.controller.operations import IsrChange, IsrMember, Reassignment
from headrace.controller.self_balancing.hindrances import Circumstances, degraded, hindrance
from headrace.controller.self_balancing.loads import Settings, Step
from headrace.controller.self_balancing.moving import Begun
from headrace.controller.self_balancing.rates import Rates
from headrace.controller.self_balancing.reports import DirectorySpace, LedPartition, LoadReport, TopicTraffic
from headrace.controller.self_balancing.slices import result_of
from headrace.controller.self_balancing.survey import (
    MOVED_REPLICAS,
    circumstances,
    cluster_load,
    topics_with_moves,
)
from headrace.core.errors import NewLeaderElected
from headrace.core.ids import BrokerId, TopicPartition
from tests.unit.controller.cluster import Cluster

ORDERS = TopicPartition("orders", 0)
WELL = {each: LoadReport([DirectorySpace("/data", True, 1000, 900)]) for each in (0, 1, 2)}


def make() -> Cluster:
    cluster = Cluster((0, 1, 2))
    cluster.create("orders", assignments=[(0, (0, 1)), (1, (1, 0))])
    return cluster


def step(after: tuple[int, ...], before: tuple[int, ...] = (0, 1), partition: int = 0) -> Step:
    return Step(TopicPartition("orders", partition), before, after, "bytes")


def begin(cluster: Cluster, *steps: Step) -> Begun:
    return cluster.do(cluster.machine.begin_balancing(steps, ()))


def why(cluster: Cluster, excluded: tuple[int, ...] = ()) -> str | None:
    return hindrance(circumstances(cluster.image, excluded), WELL, Settings(), (0, 1, 2))


def join(cluster: Cluster, *isr: int, partition: int = 0) -> None:
    """The leader of a partition of orders proposes this ISR."""
    topic = cluster.image.topics_by_name["orders"]
    state = topic.state(partition)
    members = [IsrMember(each, cluster.image.brokers[each].epoch) for each in isr]
    change = IsrChange(topic.topic_id, partition, state.leader_epoch, state.partition_epoch, members)
    leader = BrokerId(state.leader)
    epoch = cluster.image.brokers[leader].epoch
    (answer,) = cluster.do(cluster.machine.alter_partitions(leader, epoch, [change]))
    assert answer.error is None or isinstance(answer.error, NewLeaderElected)


def test_a_move_names_what_it_adds_as_long_as_it_is_on_its_way() -> None:
    cluster = make()
    assert begin(cluster, step((2, 1))) == Begun([step((2, 1))], {})
    assert cluster.image.topic_configs("orders") == {MOVED_REPLICAS: "0:2"}
    topic = cluster.image.topics_by_name["orders"]
    assert (topic.exceptional(0).adding, topic.exceptional(0).removing) == ((2,), (0,))
    assert topics_with_moves(cluster.image) == ["orders"]
    assert cluster.do(cluster.machine.end_balancing()) == {}
    assert why(cluster) is None, "its own moves are no hindrance"


def test_what_has_arrived_is_named_no_more() -> None:
    cluster = make()
    begin(cluster, step((2, 1)))
    join(cluster, 0, 1, 2)
    assert cluster.image.topics_by_name["orders"].replicas(0) == (2, 1)
    assert cluster.do(cluster.machine.end_balancing()) == {ORDERS: True}
    assert cluster.image.topic_configs("orders") == {}
    assert topics_with_moves(cluster.image) == []


def test_both_are_committed_in_one_group() -> None:
    cluster = make()
    (group,) = cluster.machine.begin_balancing([step((2, 1))], ()).groups
    assert sorted(type(each).__name__ for each in group) == ["ConfigRecord", "PartitionChangeRecord"]


def test_a_change_of_leaders_needs_no_copy_and_names_nothing() -> None:
    cluster = make()
    assert begin(cluster, step((1, 0))).refused == {}
    assert cluster.image.topics_by_name["orders"].replicas(0) == (1, 0)
    assert cluster.image.topic_configs("orders") == {}


def test_what_was_cancelled_by_somebody_else_has_ended_otherwise() -> None:
    cluster = make()
    begin(cluster, step((2, 1)))
    cluster.do(cluster.machine.reassign_partitions([Reassignment("orders", 0, None)]))
    assert cluster.do(cluster.machine.end_balancing()) == {ORDERS: False}
    assert cluster.image.topic_configs("orders") == {}


def test_turned_off_it_takes_its_moves_back_and_no_others() -> None:
    cluster = make()
    begin(cluster, step((2, 1)))
    cluster.do(cluster.machine.reassign_partitions([Reassignment("orders", 1, (1, 2))]))
    assert cluster.do(cluster.machine.cancel_balancing()) == {}
    topic = cluster.image.topics_by_name["orders"]
    assert sorted(topic.replicas(0)) == [0, 1]
    assert topic.exceptional(0).adding == ()
    assert topic.exceptional(1).adding == (2,)
    assert cluster.image.topic_configs("orders") == {}


def test_nothing_is_begun_that_has_changed_since_it_was_planned() -> None:
    cluster = make()
    assert begin(cluster, step((2, 0), before=(1, 2))).refused == {ORDERS: "somebody else moves it"}
    cluster.do(cluster.machine.fence_brokers([2]))
    assert begin(cluster, step((2, 1))) == Begun([], {ORDERS: "broker 2 is down or about to stop"})
    gone = Step(TopicPartition("gone", 0), (0,), (1,), "bytes")
    assert begin(make(), gone).refused == {gone.partition: "it was deleted"}


def test_a_cluster_that_is_not_whole_hinders_it() -> None:
    cluster = make()
    assert why(cluster) is None
    cluster.do(cluster.machine.begin_shutdown(BrokerId(2), cluster.image.brokers[2].epoch))
    assert why(cluster) == "broker 2 is down or about to stop"
    assert why(cluster, excluded=(2,)) is None, "it was drained, and holds nothing"
    cluster = make()
    cluster.do(cluster.machine.reassign_partitions([Reassignment("orders", 1, (1, 2))]))
    assert why(cluster) == "somebody else moves replicas: orders-1"
    cluster = make()
    cluster.do(cluster.machine.fence_brokers([1]))
    found = circumstances(cluster.image)
    assert (found.down, found.out_of_sync) == ([1], [ORDERS, TopicPartition("orders", 1)])
    assert why(cluster, excluded=(1,)) == "broker 1 is down or about to stop", "it holds something"


def test_replicas_that_are_not_in_sync_are_named() -> None:
    found = Circumstances(out_of_sync=[TopicPartition("t", each) for each in range(5)])
    assert degraded(found) == "replicas are not in sync: t-0, t-1, t-2 and 2 more"


def test_brokers_and_disks_hinder_it() -> None:
    def said(silent: dict[int, str], **reports: LoadReport) -> str | None:
        told = {**WELL, **{int(name[1:]): each for name, each in reports.items()}}
        return hindrance(Circumstances(silent=silent), told, Settings(), (0, 1, 2))

    assert said({1: "no answer"}) == "broker 1 does not tell its load: no answer"
    full = LoadReport([DirectorySpace("/data", True, 1000, 150)])
    assert said({}, b2=full) == (
        "log directory /data of broker 2 is 85% full, and headrace.balance.max.disk.percent is 80"
    )
    assert said({}, b2=LoadReport([DirectorySpace("/data", False, -1, -1)])) == (
        "log directory /data of broker 2 is offline"
    )
    assert said({}, b2=LoadReport([DirectorySpace("/data", True, -1, -1)])) is None
    alone = hindrance(Circumstances(), WELL, Settings(), (0,))
    assert alone == "there are fewer than two brokers to balance"


def test_the_load_counts_what_is_on_its_way_where_it_goes() -> None:
    cluster = make()
    begin(cluster, step((2, 1)))
    led = TopicTraffic(0, 0, (LedPartition(0, 5, 70), LedPartition(1, 5, 30)))
    reports = {**WELL, 0: LoadReport(WELL[0].directories, {"orders": led})}
    rates = {ORDERS: Rates(3.0, 4.0)}
    load = result_of(cluster_load(cluster.image, reports, rates, Settings(), excluded=(1,)))
    one = load.partitions[ORDERS]
    assert (one.replicas, one.size_bytes, one.rate_in, one.rate_out, one.arriving) == ((2, 1), 70, 3, 4, (2,))
    assert load.partitions[TopicPartition("orders", 1)].size_bytes == 30
    assert sorted(load.brokers) == [0, 2]
    assert load.brokers[0].room_bytes == 700, "80% of 1000, of which 100 are used"
