"""A question for each row of the list of needed rights: requests about what is open and what is shut, and
what the answers say of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message
from headrace.security.acl import CLUSTER_NAME, ResourceType

Codes = dict[tuple[ResourceType, str], int]
T, G, C = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
X, U = ResourceType.TRANSACTIONAL_ID, ResourceType.USER


class Question(NamedTuple):
    """Of resources whose names begin with `prefix`."""

    api: ApiKey
    case: str
    requests: Callable[[int, str, str], list[Message]]
    """Of the version and the two names."""
    codes: Callable[[Any, Any], Codes]
    """Of a request and its response; what is not told of is not in it."""
    prefix: str = ""
    also: tuple[str, ...] = ()
    """Other cases whose rights it needs."""
    versions: range | None = None
    """Those that it can be asked in, if not all."""

    @property
    def key(self) -> tuple[ApiKey, str]:
        return self.api, self.case


def of_cluster(code: int) -> Codes:
    return {(C, CLUSTER_NAME): code}


def by_name(kind: ResourceType, rows: Iterable[Any], field: str = "name", code: str = "error_code") -> Codes:
    return {(kind, getattr(row, field)): getattr(row, code) for row in rows}


def by_partition(
    kind: ResourceType,
    topics: Iterable[Any],
    field: str = "name",
    rows: str = "partitions",
    code: str = "error_code",
) -> Codes:
    return {(kind, getattr(each, field)): getattr(getattr(each, rows)[0], code) for each in topics}


def by_resource(rows: Iterable[Any]) -> Codes:
    kinds = {2: T, 32: G}
    return {
        (kinds[row.resource_type], row.resource_name)
        if row.resource_type in kinds
        else (C, CLUSTER_NAME): row.error_code
        for row in rows
    }
