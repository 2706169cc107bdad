"""What a schema registry and Connect have of what a file owns, whether they would do a plan, and doing it.

Kafka Connect and Confluent's registry speak the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from headrace.client.errors import ClientFailure
from headrace.client.rest import Rest, RestRefused, in_path
from headrace.desired.changes import ConnectorChange, SubjectChange
from headrace.desired.document import Document
from headrace.desired.ownership import Kind, Ownership
from headrace.desired.plan import Plan
from headrace.desired.present import Present, PresentSubject
from headrace.desired.schemas import Schema
from headrace.registry.content import Reference, SchemaType

T = TypeVar("T")
NOT_FOUND: Final = 404


class RegistryRest(Rest):
    who = "registry"
    hint = "start one with `headrace registry`, or say where it is with --registry"


class ConnectRest(Rest):
    who = "worker"
    hint = "start one with `headrace connect`, or say where one is with --connect"


@dataclass(frozen=True, slots=True)
class Services:
    """Those that the command line names."""

    registry: Rest | None = None
    connect: Rest | None = None

    def require(self, owns: Ownership) -> None:
        for kind, service, option in (
            (Kind.SCHEMAS, self.registry, "--registry"),
            (Kind.CONNECTORS, self.connect, "--connect"),
        ):
            if kind in owns and service is None:
                raise ClientFailure(
                    f"there are {kind.value} to ask for, and nobody says where",
                    f"say it with {option} URL, or leave {kind.value} out",
                )


NO_SERVICES: Final = Services()


async def with_services(
    present: Present, services: Services, owns: Ownership, document: Document | None = None
) -> Present:
    """The same with subjects and connectors. Nothing is asked about what is not owned."""
    services.require(owns)
    registry, connect = services.registry, services.connect
    if Kind.SCHEMAS in owns and registry is not None:
        present = replace(present, subjects=await _in_thread(lambda: _subjects(registry, owns, document)))
    if Kind.CONNECTORS in owns and connect is not None:
        present = replace(present, connectors=await _in_thread(lambda: _connectors(connect, owns)))
    return present


async def _in_thread(run: Callable[[], T]) -> T:
    return await asyncio.to_thread(run)


# --- asking ------------------------------------------------------------------------------------------


def _subjects(rest: Rest, owns: Ownership, document: Document | None) -> dict[str, PresentSubject]:
    found: dict[str, PresentSubject] = {}
    for told in rest.get("/schemas?latestOnly=true"):
        name = str(told["subject"])
        if owns.subject(name):
            there = PresentSubject(_schema(told), _level(rest, name))
            wanted = None if document is None else document.schemas.get(name)
            if wanted is not None and wanted.schema is not None:
                there = _compared(rest, name, there, int(told["version"]), wanted.schema)
            found[name] = there
    return found


def _level(rest: Rest, name: str) -> str | None:
    """Its own."""
    told = _or_none(lambda: rest.get(f"/config/{in_path(name)}"))
    return None if told is None else told.get("compatibilityLevel")


def _compared(rest: Rest, name: str, there: PresentSubject, latest: int, wanted: Schema) -> PresentSubject:
    """The registry knows which spellings of a schema mean the same; registering one of them does nothing."""
    if wanted.says_the_same_as(there.schema):
        return there
    known = _or_none(lambda: rest.ask("POST", f"/subjects/{in_path(name)}", wanted.request()))
    if known is None:
        return there
    version = int(known["version"])
    return there._replace(schema=wanted) if version == latest else there._replace(earlier=version)


def _schema(told: Mapping[str, Any]) -> Schema:
    return Schema(
        SchemaType(told.get("schemaType") or SchemaType.AVRO),
        str(told["schema"]),
        tuple(
            Reference(str(each["name"]), str(each["subject"]), int(each["version"]))
            for each in told.get("references") or ()
        ),
    )


def _connectors(rest: Rest, owns: Ownership) -> dict[str, dict[str, str]]:
    return {
        name: {key: str(value) for key, value in told["info"]["config"].items() if key != "name"}
        for name, told in rest.get("/connectors?expand=info").items()
        if owns.connector(name)
    }


def _or_none(ask: Callable[[], T]) -> T | None:
    """None of what is not there."""
    try:
        return ask()
    except RestRefused as error:
        if error.status != NOT_FOUND:
            raise
        return None


# --- would it be done ----------------------------------------------------------------------------------


async def service_objections(services: Services, plan: Plan) -> list[str]:
    """What registry and worker would refuse. Nothing is changed."""
    registry, connect = services.registry, services.connect
    return await _in_thread(lambda: [*_of_registry(registry, plan), *_of_connect(connect, plan)])


def _of_registry(rest: Rest | None, plan: Plan) -> list[str]:
    if rest is None:
        return []
    refused = []
    fresh = {each.name for each in plan.changes if isinstance(each, SubjectChange) and each.verb == "create"}
    for change in plan.changes:
        if not isinstance(change, SubjectChange) or change.schema is None or change.schema[1] is None:
            continue
        schema = change.schema[1]
        if change.level is not None or {each.subject for each in schema.references} & fresh:
            continue  # it will be judged by another level, or beside schemas that are not there yet
        path = f"/compatibility/subjects/{in_path(change.name)}/versions?verbose=true"
        try:
            told = rest.ask("POST", path, schema.request()) or {}
        except RestRefused as error:
            if error.status != NOT_FOUND:
                refused.append(f"schema {change.name}: {error}")
            continue
        if not told.get("is_compatible", True):
            why = "; ".join(map(str, told.get("messages") or ())) or "it is not compatible"
            refused.append(f"schema {change.name}: {why}")
    return refused


def _of_connect(rest: Rest | None, plan: Plan) -> list[str]:
    if rest is None:
        return []
    refused = []
    for change in plan.changes:
        if not isinstance(change, ConnectorChange) or change.verb == "delete":
            continue
        path = f"/connector-plugins/{in_path(change.settings['connector.class'])}/config/validate"
        try:
            told = rest.ask("PUT", path, {**change.settings, "name": change.name}) or {}
        except RestRefused as error:
            refused.append(f"connector {change.name}: {error}")
            continue
        refused += [
            f"connector {change.name}: {error}"
            for config in told.get("configs") or ()
            for error in config["value"].get("errors") or ()
        ]
    return refused


# --- doing it --------------------------------------------------------------------------------------------


class ServiceAdministration:
    """Of schemas and connectors. Each returns when it is so, also if it was so before."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def change_subject(self, change: SubjectChange) -> None:
        rest = self._services.registry
        assert rest is not None, "a plan has schemas only where a registry was asked"
        await _in_thread(lambda: _change_subject(rest, change))

    async def delete_subject(self, name: str) -> None:
        rest = self._services.registry
        assert rest is not None
        await _in_thread(lambda: _or_none(lambda: rest.ask("DELETE", f"/subjects/{in_path(name)}")))

    async def put_connector(self, change: ConnectorChange) -> None:
        rest = self._services.connect
        assert rest is not None, "a plan has connectors only where a worker was asked"
        path = f"/connectors/{in_path(change.name)}/config"
        await _in_thread(lambda: rest.ask("PUT", path, dict(change.settings)))

    async def delete_connector(self, name: str) -> None:
        rest = self._services.connect
        assert rest is not None
        await _in_thread(lambda: _or_none(lambda: rest.ask("DELETE", f"/connectors/{in_path(name)}")))


def _change_subject(rest: Rest, change: SubjectChange) -> None:
    """The level first: by it the schema is judged."""
    path = in_path(change.name)
    if change.level is not None:
        level = change.level[1]
        if level is None:
            _or_none(lambda: rest.ask("DELETE", f"/config/{path}"))
        else:
            rest.ask("PUT", f"/config/{path}", {"compatibility": level})
    if change.schema is not None and change.schema[1] is not None:
        rest.ask("POST", f"/subjects/{path}/versions", change.schema[1].request())
