"""Client quotas: what may be set for whom.

A quota belongs to a user, to a client id, to both together, or to an address. Hosts are named by their
addresses only: the controller asks no name server.
"""

from __future__ import annotations

import ipaddress
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from headrace.controller.image import MetadataImage
from headrace.controller.operations import RecordGroup, Result
from headrace.controller.quota_image import CLIENT_ID, IP, USER, QuotaEntity
from headrace.controller.security_operations import AlteredQuota, QuotaAlteration, QuotaChange
from headrace.controller.security_records import quota_record
from headrace.core.errors import HeadraceError, InvalidRequest

_MOST_INT: Final = float(2**31 - 1)
_MOST_LONG: Final = float(2**63)
_NO_INTEGER: Final = 1e-6
"""A fraction above this cannot come from rounding."""

MOST_TYPES: Final = 3
MOST_CHANGES: Final = 100
"""Of one entity. There are fewer quotas, but one that is unknown can be removed."""

Bounds = Mapping[str, float | None]
"""The largest integer that a quota may be, by its key; None for a quota that may be a fraction."""

_OF_CLIENTS: Final[Bounds] = {
    "producer_byte_rate": _MOST_LONG,
    "consumer_byte_rate": _MOST_LONG,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_OF_ADDRESSES: Final[Bounds] = {"connection_creation_rate": _MOST_INT}


def alter_client_quotas(
    image: MetadataImage, alterations: Sequence[QuotaAlteration]
) -> Result[list[AlteredQuota]]:
    """Each entity is altered as a whole or not at all."""
    named = Counter(alteration.entity for alteration in alterations)
    groups: list[RecordGroup] = []
    outcomes: list[AlteredQuota] = []
    for entity, mentions in named.items():
        if mentions > 1:
            outcomes.append(AlteredQuota(entity, InvalidRequest("the entity is listed twice")))
    for entity, changes in alterations:
        if named[entity] > 1:
            continue
        try:
            group = _records(image, entity, changes)
        except HeadraceError as error:
            outcomes.append(AlteredQuota(entity, error))
            continue
        if group:
            groups.append(group)
        outcomes.append(AlteredQuota(entity))
    return Result(groups, outcomes)


def _records(image: MetadataImage, entity: QuotaEntity, changes: Sequence[QuotaChange]) -> RecordGroup:
    bounds = _check_entity(entity)
    if len(changes) > MOST_CHANGES:
        raise InvalidRequest(f"an entity has at most {MOST_CHANGES} changes in one request")
    current = image.quotas.of(entity)
    seen: set[str] = set()
    group: RecordGroup = []
    for key, value in changes:
        if key in seen:
            raise InvalidRequest(f"quota {key} is listed twice")
        seen.add(key)
        if value is not None:
            _check_value(bounds, key, value)
        if current.get(key) != value:
            group.append(quota_record(entity, key, value))
    return group


def _check_entity(entity: QuotaEntity) -> Bounds:
    names = dict(entity)
    if len(entity) > MOST_TYPES:
        raise InvalidRequest(f"an entity has at most {MOST_TYPES} parts")
    if len(names) < len(entity):
        raise InvalidRequest("the entity has two names of one type")
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            raise InvalidRequest(f"{kind!r} is no entity type: there are {USER}, {CLIENT_ID} and {IP}")
        if name == "":
            raise InvalidRequest(f"the {kind} has an empty name; the default has none at all")
    if not names:
        raise InvalidRequest("the entity is empty")
    if IP not in names:
        return _OF_CLIENTS
    if len(names) > 1:
        raise InvalidRequest("an ip cannot be combined with a user or a client-id")
    address = names[IP]
    if address is not None:
        _check_address(address)
    return _OF_ADDRESSES


def _check_address(text: str) -> None:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise InvalidRequest(f"{text!r} is no IP address") from None


def _check_value(bounds: Bounds, key: str, value: float) -> None:
    if key not in bounds:
        raise InvalidRequest(f"this entity has no quota {key!r}: there are {', '.join(bounds)}")
    if not (math.isfinite(value) and value > 0):
        raise InvalidRequest(f"quota {key} must be greater than 0")
    most = bounds[key]
    if most is None:
        return
    if value > most:
        raise InvalidRequest(f"quota {key} must be at most {most:.0f}")
    if value % 1.0 > _NO_INTEGER:
        raise InvalidRequest(f"quota {key} must be an integer")
