"""What a client may do, asked on every request: decisions of the index, kept until the rules change.

Connections of the same principal and host share one `Rights`. No decision outlives its epoch. A denial is
reported each time, a use of a right once: what was reported is kept together with the decision, so that the
next question of the same kind costs one look-up.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, Literal

from headrace.security.acl import WILDCARD, AclRule, Operation, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.acl_rule_scope import ALL_OPERATIONS

Mode = Literal["enforce", "shadow"]
Wanted = tuple[Operation, ResourceType, str | None]
"""Without a name: on any one resource of the type."""
Report = Callable[[str, str, Operation, ResourceType, str], None]
"""Gets principal, host, operation, resource type and name; `*` where any one resource would have done."""

MOST_RIGHTS: Final = 10_000
MOST_NAMES: Final = 4_096
LONGEST_KEPT_NAME: Final = 256
"""Clients choose the names: of groups and transactional ids up to 32 KiB."""
SUPER_USER_CLASS: Final = 0
"""All super users may do the same, whatever the rules say, so they share one class."""


def _ignore(principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str) -> None:
    """Nobody wants to know."""


class Authorizer:
    def __init__(
        self,
        index: AclIndex,
        *,
        super_users: Iterable[str] = (),
        mode: Mode = "enforce",
        on_denial: Report = _ignore,
        on_shadow_denial: Report = _ignore,
        on_use: Report = _ignore,
    ) -> None:
        self.epoch = 0
        """Moves with every change of what anybody may do."""
        self.on_denial = on_denial
        self.on_shadow_denial = on_shadow_denial
        self.on_use = on_use
        """Told once of each right that a client used by the rules, and again after a change of them. Never of
        super users."""
        self._index = index
        self._super_users = frozenset(super_users)
        self._mode: Mode = mode
        self._rights: OrderedDict[tuple[str, str], Rights] = OrderedDict()
        self._last_class = SUPER_USER_CLASS

    @property
    def index(self) -> AclIndex:
        """To be read. A change of rules goes through the authoriser, or kept decisions would outlive it."""
        return self._index

    @property
    def super_users(self) -> frozenset[str]:
        return self._super_users

    @property
    def mode(self) -> Mode:
        return self._mode

    def add(self, rule: AclRule) -> None:
        if rule not in self._index:
            self._index.add(rule)
            self.epoch += 1

    def remove(self, rule: AclRule) -> None:
        if rule in self._index:
            self._index.remove(rule)
            self.epoch += 1

    def replace_index(self, index: AclIndex) -> None:
        """After a snapshot was loaded."""
        self._index = index
        self.epoch += 1

    def set_super_users(self, super_users: Iterable[str]) -> None:
        self._super_users = frozenset(super_users)
        self.epoch += 1

    def set_mode(self, mode: Mode) -> None:
        self._mode = mode
        self.epoch += 1

    def rights_of(self, principal: str, host: str) -> Rights:
        """A connection keeps what it gets; those that were asked for longest ago are no longer shared."""
        found = self._rights.get((principal, host))
        if found is not None:
            self._rights.move_to_end((principal, host))
            return found
        made = self._rights[principal, host] = Rights(self, principal, host)
        if len(self._rights) > MOST_RIGHTS:
            self._rights.popitem(last=False)
        return made

    def next_class(self) -> int:
        self._last_class += 1
        return self._last_class


class Rights:
    """In shadow mode everything is allowed that ends with it, and what the rules deny is reported."""

    __slots__ = (
        "_authorizer",
        "_by_type",
        "_class_id",
        "_epoch",
        "_is_super_user",
        "_masks",
        "_used",
        "host",
        "principal",
    )

    def __init__(self, authorizer: Authorizer, principal: str, host: str) -> None:
        self.principal = principal
        self.host = host
        self._authorizer = authorizer
        self._masks: dict[tuple[ResourceType, str], int] = {}
        """By the rules, in shadow mode too. At most MOST_NAMES, and all of the epoch `_epoch`."""
        self._used: dict[tuple[ResourceType, str | None], int] = {}
        """Those bits of the masks that were asked for and reported; None stands for any one resource. Bounded
        in the same way."""
        self._by_type: dict[tuple[Operation, ResourceType], bool] = {}
        self._renew()

    def __repr__(self) -> str:
        return f"Rights({self.principal!r}, {self.host!r})"

    @property
    def class_id(self) -> int:
        """Answers that were made with the same class id may be shared. Another epoch, another id."""
        if self._epoch != self._authorizer.epoch:
            self._renew()
        return self._class_id

    def allows(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Reports a denial, and the first use."""
        # One look-up where the same was allowed before: this is asked for every partition of every request.
        if self._epoch != self._authorizer.epoch:
            self._renew()
        if self._used.get((resource_type, name), 0) >> operation & 1:
            return True
        return self.allows_any((operation, resource_type, name))

    def allows_any(self, *wanted: Wanted) -> bool:
        """Whether one of these is allowed, say CREATE on the cluster or on the topic. Else reports the last.

        Two questions with `or` would report the first although the second is allowed, and shadow mode would
        not ask the second at all.
        """
        for each in wanted:
            if self._permits(*each):
                self._use(*each)
                return True
        return self._deny(*wanted[-1])

    def enforces(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """By the rules, in shadow mode too, and reported: for what outlasts that mode. Whoever could make
        rules, passwords and tokens while nothing is denied would keep them when everything is.
        """
        if self._permits(operation, resource_type, name):
            self._use(operation, resource_type, name)
            return True
        self._report(self._authorizer.on_denial, operation, resource_type, name)
        return False

    def allows_by_type(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether some resource of the type is allowed, as InitProducerId asks. Reports a denial."""
        return self.allows_any((operation, resource_type, None))

    def allows_silently(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """For what a list leaves out: a client that lists did not ask for each of them."""
        return bool(self.mask(resource_type, name) >> operation & 1)

    def is_granted(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """By rules, also in shadow mode: for secrets, which that mode must not open to more people than a
        broker without an authorizer does. Reports nothing.
        """
        return bool(self._mask(resource_type, name) >> operation & 1)

    def mask(self, resource_type: ResourceType, name: str) -> int:
        """The bits `1 << operation` of what `allows` would allow. Reports nothing."""
        return ALL_OPERATIONS if self._authorizer.mode == "shadow" else self._mask(resource_type, name)

    def _mask(self, resource_type: ResourceType, name: str) -> int:
        if self._epoch != self._authorizer.epoch:
            self._renew()
        mask = self._masks.get((resource_type, name))
        return self._decide(resource_type, name) if mask is None else mask

    def _permits(self, operation: Operation, resource_type: ResourceType, name: str | None) -> bool:
        """By the rules, whatever the mode."""
        if name is not None:
            return bool(self._mask(resource_type, name) >> operation & 1)
        if self._epoch != self._authorizer.epoch:
            self._renew()
        known = self._by_type.get((operation, resource_type))
        if known is None:
            index = self._authorizer.index
            known = self._is_super_user or index.allows_by_type(
                self.principal, self.host, operation, resource_type
            )
            self._by_type[operation, resource_type] = known
        return known

    def _decide(self, resource_type: ResourceType, name: str) -> int:
        if self._is_super_user:
            mask = ALL_OPERATIONS
        else:
            mask = self._authorizer.index.mask(self.principal, self.host, resource_type, name)
        if len(name) <= LONGEST_KEPT_NAME:
            if len(self._masks) >= MOST_NAMES:
                self._masks.clear()
            self._masks[resource_type, name] = mask
        return mask

    def _use(self, operation: Operation, resource_type: ResourceType, name: str | None) -> None:
        used = self._used.get((resource_type, name), 0)
        if used >> operation & 1:
            return
        if name is None or len(name) <= LONGEST_KEPT_NAME:
            if len(self._used) >= MOST_NAMES:
                self._used.clear()
            self._used[resource_type, name] = ALL_OPERATIONS if self._is_super_user else used | 1 << operation
        if not self._is_super_user:
            self._report(self._authorizer.on_use, operation, resource_type, name)

    def _deny(self, operation: Operation, resource_type: ResourceType, name: str | None) -> bool:
        authorizer = self._authorizer
        shadow = authorizer.mode == "shadow"
        report = authorizer.on_shadow_denial if shadow else authorizer.on_denial
        self._report(report, operation, resource_type, name)
        return shadow

    def _report(
        self, report: Report, operation: Operation, resource_type: ResourceType, name: str | None
    ) -> None:
        report(self.principal, self.host, operation, resource_type, WILDCARD if name is None else name)

    def _renew(self) -> None:
        self._epoch = self._authorizer.epoch
        self._masks.clear()
        self._used.clear()
        self._by_type.clear()
        self._is_super_user = self.principal in self._authorizer.super_users
        self._class_id = SUPER_USER_CLASS if self._is_super_user else self._authorizer.next_class()
