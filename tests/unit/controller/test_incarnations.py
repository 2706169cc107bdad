"""What a broker that comes back keeps, and what it loses."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from headrace.controller.operations import TopicDeletion
from headrace.controller.safeguards import ControllerSafeguards
from headrace.core.errors import InvalidRequest, UnknownServerId
from headrace.core.ids import BrokerEpoch, BrokerId
from tests.unit.controller.cluster import Cluster, description, row

NEXT_EPOCH = 1000


def three(minimum: int = 2, **rest: Any) -> Cluster:
    cluster = Cluster(range(3), **rest)
    cluster.create("t", assignments=[(0, [0, 1, 2])], configs=[("min.insync.replicas", str(minimum))])
    return cluster


def come_back(cluster: Cluster, broker_id: int, **said: Any) -> None:
    said.setdefault("previous_epoch", cluster.image.brokers[broker_id].epoch)
    said.setdefault("stopped", "clean")
    epoch = BrokerEpoch(max(NEXT_EPOCH, *(b.epoch + 1 for b in cluster.image.brokers.values())))
    cluster.do(cluster.machine.register_broker(description(broker_id, **said), epoch))


def last_known(cluster: Cluster) -> tuple[int, ...]:
    return cluster.image.topics_by_name["t"].exceptional(0).last_known_elr


def test_a_bounce_that_nobody_saw_costs_the_leadership_in_the_same_group() -> None:
    cluster = three()
    epoch = cluster.image.brokers[0].epoch
    described = description(0, previous_epoch=epoch, stopped="clean")
    (group,) = cluster.machine.register_broker(described, BrokerEpoch(NEXT_EPOCH)).groups
    assert [type(record).__name__ for record in group] == ["RegisterBrokerRecord", "PartitionChangeRecord"]
    cluster.apply(group)
    assert row(cluster) == (1, (1, 2), ())
    assert cluster.image.brokers[0].fenced
    assert cluster.image.topics_by_name["t"].leader_epoch(0) == 1


def test_without_the_safeguard_a_leadership_is_resumed() -> None:
    cluster = three(safeguards=ControllerSafeguards(no_resumed_leadership=False))
    come_back(cluster, 0)
    assert row(cluster) == (0, (0, 1, 2), ())


@pytest.mark.parametrize(("named", "eligible"), [(1, (0, 1)), (0, (0,))])
def test_who_lost_one_replica_stays_eligible_for_the_others(named: int, eligible: tuple[int, ...]) -> None:
    cluster = three()
    cluster.fence(2)
    cluster.do(cluster.machine.fence_brokers([0, 1]))
    come_back(cluster, 1, lost=frozenset({("t", named)}))
    assert row(cluster) == (-1, (), eligible)


@pytest.mark.parametrize("stopped", ["clean", "same-boot"])
def test_who_lost_nothing_stays_eligible(stopped: str) -> None:
    cluster = three()
    cluster.fence(2)
    cluster.do(cluster.machine.fence_brokers([0, 1]))
    assert row(cluster) == (-1, (), (0, 1))
    come_back(cluster, 1, stopped=stopped)
    assert row(cluster) == (-1, (), (0, 1))
    cluster.fence(1, fenced=False)
    assert row(cluster) == (1, (1,), (0,))


@pytest.mark.parametrize(
    "said",
    [{"stopped": "unknown"}, {"previous_epoch": 3}, {"previous_epoch": -1}, {"directories": 0}],
    ids=["unclean", "another incarnation", "unknown incarnation", "new disk"],
)
def test_who_may_have_lost_something_is_not_eligible(said: dict[str, Any]) -> None:
    cluster = three()
    if said.get("directories") == 0:
        said = {"directories": (UUID(int=7777),)}
    cluster.fence(2)
    cluster.do(cluster.machine.fence_brokers([0, 1]))
    described = description(1)._replace(**{"stopped": "clean", **said})
    if "previous_epoch" not in said:
        described = described._replace(previous_epoch=cluster.image.brokers[1].epoch)
    cluster.do(cluster.machine.register_broker(described, BrokerEpoch(NEXT_EPOCH)))
    assert row(cluster) == (-1, (), (0,))
    cluster.fence(1, fenced=False)
    assert row(cluster) == (-1, (), (0,)), "it may not lead: another one is known to be complete"
    cluster.fence(0, fenced=False)
    assert row(cluster) == (0, (0,), ())


def test_the_last_leader_is_not_elected_with_an_empty_disk() -> None:
    """Nobody is known to be complete. Others may hold what it had, so that is for an operator to decide."""
    cluster = three()
    cluster.fence(2)
    cluster.fence(1)
    come_back(cluster, 1, stopped="unknown")
    cluster.fence(0)
    replaced = description(0)._replace(directories=(UUID(int=7777),), stopped="unknown")
    cluster.do(cluster.machine.register_broker(replaced, BrokerEpoch(NEXT_EPOCH + 5)))
    cluster.fence(0, fenced=False)
    assert row(cluster)[:2] == (-1, ())


def test_incarnations_that_no_controller_heard_of_do_not_cost_the_proof() -> None:
    """It was started three times while no controller was active, on a host that stayed up."""
    cluster = three()
    cluster.fence(2)
    cluster.do(cluster.machine.fence_brokers([0, 1]))
    known = cluster.image.brokers[1].incarnation_id
    described = description(1)._replace(
        stopped="same-boot", earlier_incarnations=(known, UUID(int=501), UUID(int=502))
    )
    cluster.do(cluster.machine.register_broker(described, BrokerEpoch(NEXT_EPOCH)))
    assert row(cluster) == (-1, (), (0, 1))


@pytest.mark.parametrize("name", ["proof_of_a_whole_log", "directory_identity"])
def test_without_the_safeguard_a_shortened_log_stays_eligible(name: str) -> None:
    cluster = three(safeguards=ControllerSafeguards(**{name: False}))
    cluster.do(cluster.machine.fence_brokers([0, 1, 2]))
    if name == "directory_identity":
        epoch = cluster.image.brokers[1].epoch
        moved = description(1)._replace(directories=(UUID(int=7777),), previous_epoch=epoch, stopped="clean")
        cluster.do(cluster.machine.register_broker(moved, BrokerEpoch(NEXT_EPOCH)))
    else:
        come_back(cluster, 1, stopped="unknown")
    assert 1 in row(cluster)[2]


def test_two_bounces_of_which_the_first_was_unclean() -> None:
    """The second process says "clean" of itself; the one that the controller knew lost its tail."""
    cluster = three()
    cluster.do(cluster.machine.fence_brokers([0, 1, 2]))
    come_back(cluster, 1, previous_epoch=500)
    assert row(cluster) == (-1, (), (0, 2))


def test_the_last_leader_leads_again_when_nobody_is_eligible() -> None:
    cluster = three(minimum=1)
    cluster.fence(2)
    cluster.fence(1)
    come_back(cluster, 0, stopped="unknown")
    assert row(cluster) == (-1, (), ())
    assert last_known(cluster) == (0,)
    cluster.fence(1, fenced=False)
    assert row(cluster)[0] == -1, "it was not in sync"
    cluster.fence(0, fenced=False)
    assert row(cluster) == (0, (0,), ())
    rare = cluster.image.topics_by_name["t"].exceptional(0)
    assert rare.recovering
    assert rare.last_known_elr == ()


def test_an_eligible_last_leader_that_comes_back_unclean_is_remembered_as_such() -> None:
    cluster = three(minimum=1)
    cluster.fence(2)
    cluster.fence(1)
    cluster.fence(0)
    assert (row(cluster), last_known(cluster)) == ((-1, (), (0,)), (0,))
    come_back(cluster, 0, stopped="unknown")
    assert (row(cluster), last_known(cluster)) == ((-1, (), ()), (0,))


def test_a_replica_on_a_disk_that_is_kept_stays_eligible_beside_one_that_is_not() -> None:
    cluster = Cluster([])
    kept, replaced, new = UUID(int=1), UUID(int=2), UUID(int=3)
    described = description(0)._replace(directories=(kept, replaced))
    cluster.do(cluster.machine.register_broker(described, BrokerEpoch(1), fenced=False))
    topic_id = cluster.create("t", assignments=[(0, [0]), (1, [0]), (2, [0])])
    assigned = {kept: [(topic_id, 0)], replaced: [(topic_id, 1)]}
    cluster.do(cluster.machine.assign_directories(BrokerId(0), BrokerEpoch(1), assigned))
    again = described._replace(directories=(kept, new), previous_epoch=1, stopped="clean")
    cluster.do(cluster.machine.register_broker(again, BrokerEpoch(2)))
    topic = cluster.image.topics_by_name["t"]
    assert [row(cluster, i)[1:] for i in range(3)] == [((), (0,)), ((), ()), ((), ())]
    assert topic.directories(0) == (kept,)
    assert topic.directories(1) == (UUID(int=0),), "it has to say where it puts the replica now"


def test_a_directory_that_died_and_came_back_is_not_trusted() -> None:
    cluster = Cluster([])
    lasting, failing = UUID(int=1), UUID(int=2)
    described = description(0)._replace(directories=(lasting, failing))
    cluster.do(cluster.machine.register_broker(described, BrokerEpoch(1), fenced=False))
    topic_id = cluster.create("t", assignments=[(0, [0]), (1, [0])])
    assigned = {lasting: [(topic_id, 0)], failing: [(topic_id, 1)]}
    cluster.do(cluster.machine.assign_directories(BrokerId(0), BrokerEpoch(1), assigned))
    cluster.do(cluster.machine.directories_offline(BrokerId(0), BrokerEpoch(1), [failing]))
    assert row(cluster, 1) == (-1, (), (0,))
    again = described._replace(previous_epoch=1, stopped="clean")
    cluster.do(cluster.machine.register_broker(again, BrokerEpoch(2)))
    assert [row(cluster, i) for i in range(2)] == [(-1, (), (0,)), (-1, (), ())]
    cluster.fence(0, fenced=False)
    assert [row(cluster, i)[0] for i in range(2)] == [0, 0]
    topic = cluster.image.topics_by_name["t"]
    assert [topic.exceptional(i).recovering for i in range(2)] == [False, True]


@pytest.mark.parametrize("forgotten", [False, True], ids=["restarted", "unregistered meanwhile"])
def test_a_replica_of_a_dead_directory_gets_a_new_place(forgotten: bool) -> None:
    """Otherwise it would be neither admitted nor elected ever again."""
    cluster = Cluster([1])
    lasting, failing = UUID(int=1), UUID(int=2)
    described = description(0)._replace(directories=(lasting, failing))
    cluster.do(cluster.machine.register_broker(described, BrokerEpoch(1), fenced=False))
    topic_id = cluster.create("t", assignments=[(0, [0, 1])])
    cluster.do(cluster.machine.assign_directories(BrokerId(0), BrokerEpoch(1), {failing: [(topic_id, 0)]}))
    cluster.do(cluster.machine.directories_offline(BrokerId(0), BrokerEpoch(1), [failing]))
    if forgotten:
        cluster.fence(0)
        cluster.do(cluster.machine.unregister_broker(BrokerId(0)))
    again = described._replace(directories=(lasting,), previous_epoch=1, stopped="clean")
    cluster.do(cluster.machine.register_broker(again, BrokerEpoch(20)))
    assert cluster.image.topics_by_name["t"].directory_of(0, 0) == lasting


def test_a_single_replaced_disk_is_the_new_place() -> None:
    cluster = three()
    new = UUID(int=7777)
    come_back(cluster, 1, directories=1)
    described = description(1)._replace(directories=(new,), previous_epoch=NEXT_EPOCH, stopped="clean")
    cluster.do(cluster.machine.register_broker(described, BrokerEpoch(NEXT_EPOCH + 1)))
    assert cluster.image.topics_by_name["t"].directory_of(0, 1) == new


def test_a_first_registration_touches_no_partition() -> None:
    cluster = three()
    (group,) = cluster.machine.register_broker(description(9), BrokerEpoch(NEXT_EPOCH)).groups
    assert len(group) == 1


def test_a_lone_node_keeps_what_it_has() -> None:
    cluster = Cluster([0])
    cluster.create("t", 3)
    result = cluster.machine.register_broker(description(0), BrokerEpoch(NEXT_EPOCH), fenced=False)
    assert len(result.records) == 1


def test_only_the_dead_are_unregistered() -> None:
    cluster = three(minimum=1)
    with pytest.raises(InvalidRequest):
        cluster.machine.unregister_broker(BrokerId(1))
    with pytest.raises(UnknownServerId):
        cluster.machine.unregister_broker(BrokerId(7))
    cluster.do(cluster.machine.fence_brokers([0, 1, 2]))
    assert row(cluster)[2] == (0, 1, 2)
    cluster.do(cluster.machine.unregister_broker(BrokerId(1)))
    assert 1 not in cluster.image.brokers
    assert row(cluster) == (-1, (), (0, 2))
    cluster.do(cluster.machine.delete_topics([TopicDeletion("t")]))
