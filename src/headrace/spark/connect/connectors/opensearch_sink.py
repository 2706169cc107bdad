"""Records as documents of OpenSearch or Elasticsearch, by their id: a record that comes twice is the same
document twice, so what the index holds is exact though requests can be repeated."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, ClassVar, NamedTuple

from headrace.connect.api import Config, ConnectorFailure, GiveUp, Rejected, Sink, SinkRecord
from headrace.connect.documents import one_line, parsed
from headrace.connect.posting import Poster, basic
from headrace.connect.settings import Importance, Kind, Setting, Settings
from headrace.spark.connect.connectors.http_sink import as_bytes, as_text, id_of

_CONFLICT = 409


class OpenSearchSink(Sink):
    settings: ClassVar[Settings] = Settings(
        Setting("connection.url", doc="https://HOST:9200.", importance=Importance.HIGH),
        Setting("connection.username", default="", doc="Who logs in; empty: nobody."),
        Setting("connection.password", Kind.PASSWORD, "", "With which password."),
        Setting("connection.ca.location", default="", doc="A file with the authority's certificate."),
        Setting("connection.timeout.ms", Kind.INT, 30_000, "How long to wait for an answer.", least=1),
        Setting("index.name.format", default="${topic}", doc="The index of a topic."),
        Setting(
            "document.id",
            default="key",
            doc="key: a document for each key, with the newest record; a record without value deletes it. "
            "offset: a document for each record, TOPIC-PARTITION-OFFSET.",
            one_of=("key", "offset"),
            importance=Importance.HIGH,
        ),
        Setting("batch.size", Kind.INT, 1000, "Records in a request.", least=1),
    )

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._poster: Poster | None = None

    @classmethod
    def check(cls, config: Config) -> Mapping[str, str]:
        if not config.text("connection.url").startswith(("http://", "https://")):
            return {"connection.url": "it begins with http:// or https://"}
        return {}

    def put(self, records: Iterable[SinkRecord]) -> list[Rejected]:
        rejected: list[Rejected] = []
        each = iter(records)
        while batch := list(islice(each, self.config["batch.size"])):
            actions = [found for record in batch if (found := self._action(record, rejected)) is not None]
            if actions:
                self._send(actions, rejected)
        return rejected

    def stop(self) -> None:
        if self._poster is not None:
            self._poster.close()

    def _action(self, record: SinkRecord, rejected: list[Rejected]) -> Action | None:
        index = self.config.text("index.name.format").replace("${topic}", record.topic).lower()
        by_key = self.config["document.id"] == "key"
        if by_key and record.key is None:
            self._reject(record, "it has no key, and document.id=key", rejected)
            return None
        if by_key and not _is_text(record.key):
            self._reject(record, "its key is no text, and document.id=key", rejected)
            return None
        meta: dict[str, Any] = {"_index": index, "_id": as_text(record.key) if by_key else id_of(record)}
        if by_key:
            # A batch that is repeated later than its successor must not bring back what was before.
            meta |= {"version": record.offset + 1, "version_type": "external"}
        if record.value is None:
            return Action(record, {"delete": meta}, None) if by_key else None
        source = as_bytes(record.value)
        try:
            is_object = isinstance(parsed(source), dict)
        except ValueError:
            is_object = False
        if not is_object:
            self._reject(record, "its value is no JSON object", rejected)
            return None
        return Action(record, {"index": meta}, one_line(source))

    def _send(self, actions: list[Action], rejected: list[Rejected]) -> None:
        lines: list[bytes] = []
        for action in actions:
            lines.append(json.dumps(action.meta).encode())
            if action.source is not None:
                lines.append(action.source)
        headers = {"Content-Type": "application/x-ndjson"}
        reply = self._posting().send("POST", "/_bulk", b"\n".join([*lines, b""]), headers)
        if not reply.is_done:
            failure = ConnectorFailure if reply.is_for_later else GiveUp
            raise failure(f"{self.config.text('connection.url')} refused a batch: {reply.reason}")
        for action, item in zip(actions, json.loads(reply.body)["items"], strict=True):
            (result,) = item.values()
            self._judge(action, result, rejected)

    def _judge(self, action: Action, result: Mapping[str, Any], rejected: list[Rejected]) -> None:
        status = result["status"]
        if status < 300 or status == _CONFLICT or (status == 404 and "delete" in action.meta):
            return
        reason = f"{status}: {json.dumps(result.get('error'))}"
        if status == 429 or status >= 500:
            raise ConnectorFailure(f"{self.config.text('connection.url')} is busy: {reason}")
        self._reject(action.record, reason, rejected)

    def _reject(self, record: SinkRecord, reason: str, rejected: list[Rejected]) -> None:
        if self.config["errors.tolerance"] != "all":
            raise GiveUp(
                f"{id_of(record)} was refused: {reason}. errors.tolerance=all makes dead letters of such "
                "records"
            )
        rejected.append(Rejected(record.topic, record.partition, record.offset, reason))

    def _posting(self) -> Poster:
        if self._poster is None:
            config = self.config
            headers = {}
            if config.get("connection.username"):
                user, password = config["connection.username"], config["connection.password"]
                headers["Authorization"] = basic(user, password)
            seconds = config["connection.timeout.ms"] / 1000
            self._poster = Poster(
                config.text("connection.url"), headers, seconds, config.text("connection.ca.location")
            )
        return self._poster


class Action(NamedTuple):
    record: SinkRecord
    meta: Mapping[str, Any]
    source: bytes | None


def _is_text(key: Any) -> bool:
    """With what is no text replaced, two keys would be one document."""
    try:
        as_bytes(key).decode()
    except UnicodeDecodeError:
        return False
    return True
