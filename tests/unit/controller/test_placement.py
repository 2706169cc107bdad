from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.controller.placement import LARGEST_GROUP, Candidate, deal_groups, place
from headrace.core.errors import InvalidReplicationFactor


def brokers(count: int, racks: int = 0, fenced: frozenset[int] = frozenset()) -> list[Candidate]:
    return [Candidate(i, f"rack{i % racks}" if racks else None, i in fenced) for i in range(count)]


def test_one_broker_holds_everything() -> None:
    assert place(brokers(1), partitions=3, replication_factor=1, start=0) == [(0,), (0,), (0,)]


def test_leaders_go_round() -> None:
    placed = place(brokers(3), partitions=6, replication_factor=2, start=1)
    assert Counter(row[0] for row in placed) == {0: 2, 1: 2, 2: 2}
    assert len({row[0] for row in placed[:3]}) == 3


def test_followers_of_a_leader_vary_so_that_its_load_spreads() -> None:
    placed = place(brokers(4), partitions=12, replication_factor=2, start=0)
    followers = defaultdict(set)
    for leader, follower in placed:
        followers[leader].add(follower)
    assert all(len(others) == 3 for others in followers.values())


@given(
    count=st.integers(1, 80),
    racks=st.integers(0, 8),
    factor=st.integers(1, 5),
    start=st.integers(0, 100),
    fenced=st.frozensets(st.integers(0, 79), max_size=40),
)
def test_replicas_are_distinct_live_first_and_racks_apart(
    count: int, racks: int, factor: int, start: int, fenced: frozenset[int]
) -> None:
    known = brokers(count, racks, fenced)
    live = {broker.broker_id for broker in known if not broker.fenced}
    if factor > count or not live:
        with pytest.raises(InvalidReplicationFactor):
            place(known, partitions=5, replication_factor=factor, start=start)
        return
    rack_of = {broker.broker_id: broker.rack for broker in known}
    for row in place(known, partitions=2 * count, replication_factor=factor, start=start):
        assert len(set(row)) == factor
        assert row[0] in live
        if racks and not fenced and racks <= count and count <= LARGEST_GROUP:
            assert len({rack_of[broker_id] for broker_id in row}) == min(factor, racks)
        if len(live) >= factor and count <= LARGEST_GROUP:
            assert live.issuperset(row)


def test_leaders_are_even_over_a_large_cluster() -> None:
    known = brokers(100, racks=10)
    placed = place(known, partitions=300, replication_factor=3, start=17)
    assert set(Counter(row[0] for row in placed).values()) == {3}
    assert all(len({broker_id % 10 for broker_id in row}) == 3 for row in placed)


def test_a_broker_has_at_most_thirty_peers_however_large_the_cluster() -> None:
    known = brokers(640, racks=40)
    peers: dict[int, set[int]] = defaultdict(set)
    for start in (0, 123, 501):
        for row in place(known, partitions=5_000, replication_factor=3, start=start):
            for broker_id in row:
                peers[broker_id].update(row)
    assert max(len(others) - 1 for others in peers.values()) <= LARGEST_GROUP - 1


def test_every_group_has_its_share_of_every_rack() -> None:
    groups = deal_groups(brokers(90, racks=3), 3)
    assert [len(group) for group in groups] == [30, 30, 30]
    for group in groups:
        assert Counter(broker.rack for broker in group) == {"rack0": 10, "rack1": 10, "rack2": 10}


def test_a_factor_above_the_group_takes_the_whole_cluster() -> None:
    placed = place(brokers(40), partitions=1, replication_factor=35, start=0)
    assert len(set(placed[0])) == 35


def test_a_fenced_broker_is_the_last_resort_of_a_follower() -> None:
    known = brokers(3, fenced=frozenset({1}))
    for row in place(known, partitions=6, replication_factor=3, start=0):
        assert row[2] == 1
    for row in place(known, partitions=6, replication_factor=2, start=0):
        assert 1 not in row


@pytest.mark.parametrize("factor", [0, -2])
def test_a_factor_is_positive(factor: int) -> None:
    with pytest.raises(InvalidReplicationFactor):
        place(brokers(3), partitions=1, replication_factor=factor, start=0)
