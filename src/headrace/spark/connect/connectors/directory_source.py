"""Files of a directory or of a bucket, each read once. What was read is in the decision that makes its
records exist; see `headrace/connect/files`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from headrace.connect.api import Config, Position, Record, Settings, Source, Step
from headrace.connect.files import choosing
from headrace.connect.files.choosing import Listed, Quiet, Slice
from headrace.connect.files.places import LOCATION, Place, check_access, configured_place
from headrace.connect.files.reading import FORMATS, Format, end_of_line, is_in_lines, rows
from headrace.connect.files.seen import FoundFile, Seen
from headrace.connect.settings import Importance, Kind, Setting


class DirectorySource(Source):
    settings: ClassVar[Settings] = LOCATION + Settings(
        Setting("topic", doc="The topic of all records.", importance=Importance.HIGH),
        Setting("format", doc="Of all files.", one_of=FORMATS, importance=Importance.HIGH),
        Setting("file.pattern", default="*", doc="Names of files, as *.json. All others are left alone."),
        Setting("key.field", default="", doc="The field of a row that becomes the record's key."),
        Setting("csv.delimiter", default=",", doc="Between values: one sign, or \\t."),
        Setting(
            "csv.header",
            Kind.BOOLEAN,
            True,
            "Whether the first line names the columns; else they are _c0, _c1.",
        ),
        Setting(
            "file.quiet.ms",
            Kind.INT,
            5000,
            "So long a file of a directory must stay as it is before it is read. An object appears whole.",
            least=0,
        ),
        Setting(
            "batch.bytes",
            Kind.INT,
            64 * 1024 * 1024,
            "About how many bytes of files are one batch.",
            least=1,
        ),
        Setting(
            "files.after.reading",
            default="keep",
            doc="delete: a file is deleted when its records are in the topic.",
            one_of=("keep", "delete"),
        ),
        Setting(
            "changed.files",
            default="fail",
            doc="A file that changed after it was read: fail says which and reads nothing more; skip "
            "passes over it.",
            one_of=("fail", "skip"),
        ),
    )

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._kept_place: Place | None = None
        self._quiet: Quiet | None = None
        self._deleted: set[str] = set()
        """Since the last step: their names may come again."""

    @classmethod
    def check(cls, config: Config) -> Mapping[str, str]:
        found = check_access(config)
        if len(_delimiter(config)) != 1:
            found["csv.delimiter"] = "one sign, or \\t"
        return found

    @classmethod
    def check_position(cls, config: Config, position: Position) -> None:  # noqa: ARG003 - of the interface
        Seen.of(position)

    def tasks(self, most: int) -> int:
        return most

    def plan(self, position: Position) -> Step | None:
        place, seen = self._place, Seen.of(position).without(self._deleted)
        files = place.files(self.config.text("file.pattern"))
        listed = choosing.sorted_out(files, seen)
        self._delete(place, listed.read)
        if self.config["changed.files"] == "fail":
            choosing.check_unchanged(listed.changed, str(place))
        going_on = None if seen.begun is None else choosing.check_begun(seen.begun, files, str(place))
        fresh = self._quiet_ones(place, listed)
        if going_on is None and not fresh:
            return None
        chosen = choosing.choose(fresh, going_on, seen, self.config["batch.bytes"], self._end_of_records())
        after = choosing.check_memory(chosen.seen, files)
        return Step(
            after.position(), choosing.shared(chosen.slices, self.config["tasks.max"]), more=chosen.more
        )

    def read(self, part: Sequence[Slice]) -> Iterator[Record]:
        topic, field = self.config.text("topic"), self.config.text("key.field")
        parsed = "value.converter" in self.config.given
        keys_are_converted = "key.converter" in self.config.given
        for piece in part:
            for row in rows(self._place, self._format, piece, parsed=parsed):
                key = row.fields.get(field) if field and isinstance(row.fields, dict) else None
                yield Record(topic, row.value, key if keys_are_converted else _as_key(key))

    def committed(self, position: Position) -> None:  # noqa: ARG002 - of the interface
        self._deleted.clear()

    def _quiet_ones(self, place: Place, listed: Listed) -> list[FoundFile]:
        if not place.is_local:
            return listed.fresh
        if self._quiet is None:
            self._quiet = Quiet(self.config["file.quiet.ms"])
        return self._quiet.of(listed.fresh, time.monotonic_ns())

    def _delete(self, place: Place, read: Sequence[FoundFile]) -> None:
        """Their records are decided, since the position says that they were read."""
        if self.config["files.after.reading"] == "delete":
            for each in read:
                place.delete(each.path)
                self._deleted.add(each.path)

    def _end_of_records(self) -> choosing.EndOfRecords:
        def found(file: FoundFile, begin: int, limit: int) -> int:
            if not is_in_lines(self._format, file.path):
                return file.size
            return end_of_line(self._place, file.path, file.size, begin, limit)

        return found

    @property
    def _format(self) -> Format:
        return Format(self.config.text("format"), _delimiter(self.config), self.config["csv.header"])

    @property
    def _place(self) -> Place:
        if self._kept_place is None:
            self._kept_place = configured_place(self.config)
        return self._kept_place


def _delimiter(config: Config) -> str:
    return config.text("csv.delimiter").replace("\\t", "\t")


def _as_key(value: Any) -> Any:
    """Texts as they are, and all else as JSON has it."""
    return (
        value if value is None or isinstance(value, (str, bytes)) else json.dumps(value, ensure_ascii=False)
    )
