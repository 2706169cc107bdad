"""How a broker is, for whoever decides about its process: alive, and ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


class BrokerHealth:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def broken(self) -> str | None:
        broker = self._broker
        if broker.failure.done():
            return str(broker.failure.result())
        offline = [directory.path for directory in broker.logs.directories if not directory.is_online]
        if offline:
            return f"offline log directories: {', '.join(offline)}"
        if broker.partitions.offline:
            return f"offline partitions: {', '.join(map(str, broker.partitions.offline))}"
        return None

    def degraded(self) -> str | None:
        reachability = self._broker.reachability
        return None if reachability is None else reachability.noticed

    async def unready(self) -> str | None:
        reachability = self._broker.reachability
        return None if reachability is None else await reachability.look()
