"""The clients under test, by name."""

from __future__ import annotations

from tests.compatibility.clients.access import Access
from tests.compatibility.clients.aio import AioKafkaClient
from tests.compatibility.clients.client import Client
from tests.compatibility.clients.confluent import ConfluentClient
from tests.compatibility.clients.json_lines import FranzClient, JavaClient, SaramaClient
from tests.compatibility.clients.kafka_python import KafkaPythonClient
from tests.compatibility.clients.kcat import KcatClient

CLIENTS: dict[str, type[Client]] = {
    kind.name: kind
    for kind in (
        ConfluentClient,
        KcatClient,
        KafkaPythonClient,
        AioKafkaClient,
        JavaClient,
        FranzClient,
        SaramaClient,
    )
}


def connect(name: str, bootstrap: str, access: Access | None = None) -> Client:
    return CLIENTS[name](bootstrap, access)  # type: ignore[call-arg]  # every adapter takes these
