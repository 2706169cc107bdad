"""No valid request holds the loop for long: the dearest of each API, found by search.

A few fillings of each API in every build; `python -m tests.hostile.dearest` tries all of them, and larger.
Turns are counted in the loop's own processor time, never by the clock.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from headrace.broker.requests.api import Api
from headrace.protocol.api_keys import ApiKey
from headrace.testing.cluster import Cluster
from tests.hostile.dearest import LONGEST_MS, search, searched, target
from tests.hostile.stuffed import stuffings

_BYTES = 200_000
_PATIENCE = 1.0
_ATTEMPTS = 3
"""A neighbour who empties the processor's caches may make one turn dear, but not the same one each time."""
_MORE_MEMORY_MB = 150
"""What one request may take, with its answer, on both sides of the connection: they are one process here."""
_TRIED = [
    each
    for each in stuffings(_BYTES // 8)
    if each.label
    in {
        "wide, names known, numbers 0",
        "wide, names one, numbers None",
        "wide, names other, numbers None",
        "wide, names pattern, numbers None",
        "deep, names other, numbers None",
        "both, names other, numbers -1",
        "deep, flags set",
    }
]
_CHANGE_TOPICS = {ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.DELETE_TOPICS}
"""Have a broker of their own, or the others would find another one each time."""


@pytest.fixture(scope="module", autouse=True)
def nothing_of_other_tests() -> Iterator[None]:
    """A broker keeps what lives on from the collector (`broker/process/collector.py`). This process holds
    what thousands of other tests have left: a collection of that takes half a second of somebody's turn."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def broker_of_topics() -> Iterator[Cluster]:
    with target() as cluster:
        yield cluster


@pytest.mark.parametrize("api", searched(), ids=lambda api: api.key.name)
def test_the_dearest_request_leaves_the_loop_to_others(broker_of_topics: Cluster, api: Api) -> None:
    own = target() if api.key in _CHANGE_TOPICS else nullcontext(broker_of_topics)
    with own as cluster:
        dear = _TRIED
        for _ in range(_ATTEMPTS):
            found = list(search(cluster, api, _BYTES, [api.highest], dear, _PATIENCE))
            assert all(each.more_memory_mb <= _MORE_MEMORY_MB for each in found), found
            slow = {each.stuffing: each for each in found if each.turn_ms > LONGEST_MS}
            dear = [each for each in _TRIED if each.label in slow]
            if not dear:
                return
        pytest.fail(f"{slow}")
