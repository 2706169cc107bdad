"""Every API that this broker serves, in one list. What is not here is not answered."""

from __future__ import annotations

from typing import Final

from headrace.broker.api import Api
from headrace.broker.handlers import (
    allocate_producer_ids,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    api_versions,
    assign_replicas_to_dirs,
    broker_heartbeat,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    elect_leaders,
    envelope,
    fetch,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    unregister_broker,
)

APIS: Final[tuple[Api, ...]] = (
    produce.API,
    fetch.API,
    list_offsets.API,
    metadata.API,
    offset_commit.API,
    offset_fetch.API,
    find_coordinator.API,
    api_versions.API,
    create_topics.API,
    delete_topics.API,
    delete_records.API,
    init_producer_id.API,
    offset_for_leader_epoch.API,
    describe_configs.API,
    alter_configs.API,
    describe_log_dirs.API,
    create_partitions.API,
    elect_leaders.API,
    incremental_alter_configs.API,
    offset_delete.API,
    describe_cluster.API,
    describe_producers.API,
    describe_topic_partitions.API,
    alter_partition_reassignments.API,
    list_partition_reassignments.API,
    unregister_broker.API,
    # between brokers
    alter_partition.API,
    broker_heartbeat.API,
    allocate_producer_ids.API,
    assign_replicas_to_dirs.API,
    envelope.API,
)

BY_KEY: Final[dict[int, Api]] = {int(api.key): api for api in APIS}
