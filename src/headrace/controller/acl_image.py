"""The ACLs of the cluster, as the committed records say them.

Every rule has an id of its own. Whoever decides on requests keeps an index of the rules: it follows the
delta, or builds the index again where the epoch is not the one that it knows.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from headrace.security.acl import WILDCARD, AclRule, PatternType
from headrace.security.acl_filter import AclFilter

_LONGEST_PREFIX: Final = 256
"""A longer name is compared with each name that has rules, not cut at each of its letters."""


class AclTable:
    """Invariant: `_by_name` and `_uses` hold exactly the rules of `by_id`."""

    __slots__ = ("_by_name", "_uses", "by_id", "epoch")

    def __init__(self) -> None:
        self.by_id: dict[UUID, AclRule] = {}
        self.epoch = 0
        """Moves with every change."""
        self._by_name: dict[str, dict[UUID, AclRule]] = {}
        # Under how many ids a rule is stored: one, unless another controller has stored it twice.
        self._uses: dict[AclRule, int] = {}

    # --- reading ------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.by_id)

    def __contains__(self, rule: object) -> bool:
        return rule in self._uses

    def candidates(self, wanted: AclFilter) -> list[tuple[UUID, AclRule]]:
        """Rules that the filter has to be compared with. All others do not match it.

        A list of its own: it may be gone through with pauses, while rules come and go.
        """
        if wanted.name is None:
            return list(self.by_id.items())
        names = self._covering(wanted.name) if wanted.pattern == PatternType.MATCH else [wanted.name]
        return [found for name in names for found in self._by_name.get(name, {}).items()]

    def _covering(self, name: str) -> list[str]:
        """Names whose rules may be about the resource `name`: itself, its prefixes, and the wildcard."""
        if len(name) > _LONGEST_PREFIX:
            found = {each for each in self._by_name if name.startswith(each)}
        else:
            found = {name[:end] for end in range(1, len(name) + 1)} & self._by_name.keys()
        return sorted(found | {WILDCARD})

    # --- changes: only replay calls these -----------------------------------------------------------------

    def add(self, acl_id: UUID, rule: AclRule) -> bool:
        """Whether there was no such rule before. The id is new."""
        is_new = rule not in self._uses
        self.by_id[acl_id] = rule
        self._by_name.setdefault(rule.name, {})[acl_id] = rule
        self._uses[rule] = self._uses.get(rule, 0) + 1
        self.epoch += 1
        return is_new

    def remove(self, acl_id: UUID) -> bool:
        """Whether the rule is gone with its id. The id exists."""
        rule = self.by_id.pop(acl_id)
        named = self._by_name[rule.name]
        del named[acl_id]
        if not named:
            del self._by_name[rule.name]
        self._uses[rule] -= 1
        self.epoch += 1
        if self._uses[rule]:
            return False
        del self._uses[rule]
        return True
