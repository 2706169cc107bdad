"""Where the objects of a partition are in the bucket.

A topic that is made again has another id, so that the two share no key. No key is ever used twice: each
attempt to write an object has a number of its own, drawn at random.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final, NamedTuple
from uuid import UUID

MANIFEST: Final = "manifest"
FORKS: Final = "forks"
RECORDS: Final = ".log"
INDEXES: Final = ".idx"
PAGE: Final = ".page"
_NAME: Final = re.compile(r"(?P<base>\d{20})-(?P<epoch>\d{1,10})-(?P<attempt>[0-9a-f]{32})\Z")


class TieredPartition(NamedTuple):
    topic_id: UUID
    partition: int


class ObjectName(NamedTuple):
    """Of a segment, which is two objects, or of a page."""

    base_offset: int
    leader_epoch: int
    """Of the leader that wrote it."""
    attempt: str
    """32 hexadecimal digits that nobody else has drawn."""

    def __str__(self) -> str:
        return f"{self.base_offset:020}-{self.leader_epoch}-{self.attempt}"


def parse_name(text: str) -> ObjectName:
    """ValueError if it is none."""
    found = _NAME.match(text)
    if found is None:
        raise ValueError(f"{text!r} is not the name of an object")
    return ObjectName(int(found["base"]), int(found["epoch"]), found["attempt"])


def encode_id(topic_id: UUID) -> str:
    """As Kafka's tools show it."""
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def decode_id(text: str) -> UUID:
    """ValueError if it is none."""
    topic_id = UUID(bytes=urlsafe_b64decode(f"{text}=="))
    if encode_id(topic_id) != text:
        raise ValueError(f"{text!r} is not the id of a topic")
    return topic_id


class Shared(NamedTuple):
    """What a fork reads of its origin."""

    prefix: str
    until: int
    """Objects of segments that begin before it are there, and not in the fork's own folder."""


class Folder(NamedTuple):
    """All keys of one partition."""

    prefix: str
    """Ends with `/`."""
    shared: Shared | None = None
    """Only for who reads: whoever deletes has a folder of its own objects alone."""

    @classmethod
    def of(cls, cluster_id: str, partition: TieredPartition) -> Folder:
        return cls(f"{cluster_id}/{encode_id(partition.topic_id)}/{partition.partition}/")

    def sibling(self, topic_id: UUID) -> Folder:
        """The same partition of another topic."""
        cluster_id, _, partition, _ = self.prefix.split("/")
        return Folder(f"{cluster_id}/{encode_id(topic_id)}/{partition}/")

    def over(self, origin: UUID, until: int) -> Folder:
        """To read a fork of that topic."""
        return self._replace(shared=Shared(self.sibling(origin).prefix, until))

    @property
    def manifest(self) -> str:
        return f"{self.prefix}{MANIFEST}"

    @property
    def forks(self) -> str:
        """Who else names objects of this folder."""
        return f"{self.prefix}{FORKS}"

    def _prefix_of(self, name: ObjectName) -> str:
        shared = self.shared
        return self.prefix if shared is None or name.base_offset >= shared.until else shared.prefix

    def stem(self, name: ObjectName) -> str:
        """What the keys of a segment's objects have in common."""
        return f"{self._prefix_of(name)}{name}"

    def records(self, name: ObjectName) -> str:
        return f"{self.stem(name)}{RECORDS}"

    def indexes(self, name: ObjectName) -> str:
        return f"{self.stem(name)}{INDEXES}"

    def page(self, name: ObjectName) -> str:
        return f"{self.prefix}{name}{PAGE}"

    def all_of(self, name: ObjectName) -> tuple[str, ...]:
        """Whatever there may be under a name, the records before their indexes."""
        return self.records(name), self.indexes(name), self.page(name)

    def name_of(self, key: str) -> ObjectName | None:
        """Of an object that a leader has written here; None for the manifest and for what is not ours."""
        stem, dot, ending = key.removeprefix(self.prefix).partition(".")
        if not key.startswith(self.prefix) or f"{dot}{ending}" not in (RECORDS, INDEXES, PAGE):
            return None
        try:
            return parse_name(stem)
        except ValueError:
            return None


def parse_key(key: str) -> tuple[str, TieredPartition] | None:
    """Of which cluster, and of which partition of it; None for what is of no partition."""
    parts = key.split("/")
    if len(parts) != 4 or not parts[2].isdecimal():
        return None
    try:
        return parts[0], TieredPartition(decode_id(parts[1]), int(parts[2]))
    except ValueError:
        return None
