"""What is audited, and where the audit keeps its books."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headrace.audit import event, verdict
from headrace.client.cluster import Cluster
from headrace.core.errors import ConfigError, HeadraceError
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.mirror.config import MirrorConfig

MIRROR: Final = "mirror"
"""The tier of what a mirror has written."""
FORMATS: Final = ("delta", "iceberg", "parquet")


class AuditRefused(HeadraceError):
    """Says what to write instead."""


@dataclass(frozen=True)
class LakeTable:
    """A table with the columns topic, partition, offset, timestamp, and key and value or record_hash."""

    format: str
    #: A directory or URL; of Iceberg the name, with its catalog.
    location: str
    tier: str = "lake"
    #: Of the query that fills it, where that is known: see lakes.py.
    checkpoint: str | None = None


def parse_table(text: str) -> LakeTable:
    """[TIER=]FORMAT:LOCATION, as in delta:/data/lake/orders. Tables of one tier are counted together."""
    tier, equals, rest = text.partition("=")
    if not equals or ":" in tier or "/" in tier:
        tier, rest = "lake", text
    kind, colon, location = rest.partition(":")
    if not colon or not location or kind not in FORMATS:
        raise AuditRefused(
            f"{text!r} is not a table; write FORMAT:LOCATION, for instance delta:/data/lake/orders, "
            f"where FORMAT is one of {', '.join(FORMATS)}"
        )
    if tier in (verdict.PRODUCERS, verdict.LOG, MIRROR):
        raise AuditRefused(f"a lake cannot be called {tier}: another tier is")
    return LakeTable(kind, location, tier)


@dataclass(frozen=True)
class AuditConfig:
    kafka: Mapping[str, str]
    """As KafkaProperties, whatever it was given as."""
    topics: tuple[str, ...]
    #: A directory or URL: the audit's own Delta tables.
    state: str
    lakes: tuple[LakeTable, ...] = ()
    #: Whose target is a tier too. Its source are the brokers at `kafka`.
    mirror: MirrorConfig | None = None
    window_ms: int = 60_000
    lateness_ms: int = 60_000
    with_producers: bool = True
    #: Windows before this are not judged, and older records are not read. For topics that are new to `state`.
    since_ms: int | None = None
    events_topic: str = event.DEFAULT_TOPIC
    verdicts_topic: str = verdict.DEFAULT_TOPIC
    clock_skew_ms: int = 1_000
    silent_after_ms: int = 30_000
    #: The most records that one pass reads of a partition; the next pass goes on from there.
    max_records_per_partition: int | None = None

    def __post_init__(self) -> None:
        if not self.topics:
            raise AuditRefused("no topic is named: there is nothing to audit")
        try:
            kafka = KafkaProperties(self.kafka)
            # Events, offsets and verdicts go through this project's own client, beside Spark's connector.
            kafka.security()
        except ConfigError as error:
            raise AuditRefused(f"kafka: {error}") from None
        if not kafka.bootstrap:
            raise AuditRefused('the brokers are missing: kafka needs "bootstrap.servers"')
        object.__setattr__(self, "kafka", kafka)
        if self.window_ms < 1 or self.lateness_ms < 0:
            raise AuditRefused(
                "a window lasts a millisecond at least, and nothing is late by less than nothing"
            )

    def cluster(self) -> Cluster:
        """This project's own client."""
        kafka = KafkaProperties(self.kafka)
        return Cluster(kafka.bootstrap, client_id="headrace-audit", security=kafka.security())
