"""How each broker says that it is: its own figures, or that it does not answer at all.

A broker that is registered may be gone all the same, as long as nobody could fence it. So each is asked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headrace.client.broker_reports import ask
from headrace.client.cluster import Cluster
from headrace.config.health import FENCED, HEALTH


class ScrubState(NamedTuple):
    """How far a broker is with looking for damage in what nobody reads."""

    percent: int | None
    """Of sealed bytes, in the round under way; 100 between two; None: the scrub is turned off."""
    last_ended_ms: int
    """When a round last came to its end, in milliseconds since 1970; 0: never."""
    damage_found: int
    """Damaged places, by readers and by the scrub, since the broker's start."""


class Fencing(NamedTuple):
    wall_ms: int
    reason: str


class BrokerHealth(NamedTuple):
    answers: bool
    figures: Mapping[str, str] = {}
    """By their names without the prefix; empty of a broker that is not a Headrace."""

    @property
    def reaches_zookeeper(self) -> bool | None:
        """None where there is no ZooKeeper, or the broker does not say."""
        told = self.figures.get("zookeeper.answers")
        return None if told is None else told == "true"

    @property
    def fenced(self) -> dict[int, Fencing]:
        """Whom it has fenced while it was the controller, each the last time."""
        try:
            return {int(number): Fencing(*told) for number, told in json.loads(self.figures[FENCED]).items()}
        except (KeyError, ValueError, TypeError, AttributeError):
            return {}  # none, or a broker of another version

    @property
    def scrub(self) -> ScrubState | None:
        """None: the broker knows nothing of it."""
        last = self.figures.get("scrub.last.pass.ms", "")
        if not last.isdecimal():
            return None
        percent = self.figures.get("scrub.pass.percent", "")
        found = self.figures.get("log.damage.found", "")
        return ScrubState(
            int(percent) if percent.isdecimal() else None,
            int(last),
            int(found) if found.isdecimal() else 0,
        )


async def ask_brokers(cluster: Cluster, broker_ids: Iterable[int]) -> dict[int, BrokerHealth]:
    """All at once, each within the time that a connection may take."""
    wanted = list(broker_ids)
    return dict(zip(wanted, await asyncio.gather(*(_ask(cluster, each) for each in wanted)), strict=True))


async def _ask(cluster: Cluster, broker_id: int) -> BrokerHealth:
    told = await ask(cluster, broker_id, HEALTH, cluster.connect_timeout)
    return BrokerHealth(False) if told is None else BrokerHealth(True, told.figures)
