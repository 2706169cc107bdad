"""Questions about the cluster, and about security itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages import (
    alter_client_quotas_request,
    alter_partition_reassignments_request,
    alter_replica_log_dirs_request,
    alter_user_scram_credentials_request,
    create_acls_request,
    create_delegation_token_request,
    delete_acls_request,
    describe_acls_request,
    describe_client_quotas_request,
    describe_delegation_token_request,
    describe_log_dirs_request,
    describe_user_scram_credentials_request,
    elect_leaders_request,
    list_config_resources_request,
    list_partition_reassignments_request,
    unregister_broker_request,
    update_features_request,
)
from headrace.security.acl import ResourceType
from tests.unit.broker.authorization.questions import Codes, Question, U, of_cluster


def _at_the_top(_request: Any, response: Any) -> Codes:
    return of_cluster(response.error_code)


def _in_rows(field: str) -> Any:
    def codes(_request: Any, response: Any) -> Codes:
        return of_cluster(one_code(row.error_code for row in getattr(response, field)))

    return codes


def one_code(told: Iterable[int]) -> int:
    (code,) = set(told)  # every entry says the same
    return code


def _token(_version: int, *names: str) -> list[Any]:
    return [
        create_delegation_token_request.CreateDelegationTokenRequest(
            owner_principal_type="User", owner_principal_name=name
        )
        for name in names
    ]


CLUSTER = (
    Question(
        ApiKey.DESCRIBE_LOG_DIRS,
        "",
        lambda *_: [describe_log_dirs_request.DescribeLogDirsRequest(topics=None)],
        _at_the_top,
        versions=range(3, 6),
    ),
    Question(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        "",
        lambda *_: [list_partition_reassignments_request.ListPartitionReassignmentsRequest()],
        _at_the_top,
    ),
    Question(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        "",
        lambda _, *names: [
            alter_partition_reassignments_request.AlterPartitionReassignmentsRequest(
                topics=[
                    alter_partition_reassignments_request.ReassignableTopic(
                        name=name,
                        partitions=[alter_partition_reassignments_request.ReassignablePartition()],
                    )
                    for name in names
                ]
            )
        ],
        _at_the_top,
    ),
    Question(
        ApiKey.ELECT_LEADERS,
        "",
        lambda _, *names: [
            elect_leaders_request.ElectLeadersRequest(
                topic_partitions=[
                    elect_leaders_request.TopicPartitions(topic=name, partitions=[0]) for name in names
                ]
            )
        ],
        lambda _, made: of_cluster(made.replica_election_results[0].partition_result[0].error_code),
    ),
    Question(
        ApiKey.UNREGISTER_BROKER,
        "",
        lambda *_: [unregister_broker_request.UnregisterBrokerRequest(broker_id=77)],
        _at_the_top,
    ),
    Question(
        ApiKey.LIST_CONFIG_RESOURCES,
        "",
        lambda *_: [list_config_resources_request.ListConfigResourcesRequest()],
        _at_the_top,
    ),
    Question(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        "",
        lambda _, *names: [
            alter_replica_log_dirs_request.AlterReplicaLogDirsRequest(
                dirs=[
                    alter_replica_log_dirs_request.AlterReplicaLogDir(
                        path=f"/nowhere/{name}",
                        topics=[
                            alter_replica_log_dirs_request.AlterReplicaLogDirTopic(name=name, partitions=[0])
                        ],
                    )
                    for name in names
                ]
            )
        ],
        lambda _, made: of_cluster(
            one_code(row.error_code for topic in made.results for row in topic.partitions)
        ),
    ),
    Question(
        ApiKey.UPDATE_FEATURES,
        "",
        lambda *_: [update_features_request.UpdateFeaturesRequest()],
        _at_the_top,
    ),
)
SECURITY = (
    Question(ApiKey.DESCRIBE_ACLS, "", lambda *_: [describe_acls_request.DescribeAclsRequest()], _at_the_top),
    Question(
        ApiKey.CREATE_ACLS,
        "",
        lambda _, *names: [
            create_acls_request.CreateAclsRequest(
                creations=[create_acls_request.AclCreation(resource_name=name) for name in names]
            )
        ],
        _in_rows("results"),
    ),
    Question(
        ApiKey.DELETE_ACLS,
        "",
        lambda _, *names: [
            delete_acls_request.DeleteAclsRequest(
                filters=[delete_acls_request.DeleteAclsFilter(resource_name_filter=name) for name in names]
            )
        ],
        _in_rows("filter_results"),
    ),
    Question(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        "",
        lambda _, *names: [
            describe_user_scram_credentials_request.DescribeUserScramCredentialsRequest(
                users=[describe_user_scram_credentials_request.UserName(name=name) for name in names]
            )
        ],
        _at_the_top,
    ),
    Question(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        "",
        lambda _, *names: [
            alter_user_scram_credentials_request.AlterUserScramCredentialsRequest(
                deletions=[
                    alter_user_scram_credentials_request.ScramCredentialDeletion(name=name) for name in names
                ]
            )
        ],
        _in_rows("results"),
    ),
    Question(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        "",
        lambda *_: [describe_client_quotas_request.DescribeClientQuotasRequest()],
        _at_the_top,
    ),
    Question(
        ApiKey.ALTER_CLIENT_QUOTAS,
        "",
        lambda _, *names: [
            alter_client_quotas_request.AlterClientQuotasRequest(
                entries=[
                    alter_client_quotas_request.EntryData(
                        entity=[alter_client_quotas_request.EntityData(entity_type="user", entity_name=name)]
                    )
                    for name in names
                ]
            )
        ],
        _in_rows("entries"),
    ),
    Question(
        ApiKey.CREATE_DELEGATION_TOKEN,
        "for another owner",
        _token,
        lambda request, made: {(U, request.owner_principal_name): made.error_code},
    ),
    Question(
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        "of others",
        lambda *_: [describe_delegation_token_request.DescribeDelegationTokenRequest(owners=None)],
        lambda _, made: {
            (kind, token.principal_name): 0
            for token in made.tokens
            for kind in (U, ResourceType.DELEGATION_TOKEN)
        },
    ),
)
