"""Clients in other languages: programs of ours around their libraries, driven by lines of JSON."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import threading
from collections.abc import Sequence
from typing import Any, ClassVar

from tests.apache_kafka import CACHE, java_command
from tests.compatibility.clients.access import Access
from tests.compatibility.clients.client import Client, ClientFailure, Consumed, NewRecord

_REPLY_SECONDS = 60


def base64_text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _data(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


class JsonLinesClient(Client):
    """Speaks to one such program, which lives as long as this object."""

    def __init__(self, bootstrap: str, access: Access | None = None) -> None:
        self._process = subprocess.Popen(
            [*self.command(), bootstrap],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **({} if access is None else access.for_programs())},
        )

    @classmethod
    def command(cls) -> list[str]:
        raise NotImplementedError

    def operate(self, operation: str, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watchdog = threading.Timer(_REPLY_SECONDS, self._process.kill)
        watchdog.start()
        try:
            self._process.stdin.write(json.dumps({"op": operation, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        finally:
            watchdog.cancel()
        if not line:
            raise RuntimeError(f"{self.name} gave no answer to {operation}")
        answer: dict[str, Any] = json.loads(line)
        if not answer.pop("ok"):
            raise ClientFailure(answer["code"], answer["message"])
        return answer

    def produce(
        self,
        topic: str,
        records: Sequence[NewRecord],
        *,
        partition: int = 0,
        compression: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        offsets: list[int] = self.operate(
            "produce",
            topic=topic,
            partition=partition,
            compression=compression,
            acks=acks,
            idempotent=idempotent,
            records=[
                {
                    "key": base64_text(record.key),
                    "value": base64_text(record.value),
                    "headers": [[name, base64_text(value)] for name, value in record.headers],
                    "timestamp": record.timestamp,
                }
                for record in records
            ],
        )["offsets"]
        return offsets

    def consume(
        self,
        topic: str,
        count: int,
        *,
        partition: int = 0,
        at: str = "start",
        value: int = 0,
        timeout_ms: int = 10_000,
    ) -> list[Consumed]:
        answer = self.operate(
            "consume",
            topic=topic,
            partition=partition,
            at=at,
            value=value,
            count=count,
            timeout_ms=timeout_ms,
        )
        return [
            Consumed(
                record["offset"],
                record["timestamp"],
                _data(record["key"]),
                _data(record["value"]),
                tuple((name, _data(content)) for name, content in record["headers"]),
            )
            for record in answer["records"]
        ]

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


_ADMINISTRATION = frozenset(
    {
        "create",
        "delete",
        "describe",
        "add_partitions",
        "describe_configs",
        "alter_config",
        "delete_records",
        "list_offsets",
        "describe_cluster",
        "describe_log_dirs",
    }
)


class JavaClient(JsonLinesClient):
    name: ClassVar[str] = "kafka-clients-4.4.0"
    operations: ClassVar[frozenset[str]] = _ADMINISTRATION | {"describe_producers", "elect_leaders"}

    @classmethod
    def command(cls) -> list[str]:
        return [*java_command(CACHE / "java-program", CACHE / "java-client", heap_mb=512), "ClientProgram"]


class OlderJavaClient(JsonLinesClient):
    """The same program with the clients of Kafka 3.9.1: they know the classic protocol of groups alone."""

    name: ClassVar[str] = "kafka-clients-3.9.1"

    @classmethod
    def command(cls) -> list[str]:
        return [*java_command(CACHE / "java-program", CACHE / "kafka-3.9.1", heap_mb=512), "ClientProgram"]


class FranzClient(JsonLinesClient):
    name: ClassVar[str] = "franz-go"
    operations: ClassVar[frozenset[str]] = _ADMINISTRATION | {"describe_producers"}

    @classmethod
    def command(cls) -> list[str]:
        return [str(CACHE / "go" / "franz")]


class SaramaClient(JsonLinesClient):
    name: ClassVar[str] = "sarama"
    operations: ClassVar[frozenset[str]] = _ADMINISTRATION

    @classmethod
    def command(cls) -> list[str]:
        return [str(CACHE / "go" / "sarama")]
