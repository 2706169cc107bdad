from __future__ import annotations

import pytest

from headrace.arrow.columns import END, FIRST, Bounds
from headrace.spark.segments.errors import SegmentsRefused
from headrace.spark.segments.options import parse_options
from headrace.spark.segments.place import Bucket, Directories

_FILES = {"topic": "orders", "files": "/a,/b"}
_TIER = {
    "topic": "orders",
    "tier": "s3://history/kafka",
    "cluster.id": "c",
    "topic.id": "AAAAAAAAAAAAAAAAAAAAAQ",
}


def test_what_is_not_said_is_everything_that_is_committed() -> None:
    found = parse_options(_FILES)
    assert found.place == Directories(("/a", "/b"))
    assert found.committed_only
    assert found.partitions is None
    assert found.columns[:2] == ("key", "value")
    assert found.bounds_of(0) == Bounds(FIRST, END)


def test_a_bucket_needs_nobody_where_the_ids_are_known() -> None:
    found = parse_options({**_TIER, "ENDPOINT": "http://127.0.0.1:8333"})
    assert found.place == Bucket(
        "s3://history/kafka", "c", "AAAAAAAAAAAAAAAAAAAAAQ", "http://127.0.0.1:8333", None
    )


def test_offsets_are_those_of_the_connector() -> None:
    given = {"startingOffsets": '{"orders": {"0": 5}}', "endingOffsets": '{"orders": {"0": 9, "1": 2}}'}
    found = parse_options({**_FILES, **given, "partitions": "1, 0", "columns": "offset, value"})
    assert found.bounds_of(0) == Bounds(5, 9)
    assert found.bounds_of(1) == Bounds(FIRST, 2)
    assert found.partitions == (0, 1)
    assert found.columns == ("offset", "value")
    assert parse_options({**_FILES, "startingOffsets": "earliest"}).starts == {}


def test_paths_as_load_gives_them() -> None:
    assert parse_options({"topic": "orders", "path": "/a"}).place == Directories(("/a",))
    assert parse_options({"topic": "orders", "paths": '["/a", "/b"]'}).place == Directories(("/a", "/b"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topic": ""}, "say which topic"),
        ({"files": ""}, "say where the segments are"),
        ({"tier": "s3://x"}, "say where the segments are: either"),
        ({"speed": "high"}, "no option 'speed'; it has: topic, tier"),
        ({"isolation": "none"}, "isolation is read_committed or read_uncommitted, not 'none'"),
        ({"columns": "value, price"}, "there is no column 'price'; there are key, value"),
        ({"partitions": "a"}, "partitions are numbers"),
        ({"task.bytes": "5"}, "task.bytes is at least"),
        ({"task.bytes": "x"}, "task.bytes is a number"),
        ({"startingOffsets": "latest"}, 'startingOffsets is "earliest", or offsets as'),
        ({"startingOffsets": '{"other": {"0": 1}}'}, "has an offset of other"),
        ({"endingOffsets": '{"orders": {"0": -1}}'}, "It is at least 0"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, str], said: str) -> None:
    with pytest.raises(SegmentsRefused, match=said):
        parse_options({**_FILES, **given})


def test_ids_that_are_missing_are_asked_for() -> None:
    with pytest.raises(
        SegmentsRefused, match=r"give cluster\.id and topic\.id, or kafka\.bootstrap\.servers"
    ):
        parse_options({"topic": "orders", "tier": "s3://history/kafka"})
