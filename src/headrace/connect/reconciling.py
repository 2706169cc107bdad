"""What a worker is to start and to stop, by what it was given and what it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headrace.connect.cluster_config import ClusterConfig, Wanted
from headrace.connect.config_records import Target


class Running(NamedTuple):
    """A connector that the runner has."""

    run: tuple[int, int]
    """The `Wanted.run` that it was started for."""
    has_failed: bool


class Steps(NamedTuple):
    start: list[Wanted]
    stop: list[str]
    keep: list[Wanted]
    """They run as they are, although a restart was asked for: of failed ones, and they have not failed."""


def steps(
    state: ClusterConfig, assigned: Iterable[str], running: Mapping[str, Running], busy: Iterable[str]
) -> Steps:
    """`busy` are being stopped: what becomes of them is decided when they are."""
    wanted = {
        name: found
        for name in assigned
        if (found := state.find(name)) is not None and found.target is Target.STARTED
    }
    left_alone = set(busy)
    todo = Steps([], [], [])
    for name, run in running.items():
        if name in left_alone:
            continue
        now = wanted.get(name)
        if now is None:
            todo.stop.append(name)
        elif now.run != run.run:
            (todo.keep.append(now) if _may_stay(now, run) else todo.stop.append(name))
    for name, each in wanted.items():
        if name not in running and name not in left_alone:
            todo.start.append(each)
    return todo


def _may_stay(wanted: Wanted, running: Running) -> bool:
    only_failed = wanted.restart is not None and wanted.restart.only_failed
    is_same_config = wanted.config_offset == running.run[0]
    return only_failed and is_same_config and not running.has_failed
