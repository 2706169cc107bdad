"""What the topic of configurations says: every connector, its tasks, and what it is to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from headrace.connect.config_records import (
    ConnectorConfig,
    Entry,
    LoggerLevel,
    Restart,
    Target,
    TargetState,
    TaskConfig,
    TaskCount,
)


@dataclass(frozen=True)
class Wanted:
    """One connector as it is to run. A value: it is replaced, never changed."""

    name: str
    properties: Mapping[str, str]
    target: Target = Target.STARTED
    tasks: tuple[Mapping[str, str], ...] = ()
    config_offset: int = -1
    """Of the record with its configuration: another one, another run."""
    restart_offset: int = -1
    """Of the last request to restart it."""
    restart: Restart | None = None

    @property
    def run(self) -> tuple[int, int]:
        """What runs under another one of these must be started anew."""
        return self.config_offset, self.restart_offset


@dataclass
class _Pending:
    """What has come of a connector whose configuration, or the number of its tasks, has not."""

    target: Target = Target.STARTED
    tasks: dict[int, Mapping[str, str]] = field(default_factory=dict)


class ClusterConfig:
    """Only `replay` changes it."""

    def __init__(self) -> None:
        self._wanted: dict[str, Wanted] = {}
        self._pending: dict[str, _Pending] = {}

    def __iter__(self) -> Iterator[Wanted]:
        return iter(self._wanted.values())

    def __len__(self) -> int:
        return len(self._wanted)

    def names(self) -> list[str]:
        return list(self._wanted)

    def find(self, name: str) -> Wanted | None:
        return self._wanted.get(name)

    def replay(self, entry: Entry, offset: int) -> None:
        match entry:
            case ConnectorConfig(name, None):
                self._wanted.pop(name, None)
                self._pending.pop(name, None)
            case ConnectorConfig(name, properties):
                assert properties is not None
                found = self._wanted.get(name)
                if found is None:
                    to_do = self._pending_of(name).target
                    self._wanted[name] = Wanted(name, properties, to_do, config_offset=offset)
                else:
                    self._change(name, properties=properties, config_offset=offset)
            case TaskConfig(name, task, properties):
                self._pending_of(name).tasks[task] = properties
            case TaskCount(name, tasks):
                self._commit(name, tasks)
            case TargetState(name):
                target = Target.STARTED if entry.target is None else entry.target
                self._pending_of(name).target = target
                self._change(name, target=target)
            case Restart(name):
                self._change(name, restart_offset=offset, restart=entry)
            case LoggerLevel():
                pass  # for those that run when it comes, see `stores.py`

    def _commit(self, name: str, tasks: int) -> None:
        """Of tasks whose configuration compaction has taken away there is none: they come anew."""
        waiting = self._pending_of(name).tasks
        found = tuple(waiting[task] for task in range(tasks) if task in waiting)
        self._change(name, tasks=found if len(found) == tasks else ())

    def _pending_of(self, name: str) -> _Pending:
        return self._pending.setdefault(name, _Pending())

    def _change(self, name: str, **fields: object) -> None:
        found = self._wanted.get(name)
        if found is not None:
            self._wanted[name] = Wanted(**{**found.__dict__, **fields})
