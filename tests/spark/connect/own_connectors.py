"""Connectors for tests: what they need is in their settings, since tasks make instances of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from headrace.connect.api import (
    ConnectorFailure,
    Position,
    Record,
    Rejected,
    Settings,
    Sink,
    SinkRecord,
    Source,
    Step,
)
from headrace.connect.settings import Setting

HERE = {"here": 1}


class CursorSource(Source):
    """Gives its records with the plan, and fails once in some places: also behind the very first one."""

    settings: ClassVar[Settings] = Settings(Setting("topic"), Setting("folder"))

    def plan(self, position: Position) -> Step | None:
        at = (position.offset(HERE) or {"at": 0})["at"]
        if at >= 6:
            return None
        tried = Path(self.config["folder"]) / f"tried-{at}"
        if at in (1, 2, 5) and not tried.exists():
            tried.touch()
            raise ConnectorFailure("the other end is busy")
        record = Record(
            self.config["topic"], {"at": at}, key="k", headers=[("h", b"1")], timestamp_ms=1000 + at
        )
        return Step(position.moved(HERE, {"at": at + 1}), records=[record], more=True)


class PickySink(Sink):
    """One file a task, for records whose value has an id; negative ones are refused."""

    settings: ClassVar[Settings] = Settings(Setting("folder"))

    def put(self, records: Iterable[SinkRecord]) -> Iterator[Rejected] | list[Rejected]:
        rejected = []
        taken: list[Any] = []
        for record in records:
            if record.value["id"] < 0:
                where = record.topic, record.partition, record.offset
                rejected.append(Rejected(*where, f"{record.value['id']} is below zero"))
            else:
                taken.append((record.offset, record.value["id"], record.key))
        if taken:
            path = Path(self.config["folder"]) / f"{taken[0][0]:05d}"
            path.write_text("".join(f"{value}\n" for _, value, _ in taken))
        return rejected


class CarefulSink(PickySink):
    """Writes nothing before all that is refused is a dead letter."""

    letters_first: ClassVar[bool] = True

    def put(self, records: Iterable[SinkRecord]) -> list[Rejected]:
        left = [each for each in records if (each.topic, each.partition, each.offset) not in self.dead]
        refused = [each for each in left if each.value["id"] < 0]
        unreadable = [each for each in self.unreadable if (*each[:3],) not in self.dead]
        if refused or unreadable:
            Path(self.config["folder"], "was-asked-before").touch()
            return [Rejected(*each[:3], f"{each.value['id']} is below zero") for each in refused]
        return list(super().put(left))
