"""A broker with SASL_SSL and ACLs, and its administrator."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.broker_process import HeadraceProcess
from tests.certificates import Authority
from tests.ports import own_port

SECONDS = 60
PASSWORD = "canary-password-7c11"


class Guarded:
    """SSL with certificates for the administrator, SASL_SSL with SCRAM for everybody else."""

    def __init__(self, tmp_path: Path, **properties: str) -> None:
        self.authority = Authority(tmp_path)
        identity = self.authority.issue("broker")
        self.admin_identity = self.authority.issue("admin")
        self.broker = HeadraceProcess(tmp_path / "broker")
        self.port = own_port()
        self.broker.properties = {
            "listeners": f"SSL://127.0.0.1:{self.broker.port},SASL_SSL://127.0.0.1:{self.port}",
            "inter.broker.listener.name": "SSL",
            "ssl.keystore.location": str(identity),
            "ssl.truststore.location": str(self.authority.trust_store),
            "ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]*),.*$/$1/",
            "super.users": "User:admin;User:broker",
            **properties,
        }

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient(
            {
                "bootstrap.servers": f"127.0.0.1:{self.broker.port}",
                "security.protocol": "SSL",
                "ssl.ca.location": str(self.authority.trust_store),
                "ssl.certificate.location": str(self.admin_identity),
                "ssl.key.location": str(self.admin_identity),
            }
        )

    def client(self, user: str = "alice", mechanism: str = "SCRAM-SHA-512") -> dict[str, Any]:
        return {
            "bootstrap.servers": f"127.0.0.1:{self.port}",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self.authority.trust_store),
            "log_level": 0,
        }

    def add_user(self, name: str, mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_512) -> None:
        made = UserScramCredentialUpsertion(name, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
        for future in self.admin.alter_user_scram_credentials([made]).values():
            future.result(SECONDS)

    def allow(self, resource: ResourceType, name: str, operation: AclOperation) -> AclBinding:
        rule = AclBinding(
            resource,
            name,
            ResourcePatternType.LITERAL,
            "User:alice",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for future in self.admin.create_acls([rule]).values():
            future.result(SECONDS)
        return rule

    def forbid_again(self, rule: AclBinding) -> None:
        same = AclBindingFilter(
            rule.restype,
            rule.name,
            ResourcePatternType.LITERAL,
            rule.principal,
            rule.host,
            rule.operation,
            rule.permission_type,
        )
        for future in self.admin.delete_acls([same]).values():
            assert len(future.result(SECONDS)) == 1

    def produce(self, value: bytes, **client: str) -> KafkaError | None:
        """What the producer is told."""
        told: list[KafkaError | None] = []
        producer = Producer({**self.client(**client), "linger.ms": 0, "message.timeout.ms": 1000 * SECONDS})
        producer.produce("t", value, on_delivery=lambda error, _: told.append(error))
        producer.flush(SECONDS)
        (answer,) = told
        return answer
