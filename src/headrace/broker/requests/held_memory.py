"""What requests take that wait: produces for replicas or a disk, fetches for records, members for each other.

All but produces hold up their connections, so there are no more of them than connections.
"""

from __future__ import annotations

from typing import Final

from headrace.broker.coordinators.coordinators import Coordinators
from headrace.broker.fetch.delayed_fetch import FetchPurgatory
from headrace.broker.produce.produce_purgatory import DELAYED_BYTES, ProducePurgatory

FETCH_BYTES: Final = 1500
PARKED_BYTES: Final = 1500


def held_bytes(
    coordinators: Coordinators, fetch_purgatory: FetchPurgatory, produce_purgatory: ProducePurgatory
) -> int:
    parked = coordinators.count_parked()
    fetches = len(fetch_purgatory)
    return DELAYED_BYTES * len(produce_purgatory) + FETCH_BYTES * fetches + PARKED_BYTES * parked
