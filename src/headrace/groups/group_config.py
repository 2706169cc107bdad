"""The settings of groups as plain values, under the names of their properties. The defaults are Kafka's."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

from headrace.config.broker import BrokerConfig
from headrace.config.group import ConsumerGroupSettings
from headrace.config.values import INT_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    # classic groups
    group_initial_rebalance_delay_ms: int = 3_000
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = INT_MAX

    # groups of the server-side protocol
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_max_size: int = INT_MAX
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_assignment_interval_ms: int = 1_000
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_consumer_migration_policy: str = "bidirectional"

    # offsets
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    offset_metadata_max_bytes: int = 4_096

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        """A field has the name of the attribute that it comes from."""
        return cls(**{field.name: getattr(config, field.name) for field in fields(cls)})

    def with_own(self, settings: ConsumerGroupSettings) -> Self:
        """The same for one group that has settings of its own."""
        return replace(
            self,
            group_consumer_session_timeout_ms=settings.session_timeout_ms,
            group_consumer_heartbeat_interval_ms=settings.heartbeat_interval_ms,
            group_consumer_assignment_interval_ms=settings.assignment_interval_ms,
        )
