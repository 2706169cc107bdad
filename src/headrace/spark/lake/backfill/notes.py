"""What is kept of a backfill beside the topic's checkpoint, for whoever comes after a kill.

    <state>/<topic>/backfill/writer     by which name the table knows its commits
    <state>/<topic>/backfill/steps/<n>  how far the topic is in the table once it has commit n
    <state>/<topic>/backfill/complete   where the lake goes on

A step is written down before its commit, and counts if the table has the commit. `complete` is written last.
"""

from __future__ import annotations

import json
import uuid
from typing import Final, NamedTuple

from headrace.core.errors import HeadraceError
from headrace.spark.lake.backfill.plan import Offsets
from headrace.spark.lake.checkpoint import Range
from headrace.spark.lake.files import Files
from headrace.spark.lake.plan import Route

_KEPT: Final = 2
"""Steps: the last, and the one before, for when the last was not committed."""


class Unfinished(HeadraceError):
    """The lake cannot go on before a backfill is over."""


class Step(NamedTuple):
    number: int
    begins: Offsets
    ends: Offsets
    """Of all partitions that any step has had."""
    rows: int
    """Of this step alone. Where there are none, there is no commit."""

    def ranges(self, topic: str) -> list[Range]:
        return [
            Range(topic, partition, first, self.ends[partition])
            for partition, first in sorted(self.begins.items())
            if first < self.ends[partition]
        ]


class Notes:
    def __init__(self, files: Files, route: Route) -> None:
        self._files = files
        self._route = route
        self._directory = f"{route.state}/backfill"

    def writer(self) -> str | None:
        """None where no backfill has ever begun."""
        return self._files.read(f"{self._directory}/writer")

    def begin(self) -> str:
        """The name of its commits; the same each time."""
        self._files.create(f"{self._directory}/writer", f"backfill-{uuid.uuid4().hex}")
        found = self.writer()
        assert found is not None, "it was written"
        return found

    def last(self) -> Step | None:
        """Whether it was committed, the table knows."""
        numbers = self._numbers()
        return self.step(numbers[-1]) if numbers else None

    def step(self, number: int) -> Step | None:
        text = self._files.read(self._file(number))
        if text is None:
            return None
        document = json.loads(text)
        return Step(number, _offsets(document["begins"]), _offsets(document["ends"]), document["rows"])

    def write(self, step: Step) -> None:
        """In the place of what was not committed under this number."""
        document = {"begins": step.begins, "ends": step.ends, "rows": step.rows}
        self._files.replace(self._file(step.number), json.dumps(document))
        for number in self._numbers()[:-_KEPT]:
            self._files.remove(self._file(number))

    def complete(self, ends: Offsets) -> None:
        self._files.replace(f"{self._directory}/complete", json.dumps({"ends": ends}))

    def forget(self) -> None:
        """The table is gone."""
        self._files.remove(self._directory)

    def reopen(self) -> None:
        """More is to come."""
        self._files.remove(f"{self._directory}/complete")

    def ends(self) -> Offsets | None:
        """Where the lake goes on. None where no backfill was begun; Unfinished if one is not over."""
        text = self._files.read(f"{self._directory}/complete")
        if text is not None:
            return _offsets(json.loads(text)["ends"])
        if self.writer() is None:
            return None
        topic = self._route.topic
        raise Unfinished(
            f"the backfill of {topic} has not ended; run `headrace lake backfill {topic}` again, which goes "
            "on where it was, or with --leave-rest, after which the lake loads the rest from the brokers"
        )

    def _file(self, number: int) -> str:
        return f"{self._directory}/steps/{number:09d}"

    def _numbers(self) -> list[int]:
        return [int(name) for name in self._files.names(f"{self._directory}/steps") if name.isdecimal()]


def _offsets(document: dict[str, int]) -> Offsets:
    return {int(partition): offset for partition, offset in document.items()}
