"""What the lake asks of a table, whatever its format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headrace.spark.lake.config import Maintenance
from headrace.spark.lake.table_schema import Following
from headrace.spark.lake.tables.landing import LandedFile, Landing


class Commit(NamedTuple):
    """Names one write for good: the same batch of the same writer is the same rows, however often it is
    tried.

    A writer is a query as its checkpoint knows it. Its batches only grow.
    """

    writer: str
    batch: int


class Upkeep(NamedTuple):
    """What maintenance did to a table."""

    files_before: int
    files_after: int
    removed: int | None
    """What nobody can read any more, and was deleted. None where the format does not tell."""


class Table(Protocol):
    """`append` and `add` are atomic, and happen once for a commit: a repetition changes nothing."""

    @property
    def name(self) -> str:
        """For people: a path or an identifier."""
        ...

    #: Whether a decimal can get more digits after the point without rewriting.
    scale_may_grow: bool

    def schema(self) -> StructType | None:
        """None where the table does not exist."""
        ...

    def create(self, schema: StructType) -> None:
        """Nothing where it exists."""
        ...

    def change(self, following: Following) -> None:
        """Give the table the columns that it lacks, and the width."""
        ...

    def last(self, writer: str) -> int:
        """The last batch of this writer that is in the table; -1 before the first."""
        ...

    def recover(self, writer: str) -> None:
        """Finish or undo what this writer left behind when it was killed. Before its first append."""
        ...

    def append(self, frame: DataFrame, commit: Commit) -> None: ...

    def landing(self, commit: Commit) -> Landing:
        """Where the files of this commit are written, of a table that exists.

        Unsuitable if they cannot be."""
        ...

    def add(self, landing: Landing, files: Sequence[LandedFile], commit: Commit) -> None:
        """What was written there, and these files only, in the place of an `append`."""
        ...

    def read(self) -> DataFrame: ...

    def remove(self, keys: DataFrame) -> None:
        """Rows whose topic, partition and offset are in `keys`. To do it again changes nothing."""
        ...

    def maintain(self, settings: Maintenance) -> Upkeep: ...
