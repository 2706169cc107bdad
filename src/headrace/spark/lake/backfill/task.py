"""What one task does: segments in, Parquet files out. What came of it goes to the driver as JSON.

A task that fails as it must says so, instead of raising: Spark would only try the same again.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from headrace.arrow.partition_reader import Reading
from headrace.arrow.schema import SCHEMA, to_batch, wanted_by
from headrace.core.errors import HeadraceError
from headrace.spark.lake.tables.landing import LandedFile, Landing
from headrace.spark.segments.job import read_task
from headrace.spark.segments.place import Place
from headrace.spark.segments.plan import Task


class Work(NamedTuple):
    """The same for all tasks of a step."""

    place: Place
    landing: Landing
    columns: tuple[str, ...]
    committed_only: bool
    file_bytes: int


class Outcome(NamedTuple):
    files: tuple[LandedFile, ...]
    error: str | None = None

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


def carried_out(work: Work, task: Task) -> Outcome:
    try:
        return Outcome(_written(work, task))
    except HeadraceError as error:
        hint = getattr(error, "hint", "")
        return Outcome((), f"{error}; {hint}" if hint else str(error))
    except OSError as error:
        return Outcome((), f"{error.filename or work.landing.directory}: {error.strerror or error}")


def _written(work: Work, task: Task) -> tuple[LandedFile, ...]:
    from headrace.spark.lake.backfill.files import LandingFiles
    from headrace.spark.lake.backfill.rows import schema, to_rows

    reading = Reading(wanted_by(SCHEMA), committed_only=work.committed_only)
    made = schema(work.columns, work.landing.field_ids)
    files = LandingFiles(work.landing, made, work.file_bytes)
    try:
        for block in read_task(work.place, task, reading):
            rows = to_rows(to_batch(block, SCHEMA), made)
            if rows.num_rows:
                files.add(rows)
        files.close()
    except BaseException:
        files.give_up()
        raise
    return tuple(files.landed)


def to_json(outcome: Outcome) -> str:
    return json.dumps({"files": [file._asdict() for file in outcome.files], "error": outcome.error})


def of_json(text: str) -> Outcome:
    document = json.loads(text)
    return Outcome(tuple(LandedFile(**file) for file in document["files"]), document["error"])
