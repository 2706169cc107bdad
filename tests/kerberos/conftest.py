"""A realm, its principals, and a broker with GSSAPI and ACLs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.broker_process import HeadraceProcess, Place
from tests.kerberos.realm import NAME, SECONDS, Realm, missing
from tests.ports import own_port

SERVICE = "kafka/localhost"
RULES = r"RULE:[1:$1](App\..*)s/App\.(.*)/$1/L,DEFAULT"
MODULE = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    why = missing()
    if why is None and find_spec("gssapi") is None:
        why = "no package gssapi: uv run --extra gssapi, with libkrb5-dev and gcc"
    if why is not None:
        here = Path(__file__).parent
        for item in items:
            if here in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with Realm(tmp_path_factory.mktemp("realm")) as made, pytest.MonkeyPatch.context() as patch:
        for name, value in made.environment.items():
            patch.setenv(name, value)
        java = f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} -Djava.security.krb5.conf={made.krb5_conf}"
        patch.setenv("JAVA_TOOL_OPTIONS", java.strip())
        yield made


class KerberosBroker:
    """PLAINTEXT for the broker itself, SASL_PLAINTEXT with GSSAPI for everybody else."""

    def __init__(self, directory: Path, realm: Realm, keytab: Path, **properties: str) -> None:
        self.realm = realm
        self.port = own_port()
        self.process = HeadraceProcess(directory, place=Place(environment=realm.environment))
        listener = "listener.name.sasl_plaintext"
        self.process.properties = {
            "listeners": (
                f"PLAINTEXT://127.0.0.1:{self.process.port},SASL_PLAINTEXT://localhost:{self.port}"
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "GSSAPI",
            f"{listener}.gssapi.sasl.jaas.config": (
                f'{MODULE} keyTab="{keytab}" principal="{SERVICE}@{NAME}";'
            ),
            "sasl.kerberos.principal.to.local.rules": RULES.replace("\\", "\\\\"),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:admin",
            **properties,
        }

    @property
    def bootstrap(self) -> str:
        return f"localhost:{self.port}"

    @property
    def log(self) -> str:
        return self.process.output.read_text()

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.process.bootstrap})

    def create_topic(self, name: str) -> None:
        for future in self._admin.create_topics([NewTopic(name, 1, 1)]).values():
            future.result(SECONDS)

    def allow(self, principal: str, topic: str, operation: AclOperation) -> None:
        rule = AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            principal,
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for future in self._admin.create_acls([rule]).values():
            future.result(SECONDS)


@pytest.fixture(scope="module")
def keytab(realm: Realm) -> Path:
    """The broker's."""
    return realm.add(SERVICE)


@pytest.fixture(scope="module")
def broker(realm: Realm, keytab: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KerberosBroker]:
    made = KerberosBroker(
        tmp_path_factory.mktemp("broker"), realm, keytab, **{"connections.max.reauth.ms": "3600000"}
    )
    with made.process:
        yield made
