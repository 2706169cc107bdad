"""A directory on this machine, or a prefix of a bucket: the same few things with both, by pyarrow's file
systems."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from headrace.connect.api import Config, ConnectorFailure
from headrace.connect.files.seen import FoundFile
from headrace.connect.settings import BadSetting, Importance, Kind, Setting, Settings

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_S3: Final = "s3"


def _is_location(text: str) -> None:
    place_of(text)


LOCATION: Final = Settings(
    Setting(
        "location",
        doc="A directory that the worker and all tasks see, or s3://BUCKET/PREFIX.",
        importance=Importance.HIGH,
        check=_is_location,
    ),
    Setting("s3.endpoint", default="", doc="URL of another server than Amazon's: https://HOST:PORT."),
    Setting("s3.region", default="", doc="The bucket's region."),
    Setting(
        "aws.access.key.id",
        default="",
        doc="Who asks for objects. Empty: whoever the environment of the worker and of the tasks says, "
        "as all tools of AWS find out.",
    ),
    Setting("aws.secret.access.key", Kind.PASSWORD, "", "The secret of that key."),
    Setting("s3.ca.location", default="", doc="A file with the authority's certificate, for https."),
)


@dataclass(frozen=True)
class Access:
    """How to reach an object store. Nothing of it is asked for by a directory."""

    endpoint: str = ""
    region: str = ""
    key: str = ""
    secret: str = field(default="", repr=False)
    authority: str = ""


class Place:
    """Paths are below it, with `/` between their parts. Failures are told as ConnectorFailure."""

    def __init__(self, scheme: str, root: str, access: Access | None = None) -> None:
        self.is_local: Final = scheme != _S3
        self._scheme = scheme
        self._root = root
        self._access = access or Access()

    def __str__(self) -> str:
        return self._root if self.is_local else f"s3://{self._root}"

    def shown(self, path: str) -> str:
        return f"{self}/{path}"

    def files(self, pattern: str = "*", below: str = "", *, hidden: bool = False) -> list[FoundFile]:
        """All files below it; as for Spark, what begins with _ or . is hidden, and so is all below it."""
        from pyarrow.fs import FileSelector, FileType

        base = self._whole(below) if below else self._root
        with self._told(f"list {self.shown(below)}"):
            selector = FileSelector(base, recursive=True, allow_not_found=True)
            found = self._files.get_file_info(selector)
            if not found and not self.is_local:
                self._must_have_bucket()
        start = len(self._root) + (0 if self._root.endswith("/") else 1)
        listed = [
            FoundFile(each.path[start:], each.size, each.mtime_ns or 0)
            for each in found
            if each.type == FileType.File
        ]
        return [
            each
            for each in listed
            if (hidden or not _is_hidden(each.path)) and fnmatchcase(each.path.rpartition("/")[2], pattern)
        ]

    def find(self, path: str) -> FoundFile | None:
        from pyarrow.fs import FileType

        with self._told(f"look for {self.shown(path)}"):
            (found,) = self._files.get_file_info([self._whole(path)])
        return FoundFile(path, found.size, found.mtime_ns or 0) if found.type == FileType.File else None

    @contextmanager
    def reading(self, path: str) -> Iterator[Any]:
        """A file that can be sought in. The block is told of what the file system says."""
        with self._told(f"read {self.shown(path)}"), self._files.open_input_file(self._whole(path)) as file:
            yield file

    def open_for_writing(self, path: str) -> Any:
        """Close it. Of an object nothing is there before that."""
        whole = self._whole(path)
        with self._told(f"write {self.shown(path)}"):
            if self.is_local:
                self._files.create_dir(os.path.dirname(whole), recursive=True)
            return self._files.open_output_stream(whole, compression=None)

    def keep(self, paths: Sequence[str]) -> None:
        """After a loss of power these files are still there: an object store has promised that already."""
        if not self.is_local:
            return
        folders = {
            "/".join(parts[:at]) for path in paths if (parts := path.split("/")) for at in range(len(parts))
        }
        with self._told(f"write {self}"):
            for each in (*paths, *sorted(folders, reverse=True)):
                _sync(self._whole(each))

    def move(self, path: str, to: str) -> None:
        """In one step; again and again is the same. An object is copied by its store."""
        with self._told(f"move {self.shown(path)} to {self.shown(to)}"):
            if self.is_local:
                self._files.create_dir(os.path.dirname(self._whole(to)), recursive=True)
            try:
                self._files.move(self._whole(path), self._whole(to))
            except OSError:
                if self.find(path) is not None or self.find(to) is None:
                    raise

    def delete(self, path: str) -> None:
        with self._told(f"delete {self.shown(path)}"):
            try:
                self._files.delete_file(self._whole(path))
            except FileNotFoundError:
                pass  # somebody else was faster

    def clear(self, below: str) -> None:
        """All below it, and it."""
        with self._told(f"delete {self.shown(below)}"):
            if self.is_local:
                try:
                    self._files.delete_dir(self._whole(below))
                except FileNotFoundError:
                    pass
                return
        for each in self.files(below=below, hidden=True):
            self.delete(each.path)

    def _must_have_bucket(self) -> None:
        """To list one that is not there gives nothing, without a word."""
        from pyarrow.fs import FileType

        bucket = self._root.partition("/")[0]
        (found,) = self._files.get_file_info([bucket])
        if found.type == FileType.NotFound:
            raise ConnectorFailure(
                f"there is no bucket {bucket}: make it, or correct location and s3.endpoint"
            )

    def _whole(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}"

    @cached_property
    def _files(self) -> FileSystem:
        from pyarrow.fs import LocalFileSystem, S3FileSystem

        if self.is_local:
            return LocalFileSystem()
        given: dict[str, Any] = {}
        if self._access.endpoint:
            parts = urlsplit(self._access.endpoint)
            given |= {"scheme": parts.scheme, "endpoint_override": parts.netloc}
        if self._access.region:
            given["region"] = self._access.region
        if self._access.key:
            given |= {"access_key": self._access.key, "secret_key": self._access.secret}
        if self._access.authority:
            given["tls_ca_file_path"] = self._access.authority
        with self._told("prepare for the object store"):
            return S3FileSystem(**given)

    @contextmanager
    def _told(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ConnectorFailure(f"cannot {doing}: {' '.join(str(error).split())}") from None


def place_of(text: str, access: Access | None = None) -> Place:
    """Raises BadSetting."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "file", text
    if scheme == "file" and rest.startswith("/"):
        return Place("file", os.path.normpath(rest))
    if scheme in (_S3, "s3a") and rest.strip("/"):
        return Place(_S3, rest.strip("/"), access)
    raise BadSetting(
        f"Invalid value {text} for configuration location: it is the whole path of a directory, beginning "
        "with /, or s3://BUCKET/PREFIX"
    )


def configured_place(config: Config) -> Place:
    return place_of(
        config.text("location"),
        Access(
            config["s3.endpoint"],
            config["s3.region"],
            config["aws.access.key.id"],
            config["aws.secret.access.key"],
            config["s3.ca.location"],
        ),
    )


def check_access(config: Config) -> dict[str, str]:
    """For `Connector.check`."""
    found = {}
    if config["s3.endpoint"] and not config["s3.endpoint"].startswith(("http://", "https://")):
        found["s3.endpoint"] = "it begins with http:// or https://"
    if bool(config["aws.access.key.id"]) != bool(config["aws.secret.access.key"]):
        found["aws.secret.access.key"] = "a key's name and its secret belong together: give both, or neither"
    return found


def _is_hidden(path: str) -> bool:
    return any(part.startswith(("_", ".")) for part in path.split("/"))


def _sync(path: str) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
