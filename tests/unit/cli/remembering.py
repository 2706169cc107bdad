"""A scripted broker that remembers what clients did, and tells it as brokers do."""

from __future__ import annotations

import json

from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.protocol.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from tests.unit.client.scripted_security import ScriptedSecurity

ALICE, BOB = "User:alice", "User:bob"
NOW_MS = 1_760_000_000_000


def rule(operation: Operation, principal: str = ALICE, name: str = "t") -> AclRule:
    return AclRule(ResourceType.TOPIC, name, PatternType.LITERAL, principal, "*", operation, Permission.ALLOW)


class Remembering(ScriptedSecurity):
    def __init__(self) -> None:
        super().__init__()
        self.configs |= {
            "headrace.access.mode": "shadow",
            "headrace.access.since.ms": str(NOW_MS),
            "headrace.access.overflow": "0",
        }

    def remember(
        self,
        kind: str,
        principal: str,
        operation: str,
        name: str,
        resource_type: str = "TOPIC",
        count: int = 1,
    ) -> None:
        row = [principal, operation, resource_type, name, "10.0.0.1", count, NOW_MS, NOW_MS + 1000]
        self.configs[f"headrace.access.{kind}.{len(self.configs)}"] = json.dumps(row)

    def name_beside_itself(self, broker_id: int, port: int) -> None:
        """From now on its metadata has another broker too."""

        def metadata(_request: MetadataRequest, _version: int) -> MetadataResponse:
            brokers = [
                MetadataResponseBroker(node_id=number, host="127.0.0.1", port=at)
                for number, at in ((0, self.port), (broker_id, port))
            ]
            return MetadataResponse(brokers=brokers, cluster_id="c", controller_id=0)

        self.handlers[MetadataRequest] = metadata
