"""Who may use which API: one row for each. An API without a row is not served.

Produce and Fetch are served from their frames and ask for rights there; their rows let everybody in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.broker.authorization import (
    cluster,
    configs,
    consumer_groups,
    coordinators,
    delegation_tokens,
    groups,
    offset_commits,
    offset_fetches,
    security,
    topic_metadata,
    topic_records,
    topics,
    transaction_states,
    transactions,
)
from headrace.broker.authorization.guard import Guard
from headrace.broker.authorization.plain_guards import anybody, brokers_only
from headrace.protocol.api_keys import ApiKey

GUARDS: Final[Mapping[int, Guard]] = {
    ApiKey.PRODUCE: anybody,  # produce/appending.py
    ApiKey.FETCH: anybody,  # handlers/fetch.py
    ApiKey.API_VERSIONS: anybody,
    ApiKey.SASL_HANDSHAKE: anybody,
    ApiKey.SASL_AUTHENTICATE: anybody,
    ApiKey.LIST_OFFSETS: topic_records.list_offsets,
    ApiKey.METADATA: topic_metadata.metadata,
    ApiKey.OFFSET_COMMIT: offset_commits.offset_commit,
    ApiKey.OFFSET_FETCH: offset_fetches.offset_fetch,
    ApiKey.FIND_COORDINATOR: coordinators.find_coordinator,
    ApiKey.CREATE_TOPICS: topics.create_topics,
    ApiKey.DELETE_TOPICS: topics.delete_topics,
    ApiKey.DELETE_RECORDS: topic_records.delete_records,
    ApiKey.INIT_PRODUCER_ID: transactions.init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: transactions.add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: transactions.add_offsets_to_txn,
    ApiKey.END_TXN: transactions.end_txn,
    ApiKey.WRITE_TXN_MARKERS: transactions.write_txn_markers,
    ApiKey.DESCRIBE_TRANSACTIONS: transaction_states.describe_transactions,
    ApiKey.LIST_TRANSACTIONS: transaction_states.list_transactions,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: topic_records.offset_for_leader_epoch,
    ApiKey.TXN_OFFSET_COMMIT: offset_commits.txn_offset_commit,
    ApiKey.DESCRIBE_CONFIGS: configs.describe_configs,
    ApiKey.ALTER_CONFIGS: configs.alter_configs,
    ApiKey.LIST_CONFIG_RESOURCES: configs.list_config_resources,
    ApiKey.DESCRIBE_LOG_DIRS: cluster.describe_log_dirs,
    ApiKey.ALTER_REPLICA_LOG_DIRS: cluster.alter_replica_log_dirs,
    ApiKey.CREATE_PARTITIONS: topics.create_partitions,
    ApiKey.ELECT_LEADERS: cluster.elect_leaders,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.incremental_alter_configs,
    ApiKey.OFFSET_DELETE: offset_commits.offset_delete,
    ApiKey.DESCRIBE_CLUSTER: anybody,  # the handler shows no operations to those who may not describe it
    ApiKey.DESCRIBE_PRODUCERS: topic_records.describe_producers,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: topic_metadata.describe_topic_partitions,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: cluster.alter_partition_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: cluster.list_partition_reassignments,
    ApiKey.UNREGISTER_BROKER: cluster.unregister_broker,
    ApiKey.UPDATE_FEATURES: cluster.update_features,
    ApiKey.JOIN_GROUP: groups.join_group,
    ApiKey.SYNC_GROUP: groups.sync_group,
    ApiKey.HEARTBEAT: groups.heartbeat,
    ApiKey.LEAVE_GROUP: groups.leave_group,
    ApiKey.DESCRIBE_GROUPS: groups.describe_groups,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: groups.consumer_group_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: consumer_groups.consumer_group_describe,
    ApiKey.LIST_GROUPS: groups.list_groups,
    ApiKey.DELETE_GROUPS: groups.delete_groups,
    # security itself
    ApiKey.DESCRIBE_ACLS: security.describe_acls,
    ApiKey.CREATE_ACLS: security.create_acls,
    ApiKey.DELETE_ACLS: security.delete_acls,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: security.describe_user_scram_credentials,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: security.alter_user_scram_credentials,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: security.describe_client_quotas,
    ApiKey.ALTER_CLIENT_QUOTAS: security.alter_client_quotas,
    ApiKey.CREATE_DELEGATION_TOKEN: delegation_tokens.create_delegation_token,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: delegation_tokens.describe_delegation_token,
    ApiKey.RENEW_DELEGATION_TOKEN: anybody,  # the handler asks for the token's owner or renewer
    ApiKey.EXPIRE_DELEGATION_TOKEN: anybody,  # likewise
    # between brokers
    ApiKey.ALTER_PARTITION: brokers_only,
    ApiKey.BROKER_HEARTBEAT: brokers_only,
    ApiKey.ALLOCATE_PRODUCER_IDS: brokers_only,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: brokers_only,
    ApiKey.ENVELOPE: brokers_only,
}
