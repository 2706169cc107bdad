"""Apache Kafka and Headrace with an authorizer, one SASL listener for clients, and four users."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.apache_kafka import ApacheKafka
from tests.broker_process import BROKER_ID, BrokerProcess, HeadraceProcess
from tests.ports import own_port

ADMIN: Final = "admin"
PEOPLE: Final = ("alice", "bob", "mallory")
_CLIENTS: Final = "SASL_PLAINTEXT"
_USERS: Final = " ".join(f'user_{name}="{name}-secret"' for name in (ADMIN, *PEOPLE))
_LONG_MS: Final = "1800000"
"""No member and no transaction of the script ends by its timeout."""
PROPERTIES: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Brokers come without a name, on a listener of their own.
    "super.users": f"User:{ADMIN};User:ANONYMOUS",
    "inter.broker.listener.name": "PLAINTEXT",
    f"listener.name.{_CLIENTS.lower()}.sasl.enabled.mechanisms": "PLAIN",
    f"listener.name.{_CLIENTS.lower()}.plain.sasl.jaas.config": (
        f"org.apache.kafka.common.security.plain.PlainLoginModule required {_USERS};"
    ),
    "delegation.token.secret.key": "of-this-test",
    "auto.create.topics.enable": "true",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.session.timeout.ms": _LONG_MS,
    "group.consumer.max.session.timeout.ms": _LONG_MS,
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.max.timeout.ms": _LONG_MS,
}


def guarded_kafka(directory: Path) -> BrokerProcess:
    broker, inner, controller = ApacheKafka(directory, PROPERTIES), own_port(), own_port()
    ours = f"{_CLIENTS}://127.0.0.1:{broker.port},PLAINTEXT://127.0.0.1:{inner}"
    broker.properties |= {
        "listeners": f"{ours},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": ours,
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{_CLIENTS}:{_CLIENTS}",
        "controller.quorum.voters": f"{BROKER_ID}@127.0.0.1:{controller}",
    }
    return broker


def guarded_headrace(directory: Path) -> BrokerProcess:
    broker = HeadraceProcess(directory, PROPERTIES)
    broker.properties["listeners"] = (
        f"{_CLIENTS}://127.0.0.1:{broker.port},PLAINTEXT://127.0.0.1:{own_port()}"
    )
    return broker
