"""A topic that was made anew is known by its id, and one that is only away is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.spark.decoding.formats import Decoding, Format
from headrace.spark.lake.files import LocalFiles
from headrace.spark.lake.identity import TopicMadeAnew, same_topic
from headrace.spark.lake.plan import Route


class Topic:
    """One whose id the test decides."""

    def __init__(self, directory: Path) -> None:
        self.id: str | None = "first"
        self.route = Route(
            "t", "table", "dead", Decoding(Format.BYTES), keep_value=False, state=str(directory / "t")
        )

    def start(self) -> None:
        self.check = same_topic(LocalFiles(), self.route, lambda: self.id)
        self.check()


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    return Topic(tmp_path)


def test_another_id_is_another_topic_at_the_next_batch_and_at_the_next_start(topic: Topic) -> None:
    topic.start()
    topic.check()
    topic.id = "second"
    with pytest.raises(TopicMadeAnew, match=r'table = "\.\.\.".* remove .*/t$'):
        topic.check()
    with pytest.raises(TopicMadeAnew):
        topic.start()


def test_a_topic_that_is_not_there_just_now_is_not_another_one(topic: Topic) -> None:
    topic.start()
    topic.id = None
    topic.check()
    topic.start()
    topic.id = "second"
    with pytest.raises(TopicMadeAnew):
        topic.check()


def test_an_id_that_is_told_late_is_noted_all_the_same(topic: Topic) -> None:
    topic.id = None
    topic.start()
    topic.id = "first"
    topic.check()
    topic.id = "second"
    with pytest.raises(TopicMadeAnew):
        topic.check()
    with pytest.raises(TopicMadeAnew):
        topic.start()
