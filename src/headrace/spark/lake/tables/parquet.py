"""A directory of Parquet files that any reader may list. The commit is a small file of its own.

    <table>/<writer>-<batch>-<n>.parquet       what readers see
    <table>/_headrace/schema.json              all columns that any file has
    <table>/_headrace/staging/<attempt>/       files that are being written
    <table>/_headrace/commits/<writer>/<batch> which staged files go where: the commit point
    <table>/_headrace/compactions/<id>         the same, and which files they replace

Spark writes a batch into a staging directory that no other attempt shares. Then the commit file is created,
which only one attempt can do. Then the files are moved. After a kill, whoever starts next moves what a commit
file names and has not arrived; what has none was never committed, and is deleted. So a batch is there once. A
reader that lists the directory during the moves may see a part of a batch for milliseconds, never a row
twice.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from headrace.spark import columns
from headrace.spark.lake.config import Maintenance
from headrace.spark.lake.files import Files
from headrace.spark.lake.table_schema import Following
from headrace.spark.lake.tables.landing import LandedFile, Landing, codec_of
from headrace.spark.lake.tables.packing import Packing, pack
from headrace.spark.lake.tables.table import Commit, Upkeep


class ParquetTable:
    scale_may_grow = False

    def __init__(self, spark: SparkSession, path: str, files: Files) -> None:
        self.spark = spark
        self.path = path
        self.files = files
        self._control = f"{path}/_headrace"
        self._schema_file = f"{self._control}/schema.json"
        self._commit_files = f"{self._control}/commits"
        self._compactions = f"{self._control}/compactions"
        self._staging = f"{self._control}/staging"

    @property
    def name(self) -> str:
        return self.path

    def schema(self) -> StructType | None:
        text = self.files.read(self._schema_file)
        return None if text is None else StructType.fromJson(json.loads(text))

    def create(self, schema: StructType) -> None:
        self.files.create(self._schema_file, schema.json())

    def change(self, following: Following) -> None:
        """Files keep the columns that they were written with; readers are given the union."""
        self.files.replace(self._schema_file, following.schema.json())

    def _commit_file(self, commit: Commit) -> str:
        return f"{self._commit_files}/{commit.writer}/{commit.batch:012d}"

    def last(self, writer: str) -> int:
        """Commits before the last may have been tidied away."""
        return max((int(name) for name in self._commits(writer)), default=-1)

    def _commits(self, writer: str) -> list[str]:
        return [name for name in self.files.names(f"{self._commit_files}/{writer}") if name.isdecimal()]

    def recover(self, writer: str) -> None:
        """For all: others may have been killed too and not come back. To move files twice is harmless."""
        for each in self.files.names(self._commit_files):
            for name in self._commits(each)[-1:]:  # a batch begins when the one before has arrived
                self._arrive(f"{self._commit_files}/{each}/{name}")
        self._finish_compactions()  # until then rows are in two files
        self._drop_staged(f"{writer}-")

    def append(self, frame: DataFrame, commit: Commit) -> None:
        staged = self._new_staging(commit)
        frame.write.parquet(staged)
        self._commit(staged, self._staged_files(staged), commit)

    def landing(self, commit: Commit) -> Landing:
        return Landing(self._new_staging(commit), "part", codec_of(self.spark))

    def add(self, landing: Landing, files: Sequence[LandedFile], commit: Commit) -> None:
        self._commit(landing.directory, [file.name for file in files], commit)

    def _new_staging(self, commit: Commit) -> str:
        return f"{self._staging}/{_name_of(commit)}-{uuid.uuid4().hex[:8]}"

    def _commit(self, staged: str, names: Sequence[str], commit: Commit) -> None:
        moves = self._moves(staged, names, _name_of(commit))
        file = self._commit_file(commit)
        if self.files.create(file, json.dumps({"moves": moves, "removes": []})):
            self._arrive(file)
        self.files.remove(staged)

    def _staged_files(self, staged: str) -> list[str]:
        """A task that had no rows may have left an empty one."""
        return [name for name in self.files.names(staged) if name.endswith(".parquet")]

    def _moves(self, staged: str, names: Sequence[str], prefix: str) -> dict[str, str]:
        """From where to where, both below the table."""
        directory = staged.removeprefix(f"{self.path}/")
        return {f"{directory}/{name}": f"{prefix}-{number}.parquet" for number, name in enumerate(names)}

    def _arrive(self, commit_file: str) -> None:
        """May be done again at any time: a file that is not where it was staged has arrived."""
        text = self.files.read(commit_file)
        if text is None:
            return
        record: Mapping[str, Mapping[str, str]] = json.loads(text)
        for source, target in record["moves"].items():
            self.files.move(f"{self.path}/{source}", f"{self.path}/{target}")
        for name in record["removes"]:
            self.files.remove(f"{self.path}/{name}")

    def read(self) -> DataFrame:
        """Columns by name: null where a file is older than the column, wider where it was narrower."""
        schema = self.schema()
        assert schema is not None, f"{self.path} is not a table of the lake"
        return self.spark.read.schema(schema).parquet(self.path)

    # --- rewriting ----------------------------------------------------------------------------------------

    def _data_files(self) -> dict[str, int]:
        return {name: size for name, size in self.files.sizes(self.path).items() if name.endswith(".parquet")}

    def _rewrite(self, names: Sequence[str], frame: DataFrame, count: int) -> None:
        """Replace these files by `frame` in `count` files. The compaction's own file is the commit point."""
        number = uuid.uuid4().hex[:12]
        staged = f"{self._staging}/compaction-{number}"
        frame.coalesce(count).write.parquet(staged)
        moves = self._moves(staged, self._staged_files(staged), f"compact-{number}")
        record = {"moves": moves, "removes": list(names)}
        file = f"{self._compactions}/{number}"
        self.files.create(file, json.dumps(record))
        self._finish_compaction(file)
        self.files.remove(staged)

    def _finish_compaction(self, file: str) -> None:
        self._arrive(file)
        self.files.remove(file)

    def _finish_compactions(self) -> None:
        """Of a process that was killed, or of one that is just at it: to do it twice is harmless."""
        for name in self.files.names(self._compactions):
            self._finish_compaction(f"{self._compactions}/{name}")

    def _begin_rewriting(self) -> None:
        """Only one process rewrites a table at a time: what else is staged is of one that was killed."""
        self._finish_compactions()
        self._drop_staged("compaction-")

    def _drop_staged(self, prefix: str) -> None:
        for name in self.files.names(self._staging):
            if name.startswith(prefix):
                self.files.remove(f"{self._staging}/{name}")

    def _frame_of(self, names: Sequence[str]) -> DataFrame:
        schema = self.schema()
        assert schema is not None, f"{self.path} is not a table of the lake"
        return self.spark.read.schema(schema).parquet(*(f"{self.path}/{name}" for name in names))

    def remove(self, keys: DataFrame) -> None:
        """Rewrites what there is: dead letters are few."""
        self._begin_rewriting()
        names = list(self._data_files())
        if not names:
            return
        kept = self._frame_of(names).join(sf.broadcast(keys), list(columns.IDENTITY), "left_anti")
        schema = self.schema()
        assert schema is not None, f"{self.path} is not a table of the lake"
        self._rewrite(names, kept.select(*schema.names), 1)

    def maintain(self, settings: Maintenance) -> Upkeep:
        self._begin_rewriting()
        before = self._data_files()
        packing = Packing(settings.small_file_bytes, settings.target_file_bytes, settings.least_files)
        for group in pack(before, packing):
            self._rewrite(group, self._frame_of(group), 1)
        return Upkeep(len(before), len(self._data_files()), self._tidy())

    def _tidy(self) -> int:
        """All commit files but each writer's last: a batch is only ever repeated if it was the last."""
        removed = 0
        for writer in self.files.names(self._commit_files):
            for name in self._commits(writer)[:-1]:
                self.files.remove(f"{self._commit_files}/{writer}/{name}")
                removed += 1
        return removed


def _name_of(commit: Commit) -> str:
    return f"{commit.writer}-{commit.batch:012d}"
