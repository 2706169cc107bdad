"""What a file speaks for. Everything else in the cluster is none of its business."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from headrace.client.quotas import CLIENT_ID, IP, USER, Entity
from headrace.security.acl_document import principal_of

EVERYTHING: Final = "*"
_QUOTA_PARTS: Final = (USER, CLIENT_ID, IP)


class Kind(Enum):
    """The value is the section's name in a file."""

    TOPICS = "topics"
    LINKS = "links"
    USERS = "users"
    ACLS = "acls"
    QUOTAS = "quotas"
    SCHEMAS = "schemas"
    CONNECTORS = "connectors"


class Ownership:
    """Patterns for each kind: `shop.*` is what begins with `shop.`, `*` everything, `orders` that name."""

    def __init__(self, patterns: Mapping[Kind, Iterable[str]]) -> None:
        self.patterns: dict[Kind, tuple[str, ...]] = {kind: tuple(each) for kind, each in patterns.items()}

    def __contains__(self, kind: Kind) -> bool:
        return bool(self.patterns.get(kind))

    def topic(self, name: str) -> bool:
        return self._matches(Kind.TOPICS, name)

    def link(self, name: str) -> bool:
        return self._matches(Kind.LINKS, name)

    def user(self, name: str) -> bool:
        return self._matches(Kind.USERS, name)

    def subject(self, name: str) -> bool:
        return self._matches(Kind.SCHEMAS, name)

    def connector(self, name: str) -> bool:
        return self._matches(Kind.CONNECTORS, name)

    def principal(self, principal: str) -> bool:
        """Rules belong to whom they are for: `shop-*` is `User:shop-*`."""
        return any(
            pattern == EVERYTHING or _match(principal_of(pattern), principal)
            for pattern in self.patterns.get(Kind.ACLS, ())
        )

    def quota(self, entity: Entity) -> bool:
        """By the user's name if it has one, else the client id's or the address. Defaults are in * alone."""
        names = dict(entity)
        name = next((names[kind] for kind in _QUOTA_PARTS if kind in names), None)
        if name is None:
            return EVERYTHING in self.patterns.get(Kind.QUOTAS, ())
        return self._matches(Kind.QUOTAS, name)

    def _matches(self, kind: Kind, name: str) -> bool:
        return any(_match(pattern, name) for pattern in self.patterns.get(kind, ()))


def _match(pattern: str, name: str) -> bool:
    if pattern.endswith(EVERYTHING):
        return name.startswith(pattern.removesuffix(EVERYTHING))
    return name == pattern
