"""Records to an HTTP server, at least once. Each request carries an id by which the server can tell a
repeated one: HTTP itself has no way to write once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final
from urllib.parse import quote

from headrace.connect.api import Config, ConnectorFailure, GiveUp, Rejected, Sink, SinkRecord
from headrace.connect.posting import Poster
from headrace.connect.settings import Importance, Kind, Setting, Settings

_ID: Final = "${id}"


class HttpSink(Sink):
    settings: ClassVar[Settings] = Settings(
        Setting(
            "http.url",
            doc="Where records go. ${topic}, ${key} and ${id} (TOPIC-PARTITION-OFFSET) are filled in.",
            importance=Importance.HIGH,
        ),
        Setting("http.method", default="POST", doc="POST, or PUT.", one_of=("POST", "PUT")),
        Setting("http.authorization", Kind.PASSWORD, "", "The header Authorization."),
        Setting("http.headers", Kind.LIST, (), "Further headers, as NAME: VALUE with commas between them."),
        Setting("http.timeout.ms", Kind.INT, 30_000, "How long to wait for an answer.", least=1),
        Setting("http.ca.location", default="", doc="A file with the authority's certificate, for https."),
    )

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._poster: Poster | None = None

    @classmethod
    def check(cls, config: Config) -> Mapping[str, str]:
        if not config.text("http.url").startswith(("http://", "https://")):
            return {"http.url": "it begins with http:// or https://"}
        if any(":" not in each for each in config["http.headers"]):
            return {"http.headers": "each is NAME: VALUE"}
        return {}

    def put(self, records: Iterable[SinkRecord]) -> list[Rejected]:
        rejected = []
        for record in records:
            reason = self._sent(record)
            if reason is not None:
                rejected.append(_rejected(record, reason, self.config))
        return rejected

    def stop(self) -> None:
        if self._poster is not None:
            self._poster.close()

    def _sent(self, record: SinkRecord) -> str | None:
        """Why the server will never take it, or None."""
        url = self.config.text("http.url")
        scheme, _, rest = url.partition("://")
        host, _, path = rest.partition("/")
        identifier = id_of(record)
        names = {"${topic}": record.topic, "${key}": as_text(record.key), _ID: identifier}
        for name, value in names.items():
            path = path.replace(name, quote(value, safe=""))
        headers = {"Idempotency-Key": identifier, "Content-Type": "application/json"}
        body = as_bytes(record.value)
        reply = self._posting(f"{scheme}://{host}").send(
            self.config.text("http.method"), f"/{path}", body, headers
        )
        if reply.is_for_later:
            raise ConnectorFailure(f"{host} is not ready: {reply.reason}")
        return None if reply.is_done else reply.reason

    def _posting(self, base: str) -> Poster:
        if self._poster is None:
            headers = dict(each.split(":", 1) for each in self.config["http.headers"])
            headers = {name.strip(): value.strip() for name, value in headers.items()}
            if self.config.get("http.authorization"):
                headers["Authorization"] = self.config["http.authorization"]
            seconds = self.config["http.timeout.ms"] / 1000
            self._poster = Poster(base, headers, seconds, self.config.text("http.ca.location"))
        return self._poster


def id_of(record: SinkRecord) -> str:
    return f"{record.topic}-{record.partition}-{record.offset}"


def as_bytes(value: Any) -> bytes:
    if value is None:
        return b"null"
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False).encode()


def as_text(value: Any) -> str:
    return "" if value is None else as_bytes(value).decode(errors="replace")


def _rejected(record: SinkRecord, reason: str, config: Config) -> Rejected:
    """Without tolerance the first one stops the connector, before its offset is passed."""
    if config["errors.tolerance"] != "all":
        raise GiveUp(
            f"{id_of(record)} was refused: {reason}. errors.tolerance=all makes dead letters of such records"
        )
    return Rejected(record.topic, record.partition, record.offset, reason)
