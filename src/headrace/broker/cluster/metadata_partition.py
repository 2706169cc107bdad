"""The name and the id of the metadata log among the partitions of a broker."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from headrace.controller.topic_names import METADATA_TOPIC
from headrace.core.ids import TopicPartition

METADATA_PARTITION: Final = TopicPartition(METADATA_TOPIC, 0)
METADATA_TOPIC_ID: Final = UUID(int=1)
"""Kafka's own id of the metadata log."""
