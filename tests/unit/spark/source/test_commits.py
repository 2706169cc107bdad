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
