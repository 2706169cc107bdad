"""Client quotas, as the committed records say them: the values of each entity.

An entity is a user, a client id, both, or an address. The name None is the default of its type: it holds for
whoever has no quota under a name of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Pairs of type and name, sorted by type; no type comes twice."""

_NONE: Final[Mapping[str, float]] = MappingProxyType({})


def entity_of(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    return tuple(sorted(parts, key=lambda part: part[0]))


class QuotaTable:
    __slots__ = ("_entities", "epoch")

    def __init__(self) -> None:
        self._entities: dict[QuotaEntity, dict[str, float]] = {}
        self.epoch = 0
        """Moves with every change."""

    # --- reading ------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of entities."""
        return len(self._entities)

    def __iter__(self) -> Iterator[QuotaEntity]:
        return iter(self._entities)

    def of(self, entity: QuotaEntity) -> Mapping[str, float]:
        """What was set for this very entity; defaults are not in it."""
        return self._entities.get(entity, _NONE)

    # --- changes: only replay calls these -----------------------------------------------------------------

    def put(self, entity: QuotaEntity, key: str, value: float) -> None:
        self._entities.setdefault(entity, {})[key] = value
        self.epoch += 1

    def remove(self, entity: QuotaEntity, key: str) -> None:
        """What is not there is not missed."""
        values = self._entities.get(entity)
        if values is None or values.pop(key, None) is None:
            return
        if not values:
            del self._entities[entity]
        self.epoch += 1
