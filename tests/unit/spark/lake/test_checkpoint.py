"""Spark's checkpoint files, read as Spark 4.1 writes them."""

from __future__ import annotations

from pathlib import Path

from headrace.spark.lake.checkpoint import Checkpoint, Range, offsets_json, parse_offsets
from headrace.spark.lake.files import LocalFiles


def write(directory: Path, name: str, text: str) -> None:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def offsets(text: str) -> str:
    return f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{{}}}}\n{text}'


def test_nothing_is_known_of_a_query_that_never_ran(tmp_path: Path) -> None:
    checkpoint = Checkpoint(LocalFiles(), str(tmp_path / "none"))
    assert checkpoint.query_id() is None
    assert checkpoint.planned() is None
    assert checkpoint.loaded() == {}


def test_what_is_planned_is_not_yet_loaded(tmp_path: Path) -> None:
    write(tmp_path, "metadata", '{"id":"abc"}')
    write(tmp_path, "sources/0/0", '\x00v1\n{"t":{"0":5}}')
    write(tmp_path, "offsets/0", offsets('{"t":{"0":9}}'))
    write(tmp_path, "offsets/.1.crc", "x")
    checkpoint = Checkpoint(LocalFiles(), f"file://{tmp_path}")
    assert checkpoint.query_id() == "abc"
    assert (checkpoint.planned(), checkpoint.committed()) == (0, None)
    assert checkpoint.loaded() == {("t", 0): 5}
    assert checkpoint.ranges(0) == [Range("t", 0, 5, 9)]

    write(tmp_path, "commits/0", "v1\n{}")
    assert checkpoint.loaded() == {("t", 0): 9}


def test_a_new_partition_begins_at_its_beginning(tmp_path: Path) -> None:
    write(tmp_path, "offsets/9", offsets('{"t":{"0":9}}'))
    write(tmp_path, "offsets/10", offsets('{"t":{"0":9,"1":4}}'))
    checkpoint = Checkpoint(LocalFiles(), str(tmp_path))
    assert checkpoint.planned() == 10
    assert checkpoint.ranges(10) == [Range("t", 1, 0, 4)]
    assert checkpoint.ranges(9) is None


def test_offsets_keep_their_form() -> None:
    text = '{"a": {"0": 1, "10": 2}, "b": {"0": 3}}'
    assert offsets_json(parse_offsets(text)) == text
