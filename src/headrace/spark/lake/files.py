"""Small control files, on whatever file system the lake is: checkpoints, commit records, what was done.

A place in the local file system is reached by Python itself, so that `lake status` needs no Spark. Any other
is reached through Hadoop's file systems in Spark's own process.
"""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlparse

from pyspark.sql import SparkSession

_ENCODING: Final = "utf-8"


class Files(Protocol):
    """`create` and `replace` show a whole file or none, also to whoever comes after a kill. What a kill left
    of a file that was being written has a name that begins with a dot.
    """

    def read(self, path: str) -> str | None: ...

    def create(self, path: str, text: str) -> bool:
        """False where the file is there already: of two writers exactly one succeeds."""
        ...

    def replace(self, path: str, text: str) -> None: ...

    def names(self, directory: str) -> list[str]:
        """In order, without those that begin with a dot; empty where there is no such directory."""
        ...

    def sizes(self, directory: str) -> dict[str, int]:
        """Of the files in it, not of directories."""
        ...

    def move(self, source: str, target: str) -> bool:
        """False where the source is not there."""
        ...

    def remove(self, path: str) -> None:
        """A file, or a directory with all that is in it; nothing where there is none."""
        ...


def is_local(location: str) -> bool:
    return urlparse(location).scheme in ("", "file")


def files_for(location: str, spark: SparkSession | None) -> Files:
    if is_local(location):
        return LocalFiles()
    if spark is None:
        raise ValueError(f"{location} is reached through Spark, and there is no session")
    return HadoopFiles(spark)


def for_people(location: str) -> str:
    """As one would write it in a shell."""
    return str(LocalFiles.path(location)) if is_local(location) else location


class LocalFiles:
    @staticmethod
    def path(location: str) -> Path:
        return Path(unquote(urlparse(location).path) if location.startswith("file:") else location)

    def read(self, path: str) -> str | None:
        try:
            return self.path(path).read_text(_ENCODING)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _written(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            with beside.open("w", encoding=_ENCODING) as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError:  # a full disk
            beside.unlink(missing_ok=True)
            raise
        return beside

    def create(self, path: str, text: str) -> bool:
        target = self.path(path)
        beside = self._written(target, text)
        try:
            os.link(beside, target)  # a rename would replace what another writer has just put there
        except FileExistsError:
            return False
        finally:
            beside.unlink()
        return True

    def replace(self, path: str, text: str) -> None:
        target = self.path(path)
        os.replace(self._written(target, text), target)

    def names(self, directory: str) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self.path(directory)) if not name.startswith("."))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def sizes(self, directory: str) -> dict[str, int]:
        found = {}
        for name in self.names(directory):
            path = self.path(directory) / name
            try:
                if path.is_file():
                    found[name] = path.stat().st_size
            except FileNotFoundError:
                continue  # moved or removed meanwhile
        return found

    def move(self, source: str, target: str) -> bool:
        self.path(target).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.replace(self.path(source), self.path(target))
        except FileNotFoundError:
            return False
        return True

    def remove(self, path: str) -> None:
        where = self.path(path)
        if where.is_dir():
            shutil.rmtree(where, ignore_errors=True)
        else:
            where.unlink(missing_ok=True)


class HadoopFiles:
    """Rename and exclusive creation are as good as the file system's own: atomic on HDFS."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._gateway: Any = spark.sparkContext._gateway
        self._conf: Any = spark.sparkContext._jsc.hadoopConfiguration()

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def _system(self, path: str) -> Any:
        return self._path(path).getFileSystem(self._conf)

    def read(self, path: str) -> str | None:
        system = self._system(path)
        if not system.exists(self._path(path)):
            return None
        stream = system.open(self._path(path))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode(_ENCODING)
        finally:
            stream.close()

    def _written(self, path: str, text: str) -> str:
        directory, _, name = path.rpartition("/")
        beside = f"{directory}/.{name}.{uuid.uuid4().hex}"
        stream = self._system(path).create(self._path(beside), False)
        try:
            stream.write(bytearray(text.encode(_ENCODING)))
        finally:
            stream.close()
        return beside

    def create(self, path: str, text: str) -> bool:
        """Written beside and renamed: HDFS refuses to rename onto a file that is there."""
        if self._system(path).exists(self._path(path)):
            return False
        beside = self._written(path, text)
        moved = bool(self._system(path).rename(self._path(beside), self._path(path)))
        if not moved:
            self.remove(beside)
        return moved

    def replace(self, path: str, text: str) -> None:
        """A file system's own rename refuses; the one of a `FileContext` replaces, in one step on HDFS."""
        beside = self._written(path, text)
        context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            self._path(path).toUri(), self._conf
        )
        kinds = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")
        how = self._gateway.new_array(kinds, 1)
        how[0] = kinds.OVERWRITE
        context.rename(self._path(beside), self._path(path), how)

    def names(self, directory: str) -> list[str]:
        system = self._system(directory)
        if not system.exists(self._path(directory)):
            return []
        found = (str(status.getPath().getName()) for status in system.listStatus(self._path(directory)))
        return sorted(name for name in found if not name.startswith("."))

    def sizes(self, directory: str) -> dict[str, int]:
        system = self._system(directory)
        if not system.exists(self._path(directory)):
            return {}
        listed = sorted(
            system.listStatus(self._path(directory)), key=lambda status: str(status.getPath().getName())
        )
        return {status.getPath().getName(): int(status.getLen()) for status in listed if status.isFile()}

    def move(self, source: str, target: str) -> bool:
        system = self._system(source)
        if not system.exists(self._path(source)):
            return False
        system.mkdirs(self._path(target).getParent())
        return bool(system.rename(self._path(source), self._path(target)))

    def remove(self, path: str) -> None:
        self._system(path).delete(self._path(path), True)
