"""The metadata of the whole cluster, as the committed records say it. Readable at any time.

Only replay changes it, between two awaits, so that a reader on the event loop always sees whole batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from headrace.controller.acl_image import AclTable
from headrace.controller.link_image import Link
from headrace.controller.quota_image import QuotaTable
from headrace.controller.scram_image import ScramTable
from headrace.controller.token_image import TokenTable
from headrace.controller.topic_image import DirectoryTable, TopicImage
from headrace.core.ids import BrokerEpoch, BrokerId

METADATA_VERSION = "metadata.version"
TRANSACTION_VERSION = "transaction.version"


class ResourceType(IntEnum):
    """What a config belongs to; the numbers are those of the protocol."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
    LINK = 100
    """A linked topic's link. Kafka has no such type; see link_image.py."""


class ConfigResource(NamedTuple):
    type: int
    name: str


DEFAULT_BROKER = ConfigResource(ResourceType.BROKER, "")
"""The resource whose values hold for every broker that has none of its own."""


class Endpoint(NamedTuple):
    listener: str
    host: str
    port: int
    security_protocol: int = 0


class BrokerRegistration(NamedTuple):
    broker_id: BrokerId
    epoch: BrokerEpoch
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    fenced: bool
    stopping: bool
    directories: tuple[UUID, ...]
    features: Mapping[str, tuple[int, int]]

    @property
    def active(self) -> bool:
        """May lead, and may join an ISR."""
        return not self.fenced and not self.stopping


_NO_CONFIGS: Mapping[str, str] = MappingProxyType({})


class MetadataImage:
    __slots__ = (
        "_colliding",
        "_configs",
        "_features",
        "acls",
        "brokers",
        "directory_table",
        "links",
        "next_producer_id",
        "partition_count",
        "quotas",
        "scram",
        "tokens",
        "topics_by_id",
        "topics_by_name",
    )

    def __init__(self) -> None:
        # Both maps hold the same TopicImage objects.
        self.topics_by_name: dict[str, TopicImage] = {}
        self.topics_by_id: dict[UUID, TopicImage] = {}
        self.directory_table = DirectoryTable()
        self.brokers: dict[int, BrokerRegistration] = {}
        # Every id below it has been handed out.
        self.next_producer_id = 0
        # The sum of all topics' lengths.
        self.partition_count = 0
        self.acls = AclTable()
        self.scram = ScramTable()
        self.quotas = QuotaTable()
        self.tokens = TokenTable()
        # By the names of their topics; see also the topic's configs.
        self.links: dict[str, Link] = {}
        self._configs: dict[ConfigResource, dict[str, str]] = {}
        self._features: dict[str, int] = {}
        # Topics whose names differ only by '.' and '_', under the name with '_' for both.
        self._colliding: dict[str, set[str]] = {}

    # --- reading ------------------------------------------------------------------------------------------

    def topic(self, name: str) -> TopicImage | None:
        return self.topics_by_name.get(name)

    def topic_by_id(self, topic_id: UUID) -> TopicImage | None:
        return self.topics_by_id.get(topic_id)

    def topic_names(self) -> list[str]:
        return sorted(self.topics_by_name)

    def configs(self, resource: ConfigResource) -> Mapping[str, str]:
        """What was set for this very resource; defaults are not in it."""
        return self._configs.get(resource, _NO_CONFIGS)

    def topic_configs(self, name: str) -> Mapping[str, str]:
        return self.configs(ConfigResource(ResourceType.TOPIC, name))

    def broker_configs(self, broker_id: int | None) -> Mapping[str, str]:
        """Dynamic values of one broker, or those of all brokers for None."""
        name = "" if broker_id is None else str(broker_id)
        return self.configs(ConfigResource(ResourceType.BROKER, name))

    def configured_resources(self) -> Iterator[ConfigResource]:
        yield from self._configs

    @property
    def features(self) -> Mapping[str, int]:
        return MappingProxyType(self._features)

    @property
    def metadata_version(self) -> int:
        """The finalised level, 0 before the first start has finalised one."""
        return self._features.get(METADATA_VERSION, 0)

    def name_collision(self, name: str) -> str | None:
        """An existing topic that metrics and paths could not tell from `name`."""
        others = self._colliding.get(collision_key(name), ())
        return min((other for other in others if other != name), default=None)

    # --- changes: only replay calls these -----------------------------------------------------------------

    def add_topic(self, name: str, topic_id: UUID) -> TopicImage:
        topic = TopicImage(name, topic_id, self.directory_table)
        self.topics_by_name[name] = topic
        self.topics_by_id[topic_id] = topic
        if "." in name or "_" in name:
            self._colliding.setdefault(collision_key(name), set()).add(name)
        return topic

    def remove_topic(self, topic: TopicImage) -> None:
        """Its partitions, configs and link go with it."""
        del self.topics_by_id[topic.topic_id]
        del self.topics_by_name[topic.name]
        self.partition_count -= len(topic)
        self._configs.pop(ConfigResource(ResourceType.TOPIC, topic.name), None)
        if self.links.pop(topic.name, None) is not None:
            self._configs.pop(ConfigResource(ResourceType.LINK, topic.name), None)
        key = collision_key(topic.name)
        names = self._colliding.get(key)
        if names is not None:
            names.discard(topic.name)
            if not names:
                del self._colliding[key]

    def set_config(self, resource: ConfigResource, name: str, value: str | None) -> None:
        if resource.type == ResourceType.LINK:
            self.links.setdefault(resource.name, Link()).apply(name, value)
        if value is not None:
            self._configs.setdefault(resource, {})[name] = value
            return
        values = self._configs.get(resource)
        if values is not None:
            values.pop(name, None)
            if not values:
                del self._configs[resource]
                if resource.type == ResourceType.LINK:
                    del self.links[resource.name]

    def set_feature(self, name: str, level: int) -> None:
        if level:
            self._features[name] = level
        else:
            self._features.pop(name, None)


def collision_key(name: str) -> str:
    return name.replace(".", "_")
