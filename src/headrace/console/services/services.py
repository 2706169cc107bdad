"""The services beside the brokers that a console was told of."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.client.rest import Rest
from headrace.console.services import connect
from headrace.console.services.connect import ConnectSeen
from headrace.console.services.following import Followed
from headrace.console.services.registry import RegistryLooks, RegistrySeen


@dataclass(frozen=True)
class Services:
    """None: nobody said where it is."""

    registry: Followed[RegistrySeen] | None = None
    connect: Followed[ConnectSeen] | None = None
    looks: RegistryLooks = field(default_factory=RegistryLooks)

    @classmethod
    def at(cls, registry: Rest | None, worker: Rest | None) -> Services:
        looks = RegistryLooks()
        return cls(
            None if registry is None else Followed(registry, looks.look),
            None if worker is None else Followed(worker, connect.look),
            looks,
        )

    def start(self) -> None:
        for each in (self.registry, self.connect):
            if each is not None:
                each.start()

    def stop(self) -> None:
        for each in (self.registry, self.connect):
            if each is not None:
                each.stop()
