"""A scripted broker that keeps users, rules and quotas, as far as the commands for them ask."""

from __future__ import annotations

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages import alter_client_quotas_response as altered_quotas
from headrace.protocol.messages import describe_client_quotas_response as described_quotas
from headrace.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest
from headrace.protocol.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from headrace.protocol.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from headrace.protocol.messages.create_acls_request import CreateAclsRequest
from headrace.protocol.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from headrace.protocol.messages.delete_acls_request import DeleteAclsRequest
from headrace.protocol.messages.delete_acls_response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from headrace.protocol.messages.describe_acls_request import DescribeAclsRequest
from headrace.protocol.messages.describe_acls_response import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from headrace.protocol.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from headrace.protocol.messages.describe_configs_request import DescribeConfigsRequest
from headrace.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from headrace.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
)
from headrace.protocol.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.acl_filter import AclFilter
from headrace.security.scram_credential import ScramCredential, ScramMechanism
from tests.unit.client.scripted_broker import ScriptedBroker

MECHANISMS = {each.wire_type: each for each in ScramMechanism}
Entity = tuple[tuple[str, str | None], ...]


class ScriptedSecurity(ScriptedBroker):
    def __init__(self) -> None:
        super().__init__()
        self.handlers.update(
            {
                DescribeUserScramCredentialsRequest: self._users,
                AlterUserScramCredentialsRequest: self._alter_users,
                DescribeAclsRequest: self._acls,
                CreateAclsRequest: self._create,
                DeleteAclsRequest: self._delete,
                DescribeClientQuotasRequest: self._quotas,
                AlterClientQuotasRequest: self._alter_quotas,
                DescribeConfigsRequest: self._configs,
            }
        )
        self.users: dict[str, dict[ScramMechanism, ScramCredential]] = {}
        self.rules: set[AclRule] = set()
        self.quotas: dict[Entity, dict[str, float]] = {}
        self.configs = {"super.users": "User:CN=admin;User:root", "allow.everyone.if.no.acl.found": "false"}
        self.denied = 0
        """The error that every question about rules gets."""

    def _users(
        self, request: DescribeUserScramCredentialsRequest, _version: int
    ) -> DescribeUserScramCredentialsResponse:
        names = [user.name for user in request.users or ()] or list(self.users)
        return DescribeUserScramCredentialsResponse(
            results=[
                DescribeUserScramCredentialsResult(
                    user=name,
                    error_code=0 if name in self.users else ErrorCode.RESOURCE_NOT_FOUND,
                    credential_infos=[
                        CredentialInfo(mechanism=mechanism.wire_type, iterations=credential.iterations)
                        for mechanism, credential in self.users.get(name, {}).items()
                    ],
                )
                for name in names
            ]
        )

    def _alter_users(
        self, request: AlterUserScramCredentialsRequest, _version: int
    ) -> AlterUserScramCredentialsResponse:
        results = []
        for deletion in request.deletions:
            del self.users[deletion.name][MECHANISMS[deletion.mechanism]]
            if not self.users[deletion.name]:
                del self.users[deletion.name]
            results.append(AlterUserScramCredentialsResult(user=deletion.name))
        for each in request.upsertions:
            mechanism = MECHANISMS[each.mechanism]
            self.users.setdefault(each.name, {})[mechanism] = ScramCredential.derive(
                mechanism, each.salted_password, each.salt, each.iterations
            )
            results.append(AlterUserScramCredentialsResult(user=each.name))
        return AlterUserScramCredentialsResponse(results=results)

    def _acls(self, request: DescribeAclsRequest, _version: int) -> DescribeAclsResponse:
        if self.denied:
            return DescribeAclsResponse(error_code=self.denied, error_message=None)
        wanted = AclFilter(
            ResourceType(request.resource_type_filter),
            request.resource_name_filter,
            PatternType(request.pattern_type_filter),
            request.principal_filter,
            request.host_filter,
            Operation(request.operation),
            Permission(request.permission_type),
        )
        return DescribeAclsResponse(
            resources=[
                DescribeAclsResource(
                    resource_type=rule.resource_type,
                    resource_name=rule.name,
                    pattern_type=rule.pattern,
                    acls=[
                        AclDescription(
                            principal=rule.principal,
                            host=rule.host,
                            operation=rule.operation,
                            permission_type=rule.permission,
                        )
                    ],
                )
                for rule in sorted(self.rules)
                if wanted.matches(rule)
            ]
        )

    def _create(self, request: CreateAclsRequest, _version: int) -> CreateAclsResponse:
        for each in request.creations:
            self.rules.add(
                AclRule(
                    ResourceType(each.resource_type),
                    each.resource_name,
                    PatternType(each.resource_pattern_type),
                    each.principal,
                    each.host,
                    Operation(each.operation),
                    Permission(each.permission_type),
                )
            )
        return CreateAclsResponse(results=[AclCreationResult()] * len(request.creations))

    def _delete(self, request: DeleteAclsRequest, _version: int) -> DeleteAclsResponse:
        results = []
        for each in request.filters:
            wanted = AclFilter(
                ResourceType(each.resource_type_filter),
                each.resource_name_filter,
                PatternType(each.pattern_type_filter),
                each.principal_filter,
                each.host_filter,
                Operation(each.operation),
                Permission(each.permission_type),
            )
            gone = {rule for rule in self.rules if wanted.matches(rule)}
            self.rules -= gone
            results.append(DeleteAclsFilterResult(matching_acls=[DeleteAclsMatchingAcl()] * len(gone)))
        return DeleteAclsResponse(filter_results=results)

    def _quotas(
        self, request: DescribeClientQuotasRequest, _version: int
    ) -> described_quotas.DescribeClientQuotasResponse:
        asked = {
            (part.entity_type, part.match if part.match_type == 0 else None) for part in request.components
        }
        return described_quotas.DescribeClientQuotasResponse(
            entries=[
                described_quotas.EntryData(
                    entity=[
                        described_quotas.EntityData(entity_type=kind, entity_name=name)
                        for kind, name in entity
                    ],
                    values=[
                        described_quotas.ValueData(key=key, value=value) for key, value in values.items()
                    ],
                )
                for entity, values in self.quotas.items()
                if asked <= set(entity) and (not request.strict or asked == set(entity))
            ]
        )

    def _alter_quotas(
        self, request: AlterClientQuotasRequest, _version: int
    ) -> altered_quotas.AlterClientQuotasResponse:
        for entry in request.entries:
            entity = tuple((part.entity_type, part.entity_name) for part in entry.entity)
            values = self.quotas.setdefault(entity, {})
            for op in entry.ops:
                if op.remove:
                    del values[op.key]
                else:
                    values[op.key] = op.value
            if not values:
                del self.quotas[entity]
        return altered_quotas.AlterClientQuotasResponse(
            entries=[altered_quotas.EntryData()] * len(request.entries)
        )

    def _configs(self, request: DescribeConfigsRequest, _version: int) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    configs=[
                        DescribeConfigsResourceResult(name=name, value=value)
                        for name, value in self.configs.items()
                    ],
                )
                for each in request.resources
            ]
        )
