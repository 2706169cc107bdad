"""What requests take that wait: produces for replicas or a disk, fetches for records, members for each other.

All but produces hold up their connections, so there are no more of them than connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.produce_purgatory import DELAYED_BYTES

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

FETCH_BYTES: Final = 1500
PARKED_BYTES: Final = 1500


def held_bytes(broker: Broker) -> int:
    parked = broker.coordinators.count_parked()
    fetches = len(broker.fetch_purgatory)
    return DELAYED_BYTES * len(broker.produce_purgatory) + FETCH_BYTES * fetches + PARKED_BYTES * parked
