"""Every group of one shard by its id, whatever its type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from headrace.core.errors import GroupNotFound
from headrace.groups.group import Group

G = TypeVar("G", bound=Group)


class GroupTable:
    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}

    def get(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    def of_class(self, group_id: str, kind: type[G]) -> G | None:
        """The group if it is of this class; None also if it is of another."""
        group = self._groups.get(group_id)
        return group if isinstance(group, kind) else None

    def require(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            raise GroupNotFound(f"Group {group_id} not found.")
        return group

    def put(self, group: Group) -> None:
        """Also replaces: a group that changes its type keeps its id."""
        self._groups[group.group_id] = group

    def remove(self, group_id: str) -> None:
        self._groups.pop(group_id, None)

    def remove_of_class(self, group_id: str, kind: type[Group]) -> None:
        """For tombstones: a group of another type, that has taken the place of the old one, stays."""
        if isinstance(self._groups.get(group_id), kind):
            del self._groups[group_id]

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._groups.values()))

    def __len__(self) -> int:
        return len(self._groups)

    def __contains__(self, group_id: object) -> bool:
        return group_id in self._groups
