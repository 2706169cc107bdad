"""A registry and workers of Connect that do not exist, some of it with names that nobody should have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from headrace.client.errors import ClientFailure
from headrace.client.rest import Rest, RestRefused
from headrace.console.services import connect
from headrace.console.services.connect import ConnectSeen
from headrace.console.services.following import Followed
from headrace.console.services.registry import RegistryLooks, RegistrySeen
from headrace.console.services.services import Services

HOSTILE: Final = "<script>document.title='taken'</script>\u202e/../x"
ORDER: Final = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}],
}
ORDER_2: Final = {
    **ORDER,
    "fields": [*ORDER["fields"], {"name": "paid", "type": ["null", "double"], "default": None}],
}
PROTO: Final = """syntax = "proto3";
package shop;
message Click { string page = 1; Way way = 2; }
message Way { int64 at = 1; }
"""


def schema(subject: str, version: int, number: int, text: Any, **more: Any) -> dict[str, Any]:
    written = text if isinstance(text, str) else json.dumps(text)
    return {"subject": subject, "version": version, "id": number, "schema": written, **more}


SCHEMAS: Final = (
    schema("orders-value", 1, 1, ORDER),
    schema("orders-value", 2, 2, ORDER_2),
    schema("orders-key", 1, 3, '"string"'),
    schema("clicks-value", 1, 4, PROTO, schemaType="PROTOBUF"),
    schema("payments-value", 1, 5, {"type": "object", "title": HOSTILE}, schemaType="JSON", deleted=True),
    schema(
        "refunds-value",
        1,
        6,
        {"type": "record", "name": "Refund", "fields": [{"name": "of", "type": "shop.Order"}]},
        references=[{"name": "shop.Order", "subject": "orders-value", "version": 1}],
    ),
    schema(HOSTILE, 1, 7, '"<b>not JSON', references=[{"name": "<i>", "subject": "gone", "version": 3}]),
)
TRACE: Final = f"java.lang.IllegalStateException: {HOSTILE}\n\tat a.B.c(B.java:1)\n\tpassword=swordfish"
CONNECTORS: Final[dict[str, Any]] = {
    "warehouse": {
        "info": {
            "type": "sink",
            "config": {
                "connector.class": "headrace.PostgresSink",
                "connection.url": "postgresql://shop:swordfish@db:5432/shop",
                "connection.password": "swordfish",
                "topics": "orders",
            },
            "tasks": [{"connector": "warehouse", "task": 0}, {"connector": "warehouse", "task": 1}],
        },
        "status": {
            "type": "sink",
            "connector": {"state": "RUNNING", "worker_id": "w1:8083"},
            "tasks": [{"id": 0, "state": "RUNNING", "worker_id": "w1:8083"}],
        },
    },
    HOSTILE: {
        "info": {"type": "source", "config": {"connector.class": "x.Files"}, "tasks": []},
        "status": {
            "connector": {"state": "RUNNING", "worker_id": "w2:8083"},
            "tasks": [{"id": 0, "state": "FAILED", "worker_id": "w2:8083", "trace": TRACE}],
        },
    },
    "new": {"info": {"type": "source", "config": {}, "tasks": []}},
}


class Scripted(Rest):
    """Answers from what it was given, and counts the questions."""

    who = "service"

    def __init__(self, answers: Mapping[str, Any]) -> None:
        super().__init__("http://127.0.0.1:1")
        self.answers = dict(answers)
        self.asked: list[str] = []
        self.is_down = False

    def get(self, path: str) -> Any:
        self.asked.append(path)
        if self.is_down:
            raise ClientFailure("no service answers at http://127.0.0.1:1: refused", "start one")
        name = path.partition("?")[0] if path.startswith("/schemas") else path
        if name not in self.answers:
            raise RestRefused("not found", 404)
        return self.answers[name]


def registry_rest() -> Scripted:
    return Scripted(
        {
            "/schemas": list(SCHEMAS),
            "/config": {"compatibilityLevel": "BACKWARD"},
            "/mode": {"mode": "READONLY"},
            "/config/orders-value": {"compatibilityLevel": "FULL_TRANSITIVE"},
        }
    )


def connect_rest(cluster_id: str = "") -> Scripted:
    def expanded(wish: str) -> Any:
        return {name: {wish: each[wish]} for name, each in CONNECTORS.items() if wish in each}

    return Scripted(
        {
            "/": {"version": "1", "kafka_cluster_id": cluster_id},
            "/connectors?expand=info": expanded("info"),
            "/connectors?expand=status": expanded("status"),
        }
    )


def services(cluster_id: str = "", *, are_down: bool = False) -> Services:
    """They have been looked at once."""
    looks = RegistryLooks()
    rests = registry_rest(), connect_rest(cluster_id)
    registry: Followed[RegistrySeen] = Followed(rests[0], looks.look)
    workers: Followed[ConnectSeen] = Followed(rests[1], connect.look)
    for rest in rests:
        rest.is_down = are_down
    registry.once()
    workers.once()
    return Services(registry, workers, looks)
