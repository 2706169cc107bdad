"""Who may see and change rules, credentials and quotas: rights on the cluster."""

from __future__ import annotations

from typing import Final

from headrace.broker.authorization.plain_guards import on_cluster
from headrace.broker.authorization.refusals import CLUSTER_DENIED, TEXTS
from headrace.broker.requests.api import Call
from headrace.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest
from headrace.protocol.messages.alter_client_quotas_response import (
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
)
from headrace.protocol.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from headrace.protocol.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from headrace.protocol.messages.create_acls_request import CreateAclsRequest
from headrace.protocol.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from headrace.protocol.messages.delete_acls_request import DeleteAclsRequest
from headrace.protocol.messages.delete_acls_response import DeleteAclsFilterResult, DeleteAclsResponse
from headrace.protocol.messages.describe_acls_request import DescribeAclsRequest
from headrace.protocol.messages.describe_acls_response import DescribeAclsResponse
from headrace.protocol.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from headrace.protocol.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from headrace.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
)
from headrace.protocol.messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from headrace.security.acl import Operation

_TEXT: Final = TEXTS[CLUSTER_DENIED]


def _tells_no_rules(_request: DescribeAclsRequest, _call: Call) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=CLUSTER_DENIED, error_message=_TEXT)


def _makes_no_rules(request: CreateAclsRequest, _call: Call) -> CreateAclsResponse:
    """The results stand in the order of the request, which is all that tells them apart."""
    return CreateAclsResponse(
        results=[AclCreationResult(error_code=CLUSTER_DENIED, error_message=_TEXT) for _ in request.creations]
    )


def _deletes_no_rules(request: DeleteAclsRequest, _call: Call) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=CLUSTER_DENIED, error_message=_TEXT) for _ in request.filters
        ]
    )


def _tells_no_credentials(
    request: DescribeUserScramCredentialsRequest, _call: Call
) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(
        error_code=CLUSTER_DENIED,
        error_message=_TEXT,
        results=[
            DescribeUserScramCredentialsResult(user=user.name, error_code=CLUSTER_DENIED, error_message=_TEXT)
            for user in request.users or ()
        ],
    )


def _alters_no_credentials(
    request: AlterUserScramCredentialsRequest, _call: Call
) -> AlterUserScramCredentialsResponse:
    users = {each.name for each in request.deletions} | {each.name for each in request.upsertions}
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=user, error_code=CLUSTER_DENIED, error_message=_TEXT)
            for user in sorted(users)
        ]
    )


def _tells_no_quotas(_request: DescribeClientQuotasRequest, _call: Call) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=CLUSTER_DENIED, error_message=_TEXT, entries=None)


def _alters_no_quotas(request: AlterClientQuotasRequest, _call: Call) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            EntryData(
                error_code=CLUSTER_DENIED,
                error_message=_TEXT,
                entity=[
                    EntityData(entity_type=each.entity_type, entity_name=each.entity_name)
                    for each in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )


describe_acls: Final = on_cluster(Operation.DESCRIBE, _tells_no_rules)
create_acls: Final = on_cluster(Operation.ALTER, _makes_no_rules, outlasts_shadow=True)
delete_acls: Final = on_cluster(Operation.ALTER, _deletes_no_rules, outlasts_shadow=True)
describe_user_scram_credentials: Final = on_cluster(Operation.DESCRIBE, _tells_no_credentials)
alter_user_scram_credentials: Final = on_cluster(
    Operation.ALTER, _alters_no_credentials, outlasts_shadow=True
)
describe_client_quotas: Final = on_cluster(Operation.DESCRIBE_CONFIGS, _tells_no_quotas)
alter_client_quotas: Final = on_cluster(Operation.ALTER_CONFIGS, _alters_no_quotas)
