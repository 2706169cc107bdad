"""Schemas and connectors of a file, on a real registry and a real worker's interface, both in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.client import state_topic
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.rest import Rest, RestRefused
from headrace.client.transactions import NewProducer
from headrace.desired.carrying_out import steps
from headrace.desired.document import Document
from headrace.desired.plan import Plan, plan
from headrace.desired.present import Present
from headrace.desired.reading import read_document
from headrace.desired.schema_files import with_schema_files
from headrace.desired.services import (
    NO_SERVICES,
    ServiceAdministration,
    Services,
    service_objections,
    with_services,
)
from headrace.desired.writing import write_document
from headrace.desired.yaml_tree import DocumentError
from headrace.registry.decision import Decision
from headrace.registry.http.app import application
from headrace.registry.service import Service
from headrace.registry.state import State
from headrace.registry.store import Store
from headrace.spark.connect.connectors.mirror import MirrorConnector
from tests.unit.connect.memory import Interface, TankSink, WellSource

RECORD = '{"type": "record", "name": "O", "fields": [{"name": "id", "type": "long"}]}'
OTHER_SPELLING = '{"name": "O", "type": "record", "fields": [{"type": {"type": "long"}, "name": "id"}]}'
GROWN = RECORD.replace("]}", ', {"name": "n", "type": "int", "default": 0}]}')
CLASHING = RECORD.replace('"long"', '"string"')


class InMemory(Rest):
    """Asks an application on the test's own loop; services are asked from a thread."""

    def __init__(self, ask: Callable[..., Any]) -> None:  # no URL, and no other setting of the real one
        self._ask, self._loop = ask, asyncio.get_running_loop()
        self.asked: list[str] = []

    def ask(self, method: str, path: str, document: object = None) -> Any:
        self.asked.append(f"{method} {path.partition('?')[0]}")
        answer = asyncio.run_coroutine_threadsafe(self._ask(method, path, document), self._loop).result(60)
        if answer.status >= 400:
            raise RestRefused(answer.document["message"], answer.status, answer.document["error_code"])
        return answer.document


async def asked(rest: InMemory, path: str) -> Any:
    return await asyncio.to_thread(rest.get, path)


class MemoryStore:
    def __init__(self) -> None:
        self.state = State()

    async def write(self, decide: Callable[[State], Decision[Any]]) -> Any:
        decision = decide(self.state)
        for entry in decision.records:
            self.state.replay(entry)
        return decision.answer


class Both:
    def __init__(self) -> None:
        self.connect = Interface((WellSource, TankSink, MirrorConnector))
        app = application(Service(cast(Store, MemoryStore())))
        registry = cast(Interface, SimpleNamespace(app=app))
        self.rest = InMemory(lambda *asked: Interface.ask(registry, *asked))
        self.worker = InMemory(self.connect.ask)
        self.services = Services(self.rest, self.worker)

    async def planned(self, text: str, *, prune: bool = False) -> tuple[Document, Plan]:
        document = read_document(text.encode())
        present = await with_services(Present(), self.services, document.owns, document)
        return document, plan(document, present, prune=prune)

    async def apply(self, text: str, *, prune: bool = False) -> Plan:
        _, found = await self.planned(text, prune=prune)
        assert not found.refused, found.refused
        assert await service_objections(self.services, found) == []
        administration = cast(Any, ServiceAdministration(self.services))
        for name in ("create_topics", "change_settings", "add_rules", "remove_rules", "delete_topics"):
            setattr(administration, name, None)
        for step in steps(found, administration, {}):
            await step.run()
        return found

    async def export(self, text: str) -> str:
        owns = read_document(text.encode()).owns
        return write_document(await with_services(Present(), self.services, owns), owns)


@pytest.fixture
async def both(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Both]:
    epochs = iter(range(100))

    async def fence(_cluster: Cluster, _transactional_id: str) -> NewProducer:
        return NewProducer(1, next(epochs))

    monkeypatch.setattr(state_topic, "fence", fence)
    made = Both()
    yield made
    await made.connect.close()


def schemas(more: str = "", **texts: str) -> str:
    lines = [f"  {name}: {{{more}schema: {json.dumps(text)}}}" for name, text in texts.items()]
    return "\n".join(["owns: {schemas: ['*']}", "schemas:", *lines])


async def test_a_schema_is_made_grows_and_stays(both: Both) -> None:
    made = await both.apply(schemas("compatibility: FULL, ", orders=RECORD))
    (change,) = made.changes
    assert [(each.what, each.new) for each in change.differences] == [
        ("schema", RECORD),
        ("compatibility", "FULL"),
    ]
    assert (await both.apply(schemas("compatibility: FULL, ", orders=RECORD))).changes_nothing
    grown = await both.apply(schemas("compatibility: FULL, ", orders=GROWN))
    assert [each.verb for each in grown.changes] == ["change"]
    gone = await both.apply(schemas(orders=GROWN))
    assert [tuple(each) for each in gone.changes[0].differences] == [("compatibility", "FULL", None)]
    exported = await both.export(schemas(orders=GROWN))
    assert (await both.apply(exported)).changes_nothing
    assert await asked(both.rest, "/subjects/orders/versions") == [1, 2]


async def test_another_spelling_of_the_latest_is_no_change(both: Both) -> None:
    await both.apply(schemas(orders=RECORD))
    assert (await both.apply(schemas(orders=OTHER_SPELLING))).changes_nothing


async def test_a_registry_does_not_go_back(both: Both) -> None:
    await both.apply(schemas(orders=RECORD))
    await both.apply(schemas(orders=GROWN))
    _, found = await both.planned(schemas(orders=OTHER_SPELLING))
    assert found.changes == ()
    assert "schema orders: this is its version 1 already" in found.refused[0]


async def test_what_is_not_compatible_is_said_by_the_plan(both: Both) -> None:
    await both.apply(schemas(orders=RECORD))
    _, found = await both.planned(schemas(orders=CLASHING))
    (objection,) = await service_objections(both.services, found)
    assert objection.startswith("schema orders: ")
    _, broken = await both.planned(schemas(fresh="{"))
    assert len(await service_objections(both.services, broken)) == 1
    _, lacking = await both.planned("owns: {schemas: ['*']}\nschemas:\n  orders: {}\n  fresh: {}")
    assert lacking.refused == ("schema fresh is not there yet, and the file has no `schema` for it",)


async def test_what_others_refer_to_comes_first_and_goes_last(both: Both) -> None:
    base = '{"type": "record", "name": "Z", "fields": []}'
    text = schemas(zebra=base) + (
        '\n  ant:\n    schema: \'{"type": "record", "name": "A", "fields": [{"name": "z", "type": "Z"}]}\''
        "\n    references: [{name: Z, subject: zebra}]"
    )
    await both.apply(text)
    assert (await both.apply(text)).changes_nothing, "without a version it is the latest"
    exported = await both.export(text)
    assert "version: 1" in exported
    assert (await both.apply(exported)).changes_nothing
    await both.apply("prune: true\nowns: {schemas: ['*']}\nschemas: {}", prune=True)
    assert both.rest.asked[-2:] == ["DELETE /subjects/ant", "DELETE /subjects/zebra"]
    assert await asked(both.rest, "/subjects") == []


async def test_nothing_is_deleted_by_one_word_or_without_being_owned(both: Both) -> None:
    await both.apply(schemas(orders=RECORD, returns=RECORD))
    kept = await both.apply(schemas(orders=RECORD), prune=True)
    assert kept.stays == ("schema returns",)
    only = "prune: true\nowns: {schemas: [orders]}\nschemas: {orders: {}}"
    assert (await both.apply(only, prune=True)).changes_nothing
    assert await asked(both.rest, "/subjects") == ["orders", "returns"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (RestRefused("no rights", 403, 40301), "no rights (HTTP 403)"),
        (RestRefused("HTTP 404 Not Found", 404), "HTTP 404 Not Found (HTTP 404)"),
        (RestRefused("the store is being read", 503, 50302), "the store is being read"),
        (RestRefused("a timeout", 500, 50001), "a timeout"),
        (RestRefused("no such version", 404, 40402), "no such version"),
        (None, "answers strangely"),
        ({"level": "FULL"}, "answers strangely"),
        (["FULL"], "answers strangely"),
    ],
)
async def test_a_level_that_is_not_told_stops_the_plan(both: Both, answer: Any, said: str) -> None:
    """It was taken for none once: then a file without a level was said to have nothing to change."""
    await both.apply(schemas("compatibility: FULL, ", orders=RECORD))
    real = both.rest.ask

    def ask(method: str, path: str, document: object = None) -> Any:
        if path != "/config/orders":
            return real(method, path, document)
        if isinstance(answer, RestRefused):
            raise answer
        return answer

    both.rest.ask = ask  # type: ignore[method-assign]  # one answer of it is another's
    with pytest.raises(ClientFailure, match="compatibility level of orders") as caught:
        await both.planned(schemas(orders=RECORD))
    assert said in str(caught.value)
    assert "nothing was changed" in caught.value.hint


@pytest.mark.parametrize("code", [40401, 40408])
async def test_a_registry_that_says_that_there_is_no_level_is_believed(both: Both, code: int) -> None:
    await both.apply(schemas(orders=RECORD))
    real = both.rest.ask

    def ask(method: str, path: str, document: object = None) -> Any:
        if path == "/config/orders":
            raise RestRefused("not there", 404, code)
        return real(method, path, document)

    both.rest.ask = ask  # type: ignore[method-assign]  # as registries of several ages say it
    assert (await both.planned(schemas(orders=RECORD)))[1].changes_nothing


CONNECTOR = "owns: {connectors: ['shop-*']}\nconnectors:\n  shop-in: {connector.class: WellSource, topic: %s}"


async def test_a_connector_is_made_changed_and_deleted(both: Both) -> None:
    await both.apply(CONNECTOR % "a")
    assert (await both.apply(CONNECTOR % "a")).changes_nothing
    changed = await both.apply(CONNECTOR % "b")
    assert [tuple(each) for each in changed.changes[0].differences] == [("topic", "a", "b")]
    exported = await both.export(CONNECTOR % "b")
    assert (await both.apply(exported)).changes_nothing
    assert "name:" not in exported
    gone = await both.apply("prune: true\nowns: {connectors: ['shop-*']}\nconnectors: {}", prune=True)
    assert [each.verb for each in gone.changes] == ["delete"]
    assert await asked(both.worker, "/connectors") == []


MIRROR = """
owns: {connectors: [dr]}
connectors:
  dr:
    connector.class: MirrorConnector
    source.bootstrap.servers: old-1:9093,old-2:9093
    source.command_config: /run/secrets/old.properties
    topics: [orders, returns]
    topics.pattern: shop[.].*
    mirror.settings: False
    mirror.max_records_per_batch: 100_000
    groups.patterns: .*
"""


async def test_a_mirror_is_a_connector_of_the_file(both: Both) -> None:
    await both.apply(MIRROR)
    assert (await both.apply(MIRROR)).changes_nothing
    there = await asked(both.worker, "/connectors/dr/config")
    assert there["topics"] == "orders,returns"
    exported = await both.export(MIRROR)
    assert (await both.apply(exported)).changes_nothing
    changed = await both.apply(MIRROR.replace("[orders, returns]", "[orders]"))
    assert [tuple(each) for each in changed.changes[0].differences] == [
        ("topics", "orders,returns", "orders")
    ]
    _, found = await both.planned(MIRROR.replace("groups.patterns", "group.patterns"))
    (objection,) = await service_objections(both.services, found)
    assert objection.endswith("group.patterns is no setting of a mirror; did you mean groups.patterns?")


async def test_what_a_worker_would_refuse_is_said_by_the_plan(both: Both) -> None:
    _, found = await both.planned(CONNECTOR.replace(", topic: %s", ""))
    (objection,) = await service_objections(both.services, found)
    assert objection.startswith("connector shop-in: ")
    assert "topic" in objection


async def test_secrets_stay_where_they_are(both: Both) -> None:
    secret = (CONNECTOR % "a").replace("topic: a", "topic: a, db.password: %s")
    reference = "'${file:/run/secrets/db:password}'"
    await both.apply(secret % reference)
    assert (await both.apply(secret % reference)).changes_nothing
    await both.connect.ask(
        "PUT",
        "/connectors/shop-in/config",
        {"connector.class": "WellSource", "topic": "a", "db.password": "hunter2"},
    )
    exported = await both.export(secret % reference)
    assert "hunter2" not in exported
    assert (await both.apply(exported)).changes_nothing, "what is hidden stays as it is"
    with pytest.raises(DocumentError, match="secrets never stand in this file"):
        read_document((secret % "hunter2").encode())
    _, fresh = await both.planned((secret % "'[hidden]'").replace("shop-in", "shop-out"))
    assert "db.password is [hidden], and the worker has no value of it" in fresh.refused[0]


async def test_who_does_not_say_where_they_are_is_told(both: Both) -> None:
    owns = read_document((CONNECTOR % "a").encode()).owns
    with pytest.raises(ClientFailure, match="connectors to ask for") as caught:
        await with_services(Present(), NO_SERVICES, owns)
    assert "--connect URL" in caught.value.hint
    with pytest.raises(ClientFailure, match="schemas to ask for"):
        Services(None, both.worker).require(read_document(schemas(a=RECORD).encode()).owns)


def test_a_schema_may_stand_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "orders.avsc").write_text(RECORD)
    text = "owns: {schemas: [orders]}\nschemas:\n  orders: {schema: {file: orders.avsc}}"
    read = with_schema_files(read_document(text.encode()), tmp_path).schemas["orders"]
    assert read.schema is not None
    assert (read.schema.text, read.file) == (RECORD, None)
    with pytest.raises(FileNotFoundError):
        with_schema_files(read_document(text.encode()), tmp_path / "elsewhere")
    (tmp_path / "orders.avsc").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="is not UTF-8"):
        with_schema_files(read_document(text.encode()), tmp_path)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("schemas: {s: {compatibility: SOMETIMES, schema: x}}", "is no compatibility level"),
        ("schemas: {s: {type: XML, schema: x}}", "is no type of schema"),
        ("schemas: {s: {type: JSON}}", "has no `schema`"),
        ("schemas: {s: {schema: {path: x}}}", "is not a field of schema"),
        ("schemas: {s: {schema: x, references: [{name: n}]}}", "a reference has name, subject and version"),
        ("schemas: {other: {}}", "is not among what the file owns"),
        ("connectors: {s: {topic: a}}", "has no connector.class"),
        ("connectors: {s: {connector.class: a, name: b}}", "take `name` out"),
        ("connectors: {s: {connector.class: {a: b}}}", "is a text"),
        ("connectors: {s: {connector.class: a, topics: [{a: b}]}}", "lacks its value"),
        ("connectors: {other: {connector.class: a}}", "is not among what the file owns"),
    ],
)
def test_mistakes_are_told(section: str, said: str) -> None:
    with pytest.raises(DocumentError, match=said):
        read_document(f"owns: {{schemas: [s], connectors: [s]}}\n{section}".encode())
