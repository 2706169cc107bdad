"""Says in the topic of statuses how this worker's connectors are: what has changed since it was last said."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from headrace.client.state_topic import Pair
from headrace.connect.cluster_config import Wanted
from headrace.connect.config_records import Target
from headrace.connect.runner import Condition, Report
from headrace.connect.statuses import State, Status, connector_key, task_key, topic_pair
from headrace.connect.stores import ConfigStore, StatusStore


class StatusWriter:
    def __init__(
        self,
        statuses: StatusStore,
        configs: ConfigStore,
        worker_id: str,
        generation: Callable[[], int],
        version_of: Callable[[Wanted], str | None],
    ) -> None:
        self._statuses = statuses
        self._configs = configs
        self._worker_id = worker_id
        self._generation = generation
        self._version_of = version_of
        """Also of a connector that was never started."""
        self._said: dict[str, Report] = {}
        self._told: dict[str, dict[bytes, tuple[State, str | None]]] = {}
        """What is in the topic, as far as this worker has written it; of those that it has only."""
        self._used: dict[str, set[str]] = {}
        self._topics: dict[str, set[str]] = {}
        """Those of the topics that it has used that are in the topic of statuses, or were until a reset."""

    def heard(self, said: Report) -> None:
        self._said[said.name] = said

    def used(self, name: str, topics: frozenset[str]) -> None:
        """Also by a run that is being stopped: what it wrote at last is written."""
        self._used.setdefault(name, set()).update(topics)

    def ended(self, name: str) -> None:
        self._said.pop(name, None)

    async def write(self, assigned: Iterable[str]) -> None:
        """Of connectors that are gone, it takes everything out of the topic."""
        pairs: list[Pair] = []
        names = set(assigned)
        for name in [name for name in self._told if name not in names]:
            del self._told[name]
            self._topics.pop(name, None)
            self._used.pop(name, None)
            if self._configs.state.find(name) is None:
                pairs += self._statuses.state.forgotten(name)
        for name in names:
            wanted = self._configs.state.find(name)
            if wanted is None:
                self._topics.pop(name, None)
                self._used.pop(name, None)
                if self._told.pop(name, None) is not None:
                    pairs += self._statuses.state.forgotten(name)
                continue
            pairs += self._changes(wanted)
        await self._statuses.tell(pairs, _now_ms())

    async def unassigned(self, assigned: Iterable[str]) -> None:
        """This worker ends: until another one says otherwise, nobody runs them."""
        pairs: list[Pair] = []
        for name in assigned:
            wanted = self._configs.state.find(name)
            if wanted is None or wanted.target is Target.STOPPED:
                continue
            status = Status(
                State.UNASSIGNED, self._worker_id, self._generation(), self._version_of(wanted)
            ).encode()
            pairs.append((connector_key(name), status))
            pairs += [(task_key(name, task), status) for task in range(len(wanted.tasks))]
        await self._statuses.tell(pairs, _now_ms())

    def _changes(self, wanted: Wanted) -> list[Pair]:
        now = self._now(wanted)
        if now is None:
            return []
        before = self._told.get(wanted.name, {})
        version = self._version_of(wanted)
        pairs: list[Pair] = []
        for key, (state, trace) in now.items():
            if before.get(key) != (state, trace):
                status = Status(state, self._worker_id, self._generation(), version, trace)
                pairs.append((key, status.encode()))
        known = {task_key(wanted.name, task) for task in self._statuses.state.tasks(wanted.name)}
        pairs += [(key, None) for key in known | set(before) if key not in now]
        self._told[wanted.name] = now
        return pairs + self._new_topics(wanted.name)

    def _now(self, wanted: Wanted) -> dict[bytes, tuple[State, str | None]] | None:
        """None where nothing is known yet."""
        name = wanted.name
        connector = connector_key(name)
        tasks = [task_key(name, task) for task in range(len(wanted.tasks))]
        if wanted.target is Target.STOPPED:
            return {connector: (State.STOPPED, None)}
        if wanted.target is Target.PAUSED:
            return dict.fromkeys((connector, *tasks), (State.PAUSED, None))
        if name not in self._said:
            return None
        said = self._said[name]
        if said.condition is Condition.RUNNING:
            # What stands still while the rest goes on is told of the tasks, as failures are.
            return {connector: (State.RUNNING, None), **dict.fromkeys(tasks, (State.RUNNING, said.trace))}
        failed = (State.FAILED, said.trace)
        if not tasks:
            return {connector: failed}
        # As in Kafka Connect: it is the tasks that work, so it is they that fail.
        return {connector: (State.RUNNING, None), **dict.fromkeys(tasks, failed)}

    def _new_topics(self, name: str) -> list[Pair]:
        known = self._topics.setdefault(name, set(self._statuses.state.topics(name)))
        new = self._used.get(name, set()) - known
        known.update(new)
        return [topic_pair(topic, name, 0, _now_ms()) for topic in sorted(new)]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
