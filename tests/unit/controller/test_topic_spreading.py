from __future__ import annotations

from collections import Counter

import pytest

from headrace.controller.topic_spreading import spread_topic
from headrace.core.errors import InvalidReplicationFactor

RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}


def test_what_is_on_the_named_brokers_stays() -> None:
    before = {0: (1, 3), 1: (3, 1)}
    assert spread_topic(before, {1: "a", 3: "b"}) == before


def test_everything_else_moves_there_evenly() -> None:
    before = dict.fromkeys(range(8), (8, 9))
    after = spread_topic(before, RACKS)
    assert all(set(replicas) <= set(RACKS) and len(replicas) == 2 for replicas in after.values())
    assert set(Counter(b for replicas in after.values() for b in replicas).values()) == {4}
    assert set(Counter(replicas[0] for replicas in after.values()).values()) == {2}
    assert all(RACKS[first] != RACKS[second] for first, second in after.values())


def test_the_number_of_replicas_can_grow_and_shrink() -> None:
    grown = spread_topic({0: (1, 3)}, RACKS, 3)
    assert set(grown[0]) > {1, 3}
    assert len(spread_topic({0: (1, 2, 3)}, RACKS, 1)[0]) == 1


def test_more_replicas_than_brokers_is_refused() -> None:
    with pytest.raises(InvalidReplicationFactor, match="3 replicas need as many brokers; 2 are named"):
        spread_topic({0: (5, 6, 7)}, {1: None, 2: None})
