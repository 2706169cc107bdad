"""Handlers that allow everything, for APIs whose own are not in the broker's list."""

from __future__ import annotations

from typing import Any

from headrace.broker.requests.api import Api
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message
from headrace.protocol.messages import (
    alter_client_quotas_request,
    alter_client_quotas_response,
    alter_user_scram_credentials_request,
    alter_user_scram_credentials_response,
    create_acls_request,
    create_acls_response,
    create_delegation_token_request,
    create_delegation_token_response,
    delete_acls_request,
    delete_acls_response,
    describe_acls_request,
    describe_acls_response,
    describe_client_quotas_request,
    describe_client_quotas_response,
    describe_delegation_token_request,
    describe_delegation_token_response,
    describe_user_scram_credentials_request,
    describe_user_scram_credentials_response,
)


def tokens(*owners: str) -> Message:
    return describe_delegation_token_response.DescribeDelegationTokenResponse(
        tokens=[
            describe_delegation_token_response.DescribedDelegationToken(
                principal_type="User", principal_name=owner, token_id=owner
            )
            for owner in owners
        ]
    )


def _api(key: ApiKey, highest: int, request: type[Message], answer: Any) -> Api:
    return Api(key, request.MIN_VERSION, highest, request, lambda _context, asked, _call: answer(asked))


APIS: dict[ApiKey, Api] = {
    api.key: api
    for api in (
        _api(
            ApiKey.DESCRIBE_ACLS,
            3,
            describe_acls_request.DescribeAclsRequest,
            lambda _: describe_acls_response.DescribeAclsResponse(),
        ),
        _api(
            ApiKey.CREATE_ACLS,
            3,
            create_acls_request.CreateAclsRequest,
            lambda asked: create_acls_response.CreateAclsResponse(
                results=[create_acls_response.AclCreationResult() for _ in asked.creations]
            ),
        ),
        _api(
            ApiKey.DELETE_ACLS,
            3,
            delete_acls_request.DeleteAclsRequest,
            lambda asked: delete_acls_response.DeleteAclsResponse(
                filter_results=[delete_acls_response.DeleteAclsFilterResult() for _ in asked.filters]
            ),
        ),
        _api(
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            0,
            describe_user_scram_credentials_request.DescribeUserScramCredentialsRequest,
            lambda _: describe_user_scram_credentials_response.DescribeUserScramCredentialsResponse(),
        ),
        _api(
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            0,
            alter_user_scram_credentials_request.AlterUserScramCredentialsRequest,
            lambda asked: alter_user_scram_credentials_response.AlterUserScramCredentialsResponse(
                results=[
                    alter_user_scram_credentials_response.AlterUserScramCredentialsResult(user=each.name)
                    for each in asked.deletions
                ]
            ),
        ),
        _api(
            ApiKey.DESCRIBE_CLIENT_QUOTAS,
            1,
            describe_client_quotas_request.DescribeClientQuotasRequest,
            lambda _: describe_client_quotas_response.DescribeClientQuotasResponse(),
        ),
        _api(
            ApiKey.ALTER_CLIENT_QUOTAS,
            1,
            alter_client_quotas_request.AlterClientQuotasRequest,
            lambda asked: alter_client_quotas_response.AlterClientQuotasResponse(
                entries=[alter_client_quotas_response.EntryData() for _ in asked.entries]
            ),
        ),
        _api(
            ApiKey.CREATE_DELEGATION_TOKEN,
            3,
            create_delegation_token_request.CreateDelegationTokenRequest,
            lambda _: create_delegation_token_response.CreateDelegationTokenResponse(),
        ),
        _api(
            ApiKey.DESCRIBE_DELEGATION_TOKEN,
            3,
            describe_delegation_token_request.DescribeDelegationTokenRequest,
            lambda _: tokens("open", "shut"),
        ),
    )
}
