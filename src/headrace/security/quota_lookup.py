"""Which quota holds for a client: the most special of those that were set.

A quota of a user and a client id comes before one of the user, that before one of the client id. A name comes
before a default. Clients that share the entity of a quota share what it allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

Part = tuple[str, str | None]
Entity = tuple[Part, ...]
"""Pairs of type and name, sorted by type; the name None is the default of its type."""
ValuesOf = Callable[[Entity], Mapping[str, float]]

USER: Final = "user"
CLIENT_ID: Final = "client-id"


class Quota(NamedTuple):
    bound: float
    holder: Entity
    """Who shares it: the entity with its defaults replaced by the client's own names."""


def quota_of(values_of: ValuesOf, key: str, user: str, client_id: str) -> Quota | None:
    """None: there is no limit."""
    for of_user, of_client in _ORDER:
        entity = _entity(_name(of_user, user), _name(of_client, client_id))
        bound = values_of(entity).get(key)
        if bound is not None:
            return Quota(bound, _entity(_held(of_user, user), _held(of_client, client_id)))
    return None


_NAMED: Final = "named"
_DEFAULT: Final = "default"
_ORDER: Final = (
    (_NAMED, _NAMED),
    (_NAMED, _DEFAULT),
    (_NAMED, None),
    (_DEFAULT, _NAMED),
    (_DEFAULT, _DEFAULT),
    (_DEFAULT, None),
    (None, _NAMED),
    (None, _DEFAULT),
)
"""KIP-55's: what is set for the user, and for the client id; None: the entity has no such part."""
_ABSENT: Final = object()


def _name(kind: str | None, name: str) -> object:
    return _ABSENT if kind is None else name if kind == _NAMED else None


def _held(kind: str | None, name: str) -> object:
    return _ABSENT if kind is None else name


def _entity(user: object, client_id: object) -> Entity:
    parts = ((CLIENT_ID, client_id), (USER, user))
    return tuple((kind, name) for kind, name in parts if name is None or isinstance(name, str))
