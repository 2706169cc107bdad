"""A stream asks the brokers several questions, and topics do not wait in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.source.plan import RecordsLost
from tests.unit.spark.source.java import Cluster, Log, stream


def at(offset: int) -> Offsets:
    return {("t", 0): offset}


@pytest.mark.parametrize("choice", ["earliest", "latest"])
def test_a_topic_that_goes_between_two_questions_is_waited_for(
    choice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster(t=Log(0, 40))
    query = stream(cluster, tmp_path, monkeypatch, on_loss=choice)
    query.begins()
    cluster.then = cluster.topics.clear
    assert query.following(at(10)) == at(10)
    assert "waiting for topic t" in caplog.text
    assert query.following(at(10)) == at(10)
    cluster.topics["t"] = Log(0, 30, "new")
    assert query.following(at(10)) == at(0 if choice == "earliest" else 30)


def test_a_topic_that_goes_between_two_questions_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(t=Log(0, 40))
    query = stream(cluster, tmp_path, monkeypatch)
    cluster.then = cluster.topics.clear
    with pytest.raises(RecordsLost, match="topic t does not exist"):
        query.following(at(10))
