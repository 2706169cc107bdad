"""The controller's decisions, all in one place: the image, and every operation on it.

An operation returns a Result and changes nothing. The shell commits its records and then replays them;
`replay` is the only way in which the image moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.controller import brokers, configs, elections, features, producer_ids, topics
from headrace.controller.brokers import BrokerDescription
from headrace.controller.configs import ConfigSchema
from headrace.controller.delta import MetadataDelta
from headrace.controller.image import ConfigResource, MetadataImage
from headrace.controller.operations import (
    AlteredConfig,
    ConfigChange,
    CreatedTopic,
    DeletedTopic,
    DoomedTopic,
    ElectedLeader,
    GrownTopic,
    MorePartitions,
    NewTopic,
    ProducerIdBlock,
    Result,
)
from headrace.controller.replay import Replayer
from headrace.controller.topics import TopicDefaults
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.core.ports import Random
from headrace.protocol.message import Message


class ControllerMachine:
    __slots__ = ("_random", "_replayer", "defaults", "image", "schema")

    def __init__(self, *, schema: ConfigSchema, random: Random, defaults: TopicDefaults) -> None:
        self.image = MetadataImage()
        self.schema = schema
        self.defaults = defaults
        self._random = random
        self._replayer = Replayer(self.image)

    # --- the only mutator -----------------------------------------------------------------------------------

    def replay(self, records: Iterable[Message], delta: MetadataDelta) -> None:
        """Apply committed records, in the order in which they were committed."""
        self._replayer.replay_all(records, delta)

    @property
    def in_transaction(self) -> bool:
        """A transaction has begun in what was replayed, and has not ended."""
        return self._replayer.in_transaction

    # --- decisions ------------------------------------------------------------------------------------------

    def create_topics(self, new: Sequence[NewTopic]) -> Result[list[CreatedTopic]]:
        return topics.create_topics(
            self.image, new, schema=self.schema, defaults=self.defaults, random=self._random
        )

    def delete_topics(self, doomed: Sequence[DoomedTopic]) -> Result[list[DeletedTopic]]:
        return topics.delete_topics(self.image, doomed)

    def create_partitions(self, wanted: Sequence[MorePartitions]) -> Result[list[GrownTopic]]:
        return topics.create_partitions(self.image, wanted, random=self._random)

    def alter_configs(
        self, resources: Sequence[tuple[ConfigResource, Sequence[tuple[str, str | None]]]]
    ) -> Result[list[AlteredConfig]]:
        return configs.alter_configs(self.image, resources, schema=self.schema)

    def incremental_alter_configs(
        self, changes: Sequence[tuple[ConfigResource, Sequence[ConfigChange]]]
    ) -> Result[list[AlteredConfig]]:
        return configs.incremental_alter_configs(self.image, changes, schema=self.schema)

    def elect_leaders(
        self, election: int, partitions: Sequence[tuple[str, int]] | None
    ) -> Result[list[ElectedLeader]]:
        return elections.elect_leaders(self.image, election, partitions)

    def renew_leaderships(self, broker_id: BrokerId) -> Result[int]:
        return elections.renew_leaderships(self.image, broker_id)

    def allocate_producer_ids(self, broker_id: BrokerId, epoch: BrokerEpoch) -> Result[ProducerIdBlock]:
        return producer_ids.allocate(self.image, broker_id, epoch)

    def register_broker(
        self, broker: BrokerDescription, epoch: BrokerEpoch, *, fenced: bool = True
    ) -> Result[None]:
        return brokers.register(self.image, broker, epoch, fenced=fenced)

    def set_fenced(self, broker_id: BrokerId, epoch: BrokerEpoch, *, fenced: bool) -> Result[None]:
        return brokers.set_fenced(self.image, broker_id, epoch, fenced=fenced)

    def finalise_features(self) -> Result[None]:
        return features.finalise_first(self.image)
