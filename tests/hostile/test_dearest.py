"""No valid request holds the loop for long: the dearest of each API, found by search.

A few fillings of each API in every build; `python -m tests.hostile.dearest` tries all of them, and larger.
"""

from __future__ import annotations

import pytest

from headrace.broker.api import Api
from tests.hostile.dearest import LONGEST_MS, search, searched, target
from tests.hostile.stuffed import stuffings

_BYTES = 200_000
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


@pytest.mark.parametrize("api", searched(), ids=lambda api: api.key.name)
def test_the_dearest_request_leaves_the_loop_to_others(api: Api) -> None:
    with target() as cluster:
        for found in search(cluster, api, _BYTES, [api.highest], _TRIED):
            assert found.turn_ms <= LONGEST_MS, found
