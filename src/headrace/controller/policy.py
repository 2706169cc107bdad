"""What decides about replicas: who may lead, how many shall be in sync, which safeguards are on."""

from __future__ import annotations

from uuid import UUID

from headrace.controller.image import (
    DEFAULT_BROKER,
    BrokerRegistration,
    ConfigResource,
    MetadataImage,
    ResourceType,
)
from headrace.controller.safeguards import ALL_ON, ControllerSafeguards
from headrace.controller.topic_image import UNASSIGNED_DIRECTORY, TopicImage
from headrace.controller.topics import TopicDefaults
from headrace.core.errors import StaleBrokerEpoch, UnknownServerId
from headrace.core.ids import BrokerEpoch, BrokerId

MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"


class ReplicationPolicy:
    """Reads the image, never changes it."""

    __slots__ = ("_defaults", "image", "safeguards")

    def __init__(
        self,
        image: MetadataImage,
        defaults: TopicDefaults,
        safeguards: ControllerSafeguards = ALL_ON,
    ) -> None:
        self.image = image
        self.safeguards = safeguards
        self._defaults = defaults

    def min_insync_replicas(
        self, topic: str, *, changed: tuple[ConfigResource, str | None] | None = None
    ) -> int:
        """The topic's own, else the cluster's at run time, else the file's; as it is once `changed` is."""
        text = self._configured(topic, MIN_INSYNC_REPLICAS, changed)
        try:
            return self._defaults.min_insync_replicas if text is None else int(text)
        except ValueError:
            return self._defaults.min_insync_replicas

    def allows_unclean(self, topic: str) -> bool:
        if not self.safeguards.eligible_leaders:
            return True
        text = self._configured(topic, UNCLEAN_ELECTION)
        return self._defaults.unclean_elections if text is None else text.strip().lower() == "true"

    def _configured(
        self, topic: str, name: str, changed: tuple[ConfigResource, str | None] | None = None
    ) -> str | None:
        """Values of single brokers do not count: a partition keeps its rule when its leader moves."""
        for resource in (ConfigResource(ResourceType.TOPIC, topic), DEFAULT_BROKER):
            if changed is not None and changed[0] == resource:
                value = changed[1]
            else:
                value = self.image.configs(resource).get(name)
            if value is not None:
                return value
        return None

    def may_lead(self, topic: TopicImage, partition: int, broker_id: int, *, ready: int = -1) -> bool:
        """Alive, not stopping, and its directory works. `ready` is about to be unfenced."""
        broker = self.image.brokers.get(broker_id)
        if broker is None or broker.stopping or (broker.fenced and broker_id != ready):
            return False
        return has_directory(broker, topic.directory_of(partition, broker_id))

    def check_incarnation(self, broker_id: BrokerId, epoch: BrokerEpoch) -> BrokerRegistration:
        """An old incarnation may not act for the new one."""
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            raise UnknownServerId(f"broker {broker_id} is not registered")
        if broker.epoch != epoch and self.safeguards.broker_epoch_in_request:
            raise StaleBrokerEpoch(f"broker {broker_id} has epoch {broker.epoch}, not {epoch}")
        return broker


def has_directory(broker: BrokerRegistration, directory: UUID) -> bool:
    """A broker that has not told its choice yet chooses one that works."""
    return directory == UNASSIGNED_DIRECTORY or directory in broker.directories
