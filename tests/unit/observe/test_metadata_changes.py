"""What looks find different, and what they must not take for a change."""

from __future__ import annotations

from uuid import UUID

from headrace.client.broker_health import BrokerHealth
from headrace.doctor.model import Unknown
from headrace.observe.metadata_changes import MOST_OF_ONE_LOOK, changes_between
from tests.unit.observe.made_up import broken_look, look, small_look, topic, view

BROKERS = (1, 2, 3)
ORDERS = topic("orders", 2, BROKERS, 2)


def said(before: object, after: object) -> list[str]:
    return [each.sentence for each in changes_between(before, after)]  # type: ignore[arg-type]  # looks


def test_nothing_changes_while_records_come() -> None:
    assert said(small_look(0), small_look(1)) == []


def test_topics_come_grow_and_go() -> None:
    wider = topic("orders", 4, BROKERS, 2)
    clicks = topic("clicks", 1, BROKERS, 3)
    before, after = look(3, [ORDERS, clicks]), look(3, [wider, topic("new", 1, BROKERS, 1)], at=1)
    found = changes_between(before, after)
    assert [(each.topic, each.sentence) for each in found] == [
        ("clicks", "Topic clicks is gone."),
        ("new", "Topic new is there, with 1 partition and 1 replica."),
        ("orders", "Topic orders has 4 partitions; it had 2."),
    ]
    assert (found[0].after_ms, found[0].until_ms) == (before.at_ms, after.at_ms)


def test_a_topic_of_the_same_name_is_another_one() -> None:
    again = ORDERS._replace(topic_id=UUID(int=99))
    assert said(look(3, [ORDERS]), look(3, [again], at=1)) == ["Topic orders was deleted and made again."]


def test_replicas_move_and_a_new_order_of_them_is_no_move() -> None:
    first, second = ORDERS.partitions
    turned = ORDERS._replace(partitions=[first._replace(replicas=first.replicas[::-1]), second])
    assert said(look(3, [ORDERS]), look(3, [turned], at=1)) == []
    moved = ORDERS._replace(partitions=[first._replace(replicas=[1, 3]), second._replace(replicas=[3, 1])])
    assert said(look(3, [ORDERS]), look(3, [moved], at=1)) == [
        "orders-0 is on 1, 3; it was on 1, 2. 1 more likewise."
    ]


def test_brokers_come_and_go() -> None:
    whole, broken = look(3, [ORDERS]), look(3, [ORDERS], dead=[2], at=1)
    assert said(whole, broken) == ["Broker 2 has gone."]
    assert said(broken, whole) == ["Broker 2 is back."]
    two = whole._replace(view=view(2))
    assert said(two, whole) == ["Broker 3 has joined, at kafka3:9092."]
    assert said(whole, two) == ["Broker 3 is not registered any more."]
    away = whole.view._replace(
        brokers=[each._replace(host="", port=-1, rack=None, alive=False) for each in whole.view.brokers]
    )
    assert len(said(whole, whole._replace(view=away))) == 3, "one that is away has no address, and no rack"


def test_who_the_controller_is_counts_only_where_brokers_tell_the_truth_about_it() -> None:
    whole = look(3, [ORDERS])
    other = whole._replace(view=whole.view._replace(controller=2))
    assert said(whole, other) == ["Broker 2 is the controller; it was 1."]
    assert not isinstance(other.health, Unknown)
    mute = other._replace(health=other.health._replace(brokers={1: BrokerHealth(True)}))
    assert said(whole, mute) == []
    assert said(whole, other._replace(health=Unknown("it is not known"))) == []


def test_what_a_script_does_is_cut() -> None:
    many = [topic(f"t{number:04}", 1, BROKERS, 1) for number in range(1000)]
    found = said(look(3, []), look(3, many, at=1))
    assert len(found) == MOST_OF_ONE_LOOK + 1
    assert found[-1] == "And 900 more changes of topics."


def test_a_broken_cluster_can_be_compared() -> None:
    assert isinstance(said(small_look(0), broken_look(1)), list)
