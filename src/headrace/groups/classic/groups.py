"""The classic groups of one shard."""

from __future__ import annotations

from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.coordinators.shard import Timers
from headrace.core.ports import Random
from headrace.groups.group_config import GroupConfig
from headrace.groups.group_table import GroupTable


class ClassicGroups:
    def __init__(self, groups: GroupTable, timers: Timers, config: GroupConfig, random: Random) -> None:
        self._groups = groups
        self._timers = timers
        self._config = config
        self._random = random

    def replay(self, record: CoordinatorRecord) -> None:
        """Change the state by a record whose key is a GroupMetadataKey."""

    def on_loaded(self, now_ms: int) -> Decision[None]:  # noqa: ARG002 - no timers yet
        return Decision((), None)
