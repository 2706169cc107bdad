"""What happens to topics between two questions to the brokers, and between two runs of a query."""

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


def planned(cluster: Cluster, where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends with a batch from 100 on that Spark has not committed."""
    query = stream(cluster, where, monkeypatch)
    query.begins()
    assert query.following(at(100))["t", 0] == 200


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (Log(0, 300, "new"), "topic t was deleted and made anew"),
        (Log(150, 300), r"50 offsets from 100 on were removed .* on_loss=\"earliest\""),
        (Log(0, 160), "t, partition 0 ends at 160"),
    ],
    ids=["anew", "removed", "cut"],
)
def test_a_batch_that_is_repeated_is_not_read_where_records_of_it_are_gone(
    now: Log, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(t=Log(0, 200))
    planned(cluster, tmp_path, monkeypatch)
    cluster.topics["t"] = now
    with pytest.raises(RecordsLost, match=said):
        stream(cluster, tmp_path, monkeypatch).read(at(100), at(200))


def test_a_batch_of_a_topic_that_is_gone_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(t=Log(0, 200))
    planned(cluster, tmp_path, monkeypatch)
    cluster.topics.clear()
    with pytest.raises(RecordsLost, match="topic t does not exist"):
        stream(cluster, tmp_path, monkeypatch).read(at(100), at(200))


@pytest.mark.parametrize("choice", ["fail", "earliest", "latest"])
def test_a_batch_that_is_repeated_is_the_same_one_where_nothing_is_gone(
    choice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster(t=Log(0, 200))
    planned(cluster, tmp_path, monkeypatch)
    cluster.topics["t"] = Log(100, 900)
    assert stream(cluster, tmp_path, monkeypatch, on_loss=choice).read(at(100), at(200)) == (at(100), at(200))
    assert not caplog.records


@pytest.mark.parametrize("choice", ["earliest", "latest"])
def test_a_batch_that_is_repeated_has_nothing_of_a_topic_made_anew(
    choice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster(t=Log(0, 200))
    planned(cluster, tmp_path, monkeypatch)
    cluster.topics["t"] = Log(0, 300, "new")
    query = stream(cluster, tmp_path, monkeypatch, on_loss=choice)
    assert query.read(at(100), at(200)) == ({}, {})
    assert "the batch that is repeated" in caplog.text
    goal = at(0 if choice == "earliest" else 300)
    assert query.following(at(200)) == goal
    assert query.read(at(200), goal) == ({}, {})
    if choice == "earliest":
        assert query.following(goal) == at(300)
        assert query.read(goal, at(300)) == (goal, at(300))


def test_what_is_left_of_a_batch_that_is_repeated_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks pass over what was removed; behind the end they would wait."""
    cluster = Cluster(t=Log(0, 200))
    planned(cluster, tmp_path, monkeypatch)
    for now, end in ((Log(150, 300), 200), (Log(0, 160), 160), (Log(0, 60), 100)):
        cluster.topics["t"] = now
        query = stream(cluster, tmp_path, monkeypatch, on_loss="earliest")
        assert query.read(at(100), at(200)) == (at(100), at(end))


def test_topics_that_are_there_are_read_where_another_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(t=Log(0, 200), u=Log(0, 50), v=Log(0, 70))
    planned(cluster, tmp_path, monkeypatch)
    del cluster.topics["u"]
    cluster.topics["v"] = Log(0, 90, "new")
    query = stream(cluster, tmp_path, monkeypatch, on_loss="earliest")
    begin = {**at(100), ("u", 0): 0, ("v", 0): 0}
    assert query.read(begin, {**at(200), ("u", 0): 50, ("v", 0): 70}) == (at(100), at(200))


def test_a_batch_is_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark asks again where a frame is used twice: all have to read the same."""
    cluster = Cluster(t=Log(0, 200))
    planned(cluster, tmp_path, monkeypatch)
    query = stream(cluster, tmp_path, monkeypatch, on_loss="earliest")
    assert query.read(at(100), at(200)) == (at(100), at(200))
    cluster.topics["t"] = Log(0, 300, "new")
    assert query.read(at(100), at(200)) == (at(100), at(200))
    cluster.topics["t"] = Log(0, 300)
    assert query.following(at(200)) == at(300)
    cluster.topics.clear()
    assert query.read(at(200), at(300)) == (at(200), at(300))


def test_a_passage_that_is_repeated_reads_nothing_and_asks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(t=Log(0, 200))
    planned(cluster, tmp_path, monkeypatch)
    cluster.topics["t"] = Log(0, 300, "new")
    assert stream(cluster, tmp_path, monkeypatch, on_loss="earliest").following(at(100)) == at(0)
    cluster.topics.clear()
    assert stream(cluster, tmp_path, monkeypatch).read(at(100), at(0)) == ({}, {})
