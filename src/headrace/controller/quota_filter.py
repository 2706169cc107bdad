"""The filter of DescribeClientQuotas: which entities are meant."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple, Self

from headrace.controller.quota_image import CLIENT_ID, IP, USER, QuotaEntity
from headrace.core.errors import InvalidRequest, UnsupportedVersion


class MatchType(IntEnum):
    EXACT = 0
    DEFAULT = 1
    ANY = 2


class QuotaComponent(NamedTuple):
    entity_type: str
    match_type: int
    match: str | None = None


class QuotaFilter(NamedTuple):
    names: dict[str, str | None]
    """Types whose name has to be this; None is the default."""
    types: frozenset[str]
    """Types that an entity has to have, under any name or as the default."""
    strict: bool
    """An entity may have no further types."""

    @classmethod
    def of(cls, components: Iterable[QuotaComponent], *, strict: bool) -> Self:
        """Raises InvalidRequest, and UnsupportedVersion for a type that does not exist, as Kafka does."""
        names: dict[str, str | None] = {}
        types: set[str] = set()
        for component in components:
            kind = component.entity_type
            _check(component)
            if kind in names or kind in types:
                raise InvalidRequest(f"{kind} comes twice in the filter")
            if component.match_type == MatchType.ANY:
                types.add(kind)
            else:
                names[kind] = component.match
        asked = names.keys() | types
        if IP in asked and len(asked) > 1:
            raise InvalidRequest("an ip cannot be combined with a user or a client-id")
        return cls(names, frozenset(types), strict)

    def matches(self, entity: QuotaEntity) -> bool:
        if self.strict and len(entity) != len(self.names) + len(self.types):
            return False
        parts = dict(entity)
        return all(kind in parts for kind in self.types) and all(
            kind in parts and parts[kind] == name for kind, name in self.names.items()
        )


def _check(component: QuotaComponent) -> None:
    kind = component.entity_type
    if not kind:
        raise InvalidRequest("a component of the filter has no entity type")
    if kind not in (USER, CLIENT_ID, IP):
        raise UnsupportedVersion(f"{kind!r} is no entity type")
    if component.match_type not in list(MatchType):
        raise InvalidRequest(f"{component.match_type} is no match type")
    if (component.match is None) == (component.match_type == MatchType.EXACT):
        raise InvalidRequest("a name is given with match type 0, and with no other")
