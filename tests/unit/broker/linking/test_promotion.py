"""What the leader of a copy says when it opens it."""

from __future__ import annotations

import pytest

from headrace.broker.linking.promotion import above_all
from headrace.controller.links import LARGEST_PRODUCER_ID


@pytest.mark.parametrize(
    ("ids", "least"),
    [
        ((), 0),
        ((7, 5000), 5001),
        ((7, 2**63 - 1), 8),
        ((LARGEST_PRODUCER_ID,), 0),
        ((LARGEST_PRODUCER_ID - 1,), LARGEST_PRODUCER_ID),
    ],
)
def test_ids_that_no_cluster_hands_out_use_up_none_of_ours(ids: tuple[int, ...], least: int) -> None:
    assert above_all(ids) == least
