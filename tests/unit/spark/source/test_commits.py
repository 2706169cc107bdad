"""Commits to a group go on, whatever one of them died of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.source.brokers import Brokers, BrokersFailed
from headrace.spark.source.commits import GroupCommits

IDS = {"t": "id"}


def at(offset: int) -> Offsets:
    return {("t", 0): offset}


class Coordinator:
    """Keeps what is committed, and dies of the errors that it is given, one for each commit."""

    def __init__(self) -> None:
        self.group: Offsets = {}
        self.errors: list[Exception] = []

    def topic_ids(self) -> dict[str, str]:
        return IDS

    def committed(self, _group: str) -> Offsets:
        return dict(self.group)

    def commit(self, _group: str, offsets: Offsets, _timeout_ms: int) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.group.update(offsets)


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def commits(coordinator: Coordinator) -> Iterator[GroupCommits]:
    made = GroupCommits(cast(Brokers, cast(Any, coordinator)), "billing")
    yield made
    made.close()


@pytest.mark.parametrize(
    "error", [BrokersFailed("no coordinator", "TimeoutException"), RuntimeError("the gateway said no")]
)
def test_any_error_is_a_warning_and_the_next_offsets_are_committed(
    commits: GroupCommits, coordinator: Coordinator, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    commits.done(at(1), IDS)
    coordinator.errors = [error]
    commits.done(at(2), IDS)
    commits.flush(10)
    assert coordinator.group == at(1)
    assert str(error) in caplog.text
    assert "the query goes on" in caplog.text
    commits.done(at(3), IDS)
    commits.flush(10)
    assert coordinator.group == at(3)


def test_a_group_that_is_set_back_is_told_of_once_with_what_it_had(
    commits: GroupCommits, coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator.group = {("t", 0): 40, ("t", 1): 7, ("t", 2): 9, ("other", 0): 99}
    commits.done({("t", 0): 0, ("t", 1): 7, ("t", 2): 3, ("t", 3): 0}, IDS)
    [record] = caplog.records
    told = record.getMessage()
    assert told.startswith(
        "group billing was ahead of this query and is set back (t, partition 0: from 40 to 0; "
    )
    assert "start={'t': {0: 40, 1: 7, 2: 9, 3: 0}}" in told
    assert coordinator.group["t", 0] == 0
    commits.done({("t", 0): 10, ("t", 1): 7, ("t", 2): 3, ("t", 3): 0}, IDS)
    commits.flush(10)
    assert len(caplog.records) == 1


def test_a_group_that_is_behind_or_new_is_no_news(
    commits: GroupCommits, coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator.group = at(4)
    commits.done({("t", 0): 5, ("t", 1): 0}, IDS)
    assert not caplog.records


def test_a_group_that_could_not_be_asked_at_first_is_compared_later(
    commits: GroupCommits, coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator.group = at(40)
    coordinator.errors = [BrokersFailed("no coordinator", "TimeoutException")]
    commits.done(at(0), IDS)
    commits.done(at(2), IDS)
    commits.flush(10)
    assert coordinator.group == at(2)
    assert "from 40 to 2" in caplog.text
