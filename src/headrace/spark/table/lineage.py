"""What a table's state directory remembers beside Spark's checkpoint.

    <state>/<table>/derived.json              by which definitions indexes and views were made
    <state>/<table>/from-<step>/table.json    by which the table was made; from-0 before any rebuild
    <state>/<table>/from-<step>/topic.json    the id of the topic that it is made from
    <state>/<table>/from-<step>/begin.json    where the lineage after that rebuild begins
    <state>/<table>/from-<step>/first.json    the step of the checkpoint's batch 0
    <state>/<table>/from-<step>/checkpoint    Spark's own

A rebuild writes its directory before it commits, under the number of the step that it will commit. If the
table has no such step at the next start, the rebuild was cut off, and the directory is removed before any
other commit can take that number. So the table's own commit decides, and nothing else.
"""

from __future__ import annotations

import json

from headrace.spark.lake.checkpoint import Checkpoint, Offsets, offsets_json, parse_offsets
from headrace.spark.lake.files import Files

_DERIVED = "derived.json"
_TABLE = "table.json"
_TOPIC = "topic.json"
_BEGIN = "begin.json"
_FIRST = "first.json"


class Lineage:
    """`directory` is the table's own below the state."""

    def __init__(self, files: Files, directory: str) -> None:
        self.files = files
        self.directory = directory

    def derived(self) -> dict[str, str]:
        text = self.files.read(f"{self.directory}/{_DERIVED}")
        found: dict[str, str] = {} if text is None else json.loads(text)
        return found

    def set_derived(self, definitions: dict[str, str]) -> None:
        self.files.replace(f"{self.directory}/{_DERIVED}", json.dumps(definitions))

    def definition(self, rebuilt: int) -> str | None:
        return self.files.read(f"{self._from(rebuilt)}/{_TABLE}")

    def set_definition(self, rebuilt: int, definition: str) -> None:
        self.files.replace(f"{self._from(rebuilt)}/{_TABLE}", definition)

    def _from(self, rebuilt: int) -> str:
        return f"{self.directory}/from-{rebuilt}"

    def prepared(self) -> list[int]:
        """Steps of rebuilds that were begun, in order."""
        names = self.files.names(self.directory)
        return sorted(int(name.removeprefix("from-")) for name in names if name.startswith("from-"))

    def current(self) -> int:
        """For whoever cannot ask the table: the youngest with a checkpoint. A rebuild that is under way has
        none, and removes the others when it is through.
        """
        there = self.prepared()
        begun = [each for each in there if self.checkpoint(each).planned() is not None]
        return max(begun or there, default=0)

    def settle(self, step: int) -> int:
        """The last rebuild that the table has. What belongs to others is removed."""
        there = self.prepared()
        rebuilt = max((each for each in there if each <= step), default=0)
        for each in there:
            if each != rebuilt:
                self.files.remove(self._from(each))
        return rebuilt

    def forget(self, rebuilt: int) -> None:
        """Checkpoint and all: the next start begins with nothing."""
        self.files.remove(self._from(rebuilt))

    def topic_id(self, rebuilt: int) -> str | None:
        """None where nobody noted it: whatever topic there is, is taken for the right one."""
        text = self.files.read(f"{self._from(rebuilt)}/{_TOPIC}")
        return None if text is None else str(json.loads(text)["id"])

    def set_topic_id(self, rebuilt: int, found: str | None) -> None:
        """None where brokers have no ids."""
        if found is not None:
            self.files.replace(f"{self._from(rebuilt)}/{_TOPIC}", json.dumps({"id": found}))

    def prepare(self, step: int, begin: Offsets, definition: str, topic_id: str | None = None) -> None:
        """Of a rebuild that will be `step`."""
        self.set_definition(step, definition)
        self.set_topic_id(step, topic_id)
        self.files.replace(f"{self._from(step)}/{_BEGIN}", offsets_json(begin))

    def begin(self, rebuilt: int) -> Offsets:
        text = self.files.read(f"{self._from(rebuilt)}/{_BEGIN}")
        return {} if text is None else parse_offsets(text)

    def checkpoint(self, rebuilt: int) -> Checkpoint:
        return Checkpoint(self.files, f"{self._from(rebuilt)}/checkpoint")

    def first_step(self, rebuilt: int) -> int | None:
        text = self.files.read(f"{self._from(rebuilt)}/{_FIRST}")
        return None if text is None else int(json.loads(text)["step"])

    def set_first_step(self, rebuilt: int, step: int) -> None:
        """Before the query's first start: from then on batch 0 is this step."""
        self.files.replace(f"{self._from(rebuilt)}/{_FIRST}", json.dumps({"step": step}))
