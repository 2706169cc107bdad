"""The dearest requests to a broker that holds much: `poe hostile-laden`, some minutes.

What a request costs here depends on what the broker has: thousands of partitions, groups and transactions.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hostile.dear_requests import DEAR, Dear
from tests.hostile.dearest import LONGEST_MS, peak_mb, send
from tests.hostile.laden import Laden, laden

_MORE_MEMORY_MB = 150


@pytest.fixture(scope="module")
def laden_broker() -> Iterator[Laden]:
    with laden() as broker:
        yield broker


@pytest.mark.parametrize("dear", DEAR, ids=lambda dear: dear.name)
def test_a_broker_that_holds_much_leaves_the_loop_to_others(laden_broker: Laden, dear: Dear) -> None:
    """In their order: some take away what others ask about."""
    request, before = dear.make(laden_broker), peak_mb()
    turn_ms, answer = send(
        laden_broker.cluster, request.API_KEY, dear.version, request.to_bytes(dear.version), 120
    )
    assert answer, "it is answered"
    assert turn_ms <= LONGEST_MS
    assert peak_mb() - before <= _MORE_MEMORY_MB
