"""How connectors are: the last word counts, unless it comes from somebody who has been replaced."""

from __future__ import annotations

import json

from headrace.connect.answers import Answers
from headrace.connect.cluster_config import ClusterConfig
from headrace.connect.plugins import Plugins
from headrace.connect.statuses import State, Status, Statuses, connector_key, task_key, topic_pair


def _say(
    statuses: Statuses, worker: str, generation: int, state: State = State.RUNNING, name: str = "a-b"
) -> None:
    statuses.replay(connector_key(name), Status(state, worker, generation, "1").encode())


def test_the_last_word_counts() -> None:
    statuses = Statuses()
    _say(statuses, "w1", 1)
    _say(statuses, "w1", 1, State.FAILED)
    found = statuses.connector("a-b")
    assert found is not None
    assert found.document() == {"state": "FAILED", "worker_id": "w1", "version": "1"}


def test_a_worker_that_was_replaced_is_not_heard() -> None:
    statuses = Statuses()
    _say(statuses, "w2", 5)
    _say(statuses, "w1", 4, State.FAILED)
    found = statuses.connector("a-b")
    assert found is not None
    assert found.worker_id == "w2"
    _say(statuses, "w2", 4, State.PAUSED)
    assert statuses.connector("a-b").state is State.PAUSED  # type: ignore[union-attr]  # it is there


def test_records_are_those_of_kafka_connect() -> None:
    status = Status(State.FAILED, "h:1", 3, "4", "why")
    assert json.loads(status.encode()) == {
        "state": "FAILED", "trace": "why", "worker_id": "h:1", "generation": 3, "version": "4",
    }  # fmt: skip
    assert connector_key("n") == b"status-connector-n"
    assert task_key("n", 2) == b"status-task-n-2"
    assert topic_pair("t", "n", 0, 5)[0] == b"status-topic-t:connector-n"


def test_all_of_a_connector_can_be_taken_out() -> None:
    statuses = Statuses()
    _say(statuses, "w", 1)
    statuses.replay(task_key("a-b", 0), Status(State.RUNNING, "w", 1).encode())
    statuses.replay(*topic_pair("t", "a-b", 0, 5))
    assert statuses.tasks("a-b").keys() == {0}
    assert statuses.topics("a-b") == ["t"]
    for key, value in statuses.forgotten("a-b"):
        statuses.replay(key, value)
    assert (statuses.connector("a-b"), statuses.tasks("a-b"), statuses.topics("a-b")) == (None, {}, [])


def test_what_cannot_be_read_changes_nothing() -> None:
    statuses = Statuses()
    for value in (b"no json", b"[]", b"{}", b'{"state": "ODD", "worker_id": "w", "generation": 1}'):
        statuses.replay(connector_key("n"), value)
    statuses.replay(b"\xff", b"{}")
    assert statuses.connector("n") is None


def test_only_what_has_failed_is_said_to_be_restarted() -> None:
    configs, statuses = ClusterConfig(), Statuses()
    answers = Answers(configs, statuses, Plugins([]))
    _say(statuses, "w", 1)
    statuses.replay(task_key("a-b", 0), Status(State.RUNNING, "w", 1).encode())
    assert answers.failed_parts("a-b") == frozenset()
    statuses.replay(task_key("a-b", 0), Status(State.FAILED, "w", 1, trace="why").encode())
    assert answers.failed_parts("a-b") == {"tasks"}
    _say(statuses, "w", 1, State.FAILED)
    assert answers.failed_parts("a-b") == {"connector", "tasks"}
