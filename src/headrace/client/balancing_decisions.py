"""What self-balancing has decided lately, as the brokers that were the controller tell it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from headrace.client.broker_health import BrokerHealth
from headrace.client.moments import utc
from headrace.config.health import BALANCING


class BalancingDecision(NamedTuple):
    wall_ms: int
    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}, because {self.why} ({utc(self.wall_ms)})"


def decisions(told: Iterable[BrokerHealth]) -> list[BalancingDecision]:
    """Of all of them, the latest last."""
    found = []
    for broker in told:
        try:
            found += [
                BalancingDecision(int(at), str(what), str(why))
                for at, what, why in json.loads(broker.figures.get(BALANCING, "[]"))
            ]
        except (ValueError, TypeError):
            continue  # a broker of another version
    return sorted(found)
