"""What a request to change a connector writes. Nothing here writes: an operation looks and decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from headrace.connect import errors
from headrace.connect.cluster_config import ClusterConfig, Wanted
from headrace.connect.config_records import (
    ConnectorConfig,
    Entry,
    Restart,
    Target,
    TargetState,
    TaskConfig,
    TaskCount,
)

Deciding = Callable[[ClusterConfig], list[Entry]]


class Put(NamedTuple):
    """The answer of `put`."""

    created: bool
    properties: Mapping[str, str]
    tasks: int


def create(state: ClusterConfig, name: str, properties: Mapping[str, str], target: Target) -> list[Entry]:
    if state.find(name) is not None:
        raise errors.conflict(f"Connector {name} already exists")
    # Before the configuration: nobody may start it meanwhile. What a former one of that name was to do ends.
    return [TargetState(name, target), ConnectorConfig(name, properties)]


def put(state: ClusterConfig, name: str, properties: Mapping[str, str]) -> tuple[list[Entry], Put]:
    found = state.find(name)
    if found is None:
        return create(state, name, properties, Target.STARTED), Put(True, properties, 0)
    return [ConnectorConfig(name, properties)], Put(False, properties, len(found.tasks))


def delete(state: ClusterConfig, name: str) -> list[Entry]:
    _known(state, name)
    return [ConnectorConfig(name, None), TargetState(name, None), TaskCount(name, 0)]


def set_target(state: ClusterConfig, name: str, target: Target) -> list[Entry]:
    found = state.find(name)
    if found is None:
        raise errors.unknown_connector(name)
    if found.target is target:
        return []
    entries: list[Entry] = [TargetState(name, target)]
    if target is Target.STOPPED:
        entries.append(TaskCount(name, 0))
    return entries


def restart(state: ClusterConfig, name: str, *, include_tasks: bool, only_failed: bool) -> list[Entry]:
    if state.find(name) is None:
        raise errors.not_found(f"Unknown connector: {name}")
    return [Restart(name, include_tasks, only_failed)]


def restart_task(state: ClusterConfig, name: str, task: int) -> list[Entry]:
    """A connector's tasks are parts of one job, so it is the connector that is started again."""
    found = state.find(name)
    if found is None:
        raise errors.not_found(f"Unknown connector: {name}")
    if not 0 <= task < len(found.tasks):
        raise errors.not_found(f"Unknown task: {name}-{task}")
    return [Restart(name, include_tasks=True, only_failed=False)]


def set_tasks(state: ClusterConfig, wanted: Wanted, tasks: Sequence[Mapping[str, str]]) -> list[Entry]:
    """By the worker that runs it. Nothing if it is so already, or if the connector is another one by now."""
    found = state.find(wanted.name)
    if found is None or found.run != wanted.run or found.target is Target.STOPPED:
        return []
    if [dict(each) for each in found.tasks] == [dict(each) for each in tasks]:
        return []
    entries: list[Entry] = [TaskConfig(wanted.name, index, each) for index, each in enumerate(tasks)]
    return [*entries, TaskCount(wanted.name, len(tasks))]


def _known(state: ClusterConfig, name: str) -> Wanted:
    found = state.find(name)
    if found is None:
        raise errors.no_connector(name)
    return found
