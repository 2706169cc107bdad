"""What Spark's checkpoint of a query says: who the query is, which offsets each batch has, what is committed.

Spark writes `offsets/N` before batch N runs and `commits/N` after it. Both are lines: a version, metadata,
and for each source its offsets as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from headrace.spark.lake.files import Files

#: The next offset to read, for each partition of each topic.
Offsets = dict[tuple[str, int], int]


class Range(NamedTuple):
    topic: str
    partition: int
    first: int
    end: int


class Checkpoint:
    def __init__(self, files: Files, directory: str) -> None:
        self.files = files
        self.directory = directory

    def query_id(self) -> str | None:
        """Made when the query first starts, and kept by every restart from this checkpoint."""
        text = self.files.read(f"{self.directory}/metadata")
        return None if text is None else str(json.loads(text)["id"])

    def planned(self) -> int | None:
        """The last batch whose offsets are fixed, run or not."""
        return self._last("offsets")

    def committed(self) -> int | None:
        return self._last("commits")

    def _last(self, kind: str) -> int | None:
        numbers = [int(name) for name in self.files.names(f"{self.directory}/{kind}") if name.isdecimal()]
        return max(numbers, default=None)

    def offsets(self, batch: int) -> Offsets | None:
        text = self.files.read(f"{self.directory}/offsets/{batch}")
        return None if text is None else parse_offsets(text.splitlines()[-1])

    def first_offsets(self) -> Offsets:
        """Where batch 0 begins."""
        text = self.files.read(f"{self.directory}/sources/0/0")
        return {} if text is None else parse_offsets(text.splitlines()[-1])

    def loaded(self) -> Offsets:
        """The next offsets after the last batch that Spark has committed."""
        last = self.committed()
        return self.first_offsets() if last is None else self.offsets(last) or {}

    def ranges(self, batch: int) -> list[Range] | None:
        """What batch `batch` has. None where its neighbours were cleaned away."""
        ends = self.offsets(batch)
        begins = self.first_offsets() if batch == 0 else self.offsets(batch - 1)
        if ends is None or begins is None:
            return None
        # A partition that is not in the batch before is new, and read from its beginning.
        return [
            Range(topic, partition, begins.get((topic, partition), 0), end)
            for (topic, partition), end in sorted(ends.items())
            if end > begins.get((topic, partition), 0)
        ]


def parse_offsets(text: str) -> Offsets:
    """{"orders": {"0": 17}}, after a version where Spark puts one before it."""
    return offsets_of(json.loads(text[text.index("{") :]))


def offsets_of(document: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        (topic, int(partition)): offset
        for topic, partitions in document.items()
        for partition, offset in partitions.items()
    }


def offsets_json(offsets: Offsets) -> str:
    document: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        document.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(document)
