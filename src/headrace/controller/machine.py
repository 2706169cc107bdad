"""The controller's decisions, all in one place: the image, and every operation on it.

An operation returns a Result and changes nothing. The shell commits its records and then replays them;
`replay` is the only way in which the image moves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

from headrace.controller import (
    acls,
    brokers,
    configs,
    directories,
    elections,
    feature_updates,
    features,
    fencing,
    isr_changes,
    minimum_isr,
    producer_ids,
    quotas,
    reassignments,
    scram,
    shutdown,
    tokens,
    topics,
)
from headrace.controller.brokers import BrokerDescription
from headrace.controller.configs import ConfigSchema
from headrace.controller.delta import MetadataDelta
from headrace.controller.feature_updates import FeatureUpdate
from headrace.controller.image import ConfigResource, MetadataImage
from headrace.controller.operations import (
    AlteredConfig,
    AlteredPartition,
    AssignedReplica,
    Balanced,
    ConfigChange,
    CreatedTopic,
    DeletedTopic,
    ElectedLeader,
    IsrChange,
    MorePartitions,
    NewTopic,
    OngoingReassignment,
    PartitionsCreated,
    ProducerIdBlock,
    ReassignedPartition,
    Reassignment,
    Result,
    TopicDeletion,
)
from headrace.controller.policy import ReplicationPolicy
from headrace.controller.replay import Replayer
from headrace.controller.safeguards import ALL_ON, ControllerSafeguards
from headrace.controller.security_operations import (
    AlteredQuota,
    AlteredScramUser,
    CreatedAcl,
    NewToken,
    QuotaAlteration,
    ScramDeletion,
    ScramUpsertion,
    TokenLifetimes,
)
from headrace.controller.self_balancing import moving
from headrace.controller.self_balancing.loads import Step
from headrace.controller.token_image import DelegationToken
from headrace.controller.topics import TopicDefaults
from headrace.core.ids import BrokerEpoch, BrokerId, TopicPartition
from headrace.core.ports import Random
from headrace.protocol.message import Message
from headrace.security.acl import AclRule
from headrace.security.principal import Principal


class ControllerMachine:
    __slots__ = ("_policy", "_random", "_replayer", "defaults", "image", "schema")

    def __init__(
        self,
        *,
        schema: ConfigSchema,
        random: Random,
        defaults: TopicDefaults,
        safeguards: ControllerSafeguards = ALL_ON,
    ) -> None:
        self.image = MetadataImage()
        self.schema = schema
        self.defaults = defaults
        self._random = random
        self._replayer = Replayer(self.image)
        self._policy = ReplicationPolicy(self.image, defaults, safeguards)

    # --- the only mutator -----------------------------------------------------------------------------------

    def replay(self, records: Iterable[Message], delta: MetadataDelta) -> None:
        """Apply committed records, in the order in which they were committed."""
        self._replayer.replay_all(records, delta)

    @property
    def in_transaction(self) -> bool:
        """A transaction has begun in what was replayed, and has not ended."""
        return self._replayer.in_transaction

    # --- topics and configs ---------------------------------------------------------------------------------

    def create_topics(self, new: Sequence[NewTopic]) -> Result[list[CreatedTopic]]:
        return topics.create_topics(
            self.image, new, schema=self.schema, defaults=self.defaults, random=self._random
        )

    def delete_topics(self, deletion: Sequence[TopicDeletion]) -> Result[list[DeletedTopic]]:
        return topics.delete_topics(self.image, deletion)

    def create_partitions(self, wanted: Sequence[MorePartitions]) -> Result[list[PartitionsCreated]]:
        return topics.create_partitions(self.image, wanted, random=self._random)

    def alter_configs(
        self, resources: Sequence[tuple[ConfigResource, Sequence[tuple[str, str | None]]]]
    ) -> Result[list[AlteredConfig]]:
        groups, response = configs.alter_configs(self.image, resources, schema=self.schema)
        return Result(minimum_isr.with_eligibility(self._policy, groups), response)

    def incremental_alter_configs(
        self, changes: Sequence[tuple[ConfigResource, Sequence[ConfigChange]]]
    ) -> Result[list[AlteredConfig]]:
        groups, response = configs.incremental_alter_configs(self.image, changes, schema=self.schema)
        return Result(minimum_isr.with_eligibility(self._policy, groups), response)

    # --- brokers --------------------------------------------------------------------------------------------

    def register_broker(
        self, broker: BrokerDescription, epoch: BrokerEpoch, *, fenced: bool = True
    ) -> Result[None]:
        return brokers.register(self._policy, broker, epoch, fenced=fenced)

    def fence_brokers(
        self, broker_ids: Iterable[int], *, epochs: Mapping[int, int] | None = None
    ) -> Result[int]:
        return fencing.fence_brokers(self._policy, broker_ids, epochs=epochs)

    def unfence_broker(self, broker_id: BrokerId, epoch: BrokerEpoch) -> Result[int]:
        return fencing.unfence_broker(self._policy, broker_id, epoch)

    def begin_shutdown(self, broker_id: BrokerId, epoch: BrokerEpoch) -> Result[int]:
        return shutdown.begin_shutdown(self._policy, broker_id, epoch)

    def unregister_broker(self, broker_id: BrokerId) -> Result[None]:
        return brokers.unregister(self._policy, broker_id)

    def allocate_producer_ids(self, broker_id: BrokerId, epoch: BrokerEpoch) -> Result[ProducerIdBlock]:
        return producer_ids.allocate(self._policy, broker_id, epoch)

    def assign_directories(
        self,
        broker_id: BrokerId,
        epoch: BrokerEpoch,
        assignments: Mapping[UUID, Sequence[tuple[UUID, int]]],
    ) -> Result[list[AssignedReplica]]:
        return directories.assign_directories(self._policy, broker_id, epoch, assignments)

    def directories_offline(
        self, broker_id: BrokerId, epoch: BrokerEpoch, offline: Iterable[UUID]
    ) -> Result[int]:
        return directories.directories_offline(self._policy, broker_id, epoch, offline)

    # --- partitions -----------------------------------------------------------------------------------------

    def alter_partitions(
        self, broker_id: BrokerId, epoch: BrokerEpoch, changes: Sequence[IsrChange]
    ) -> Result[list[AlteredPartition]]:
        return isr_changes.alter_partitions(self._policy, broker_id, epoch, changes)

    def elect_leaders(
        self,
        election: int,
        partitions: Sequence[tuple[str, int]] | None,
        longest_first: elections.LongestFirst = elections.NOTHING_KNOWN,
    ) -> Result[list[ElectedLeader]]:
        return elections.elect_leaders(self._policy, election, partitions, longest_first)

    def elect_leaderless(self) -> Result[int]:
        return elections.elect_leaderless(self._policy)

    def balance_leaders(self, *, most: int = elections.MOST_ELECTIONS) -> Result[Balanced]:
        return elections.balance_leaders(self._policy, most=most)

    def renew_leaderships(self, broker_id: BrokerId) -> Result[int]:
        return elections.renew_leaderships(self._policy, broker_id)

    def reassign_partitions(
        self, asked: Sequence[Reassignment], *, allow_factor_change: bool = True
    ) -> Result[list[ReassignedPartition]]:
        return reassignments.reassign_partitions(self._policy, asked, allow_factor_change=allow_factor_change)

    def list_reassignments(
        self, asked: Sequence[tuple[str, Sequence[int]]] | None
    ) -> list[OngoingReassignment]:
        return reassignments.list_reassignments(self._policy, asked)

    def begin_balancing(self, steps: Sequence[Step], excluded: Collection[int]) -> Result[moving.Begun]:
        return moving.begin(self._policy, self.schema, steps, excluded)

    def end_balancing(self) -> Result[dict[TopicPartition, bool]]:
        return moving.end(self._policy, self.schema)

    def cancel_balancing(self) -> Result[dict[TopicPartition, str]]:
        return moving.cancel(self._policy, self.schema)

    # --- security -------------------------------------------------------------------------------------------

    def create_acls(self, rules: Sequence[AclRule]) -> Result[list[CreatedAcl]]:
        return acls.create_acls(self.image, rules, random=self._random)

    def delete_acls(self, acl_ids: Iterable[UUID]) -> Result[frozenset[UUID]]:
        return acls.delete_acls(self.image, acl_ids)

    def alter_scram_credentials(
        self, deletions: Sequence[ScramDeletion], upsertions: Sequence[ScramUpsertion]
    ) -> Result[list[AlteredScramUser]]:
        return scram.alter_credentials(self.image, deletions, upsertions)

    def alter_client_quotas(self, alterations: Sequence[QuotaAlteration]) -> Result[list[AlteredQuota]]:
        return quotas.alter_client_quotas(self.image, alterations)

    def create_token(self, new: NewToken, lifetimes: TokenLifetimes, now_ms: int) -> Result[DelegationToken]:
        return tokens.create_token(self.image, new, lifetimes, now_ms=now_ms, random=self._random)

    def renew_token(
        self, token_id: str | None, by: Principal, period_ms: int, lifetimes: TokenLifetimes, now_ms: int
    ) -> Result[int]:
        return tokens.renew_token(self.image, token_id, by, period_ms, lifetimes, now_ms=now_ms)

    def expire_token(self, token_id: str | None, by: Principal, period_ms: int, now_ms: int) -> Result[int]:
        return tokens.expire_token(self.image, token_id, by, period_ms, now_ms=now_ms)

    def remove_expired_tokens(self, now_ms: int) -> Result[int]:
        return tokens.remove_expired(self.image, now_ms=now_ms)

    # --- the cluster ----------------------------------------------------------------------------------------

    def finalise_features(self) -> Result[None]:
        return features.finalise_first(self.image)

    def update_features(self, updates: Sequence[FeatureUpdate]) -> Result[None]:
        return feature_updates.update_features(self.image, updates)
