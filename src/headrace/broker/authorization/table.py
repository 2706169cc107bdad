"""Who may use which API: one row for each. An API without a row is not served.

Produce and Fetch are served from their frames and ask for rights there; their rows let everybody in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.broker.authorization.guard import Guard
from headrace.broker.authorization.plain_guards import anybody, brokers_only
from headrace.protocol.api_keys import ApiKey

GUARDS: Final[Mapping[int, Guard]] = {
    ApiKey.PRODUCE: anybody,  # produce/appending.py
    ApiKey.FETCH: anybody,  # handlers/fetch.py
    ApiKey.API_VERSIONS: anybody,
    ApiKey.SASL_HANDSHAKE: anybody,
    ApiKey.SASL_AUTHENTICATE: anybody,
    ApiKey.LIST_OFFSETS: anybody,
    ApiKey.METADATA: anybody,
    ApiKey.OFFSET_COMMIT: anybody,
    ApiKey.OFFSET_FETCH: anybody,
    ApiKey.FIND_COORDINATOR: anybody,
    ApiKey.CREATE_TOPICS: anybody,
    ApiKey.DELETE_TOPICS: anybody,
    ApiKey.DELETE_RECORDS: anybody,
    ApiKey.INIT_PRODUCER_ID: anybody,
    ApiKey.ADD_PARTITIONS_TO_TXN: anybody,
    ApiKey.ADD_OFFSETS_TO_TXN: anybody,
    ApiKey.END_TXN: anybody,
    ApiKey.WRITE_TXN_MARKERS: anybody,
    ApiKey.DESCRIBE_TRANSACTIONS: anybody,
    ApiKey.LIST_TRANSACTIONS: anybody,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: anybody,
    ApiKey.TXN_OFFSET_COMMIT: anybody,
    ApiKey.DESCRIBE_CONFIGS: anybody,
    ApiKey.ALTER_CONFIGS: anybody,
    ApiKey.DESCRIBE_LOG_DIRS: anybody,
    ApiKey.CREATE_PARTITIONS: anybody,
    ApiKey.ELECT_LEADERS: anybody,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: anybody,
    ApiKey.OFFSET_DELETE: anybody,
    ApiKey.DESCRIBE_CLUSTER: anybody,
    ApiKey.DESCRIBE_PRODUCERS: anybody,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: anybody,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: anybody,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: anybody,
    ApiKey.UNREGISTER_BROKER: anybody,
    ApiKey.JOIN_GROUP: anybody,
    ApiKey.SYNC_GROUP: anybody,
    ApiKey.HEARTBEAT: anybody,
    ApiKey.LEAVE_GROUP: anybody,
    ApiKey.DESCRIBE_GROUPS: anybody,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: anybody,
    ApiKey.CONSUMER_GROUP_DESCRIBE: anybody,
    ApiKey.LIST_GROUPS: anybody,
    ApiKey.DELETE_GROUPS: anybody,
    ApiKey.DESCRIBE_ACLS: anybody,
    ApiKey.CREATE_ACLS: anybody,
    ApiKey.DELETE_ACLS: anybody,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: anybody,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: anybody,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: anybody,
    ApiKey.ALTER_CLIENT_QUOTAS: anybody,
    ApiKey.CREATE_DELEGATION_TOKEN: anybody,
    ApiKey.RENEW_DELEGATION_TOKEN: anybody,
    ApiKey.EXPIRE_DELEGATION_TOKEN: anybody,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: anybody,
    # between brokers
    ApiKey.ALTER_PARTITION: brokers_only,
    ApiKey.BROKER_HEARTBEAT: brokers_only,
    ApiKey.ALLOCATE_PRODUCER_IDS: brokers_only,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: brokers_only,
    ApiKey.ENVELOPE: brokers_only,
}
