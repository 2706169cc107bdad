"""Lines of a file: what a batch leaves behind that dies is cut off, also if it was the first one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.connect.api import Config
from headrace.connect.plugins import all_settings
from headrace.core.ids import TopicPartition
from headrace.spark.connect.connectors.file_sink import FileSink

PARTITION = TopicPartition("t", 0)


class Died(Exception):
    """The worker is gone."""


class Lines:
    """A batch and its frame, of which some rows come before the worker dies."""

    def __init__(self, first: int, end: int, dies_after: int | None = None) -> None:
        self.ranges = {PARTITION: (first, end)}
        self.ends = {PARTITION: end}
        self._dies_after = dies_after

    @property
    def frame(self) -> Lines:
        return self

    def select(self, *names: str) -> Lines:
        return self

    orderBy = select

    def toLocalIterator(self) -> Iterator[Any]:
        for number, offset in enumerate(range(*self.ranges[PARTITION])):
            if number == self._dies_after:
                raise Died
            yield SimpleNamespace(topic="t", partition=0, offset=offset, value=f"line {offset}".encode())

    def reject(self, rejected: object) -> None:
        assert not rejected


@pytest.mark.parametrize("before", [[], ["mine"]])
@pytest.mark.parametrize("written", [0, 3])
def test_what_a_dead_batch_has_left_is_cut_off(tmp_path: Path, before: list[str], written: int) -> None:
    path = tmp_path / "out.txt"
    if before:
        path.write_text("mine\n")
    given = {"name": "c", "connector.class": "x", "topics": "t", "file": str(path)}
    config = Config("c", all_settings(FileSink).parse(given), given)

    def write(first: int, end: int, dies_after: int | None = None) -> None:
        batch: Any = Lines(first, end, dies_after)
        FileSink(config).write(batch)

    if written:
        write(0, written)
    with pytest.raises(Died):
        write(written, written + 10, dies_after=5)
    assert FileSink(config).position().get(PARTITION, 0) == written
    write(written, written + 10)
    assert path.read_text().splitlines() == [*before, *(f"line {number}" for number in range(written + 10))]
