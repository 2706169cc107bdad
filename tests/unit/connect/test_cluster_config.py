"""What the topic of configurations says, and what operations write into it."""

from __future__ import annotations

import json

import pytest

from headrace.connect import operations
from headrace.connect.cluster_config import ClusterConfig
from headrace.connect.config_records import (
    ConnectorConfig,
    Entry,
    Restart,
    Target,
    TargetState,
    TaskConfig,
    TaskCount,
    decode,
    encode,
)
from headrace.connect.errors import ConnectError
from headrace.connect.reconciling import Running, steps

CONFIG = {"connector.class": "X", "name": "c"}


class Log:
    def __init__(self) -> None:
        self.state = ClusterConfig()
        self.end = 0

    def write(self, entries: list[Entry]) -> None:
        """As through the topic: encoded, and decoded again."""
        for entry in entries:
            found = decode(*encode(entry))
            assert found == entry
            self.state.replay(found, self.end)
            self.end += 1

    def steps(
        self, assigned: str, running: dict[str, Running], busy: tuple[str, ...] = ()
    ) -> tuple[list[str], ...]:
        found = steps(self.state, assigned.split(), running, busy)
        return [each.name for each in found.start], found.stop, [each.name for each in found.keep]


@pytest.fixture
def log() -> Log:
    made = Log()
    made.write(operations.create(made.state, "c", CONFIG, Target.STARTED))
    return made


def _running(log: Log, name: str = "c", *, failed: bool = False) -> dict[str, Running]:
    found = log.state.find(name)
    assert found is not None
    return {name: Running(found.run, failed)}


@pytest.mark.parametrize(
    ("entry", "key", "value"),
    [
        (ConnectorConfig("c", {"a": "b"}), "connector-c", {"properties": {"a": "b"}}),
        (ConnectorConfig("c", None), "connector-c", None),
        (TaskConfig("c-1", 3, {"a": "b"}), "task-c-1-3", {"properties": {"a": "b"}}),
        (TaskCount("c", 2), "commit-c", {"tasks": 2}),
        (TargetState("c", Target.PAUSED), "target-state-c", {"state": "PAUSED", "state.v2": "PAUSED"}),
        (TargetState("c", Target.STOPPED), "target-state-c", {"state": "PAUSED", "state.v2": "STOPPED"}),
        (Restart("c", True, False), "restart-connector-c", {"include-tasks": True, "only-failed": False}),
    ],
)
def test_records_are_those_of_kafka_connect(entry: Entry, key: str, value: object) -> None:
    found_key, found_value = encode(entry)
    assert found_key.decode() == key
    assert (None if found_value is None else json.loads(found_value)) == value
    assert decode(found_key, found_value) == entry


@pytest.mark.parametrize("key", [None, b"", b"\xff", b"session-key", b"task-c-x", b"cluster"])
def test_what_is_not_known_is_passed_over(key: bytes | None) -> None:
    assert decode(key, b'{"properties": {}}') is None
    assert decode(b"connector-c", b"no json") is None
    assert decode(b"connector-c", b"[]") is None


def test_tasks_count_once_their_number_is_said(log: Log) -> None:
    found = log.state.find("c")
    assert found is not None
    entries = operations.set_tasks(log.state, found, [{"a": "1"}, {"a": "2"}])
    log.write(entries[:2])
    assert log.state.find("c").tasks == ()  # type: ignore[union-attr]  # it is there
    log.write(entries[2:])
    found = log.state.find("c")
    assert found is not None
    assert found.tasks == ({"a": "1"}, {"a": "2"})
    assert operations.set_tasks(log.state, found, [{"a": "1"}, {"a": "2"}]) == []


def test_of_tasks_that_compaction_took_away_there_is_none(log: Log) -> None:
    log.write([TaskConfig("c", 0, {"a": "1"}), TaskCount("c", 2)])
    assert log.state.find("c").tasks == ()  # type: ignore[union-attr]  # it is there


def test_a_name_is_taken_once(log: Log) -> None:
    with pytest.raises(ConnectError, match="already exists") as raised:
        operations.create(log.state, "c", CONFIG, Target.STARTED)
    assert raised.value.status == 409


def test_one_that_is_made_stopped_never_starts(log: Log) -> None:
    log.write(operations.create(log.state, "d", CONFIG, Target.STOPPED))
    assert log.steps("d", {}) == ([], [], [])


def test_a_deleted_one_leaves_nothing_to_the_next_of_its_name(log: Log) -> None:
    log.write(operations.set_target(log.state, "c", Target.PAUSED))
    log.write(operations.delete(log.state, "c"))
    assert log.state.names() == []
    log.write(operations.create(log.state, "c", CONFIG, Target.STARTED))
    assert log.state.find("c").target is Target.STARTED  # type: ignore[union-attr]  # it is there


def test_stopping_takes_the_tasks_away_and_pausing_does_not(log: Log) -> None:
    found = log.state.find("c")
    assert found is not None
    log.write(operations.set_tasks(log.state, found, [{}]))
    log.write(operations.set_target(log.state, "c", Target.PAUSED))
    assert len(log.state.find("c").tasks) == 1  # type: ignore[union-attr]  # it is there
    log.write(operations.set_target(log.state, "c", Target.STOPPED))
    assert log.state.find("c").tasks == ()  # type: ignore[union-attr]  # it is there
    assert operations.set_target(log.state, "c", Target.STOPPED) == []


@pytest.mark.parametrize(
    "decide",
    [
        lambda state: operations.delete(state, "x"),
        lambda state: operations.set_target(state, "x", Target.PAUSED),
        lambda state: operations.restart(state, "x", include_tasks=True, only_failed=False),
        lambda state: operations.restart_task(state, "x", 0),
    ],
)
def test_what_is_not_there_is_told(decide: operations.Deciding) -> None:
    with pytest.raises(ConnectError) as raised:
        decide(ClusterConfig())
    assert raised.value.status == 404


def test_a_worker_starts_what_it_is_given_and_stops_what_is_taken(log: Log) -> None:
    assert log.steps("c", {}) == (["c"], [], [])
    assert log.steps("c", _running(log)) == ([], [], [])
    assert log.steps("", _running(log)) == ([], ["c"], [])
    assert log.steps("c other", {}) == (["c"], [], []), "what is not configured yet is waited for"


def test_another_configuration_is_another_run(log: Log) -> None:
    running = _running(log)
    log.write(operations.put(log.state, "c", {**CONFIG, "a": "b"})[0])
    assert log.steps("c", running) == ([], ["c"], [])
    assert log.steps("c", running, ("c",)) == ([], [], []), "it is being stopped already"
    assert log.steps("c", {}) == (["c"], [], [])


def test_a_restart_of_what_failed_leaves_the_others_alone(log: Log) -> None:
    well, ill = _running(log), _running(log, failed=True)
    log.write(operations.restart(log.state, "c", include_tasks=True, only_failed=True))
    assert log.steps("c", well) == ([], [], ["c"])
    assert log.steps("c", ill) == ([], ["c"], [])
    log.write(operations.restart(log.state, "c", include_tasks=True, only_failed=False))
    assert log.steps("c", well) == ([], ["c"], [])


def test_a_task_that_is_not_there_cannot_be_restarted(log: Log) -> None:
    with pytest.raises(ConnectError, match="Unknown task: c-5"):
        operations.restart_task(log.state, "c", 5)
