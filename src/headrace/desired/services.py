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
_NO_SUBJECT: Final = 40401
_NO_VERSION: Final = 40402
_NO_SCHEMA: Final = 40403
_GONE_SOFTLY: Final = 40404
_NO_LEVEL: Final = 40408
_NO_CONNECTOR: Final = 404
_UNKNOWN_SCHEMA: Final = (_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA)
"""Codes by which a service says itself that something is not there. A 404 without one is somebody else's."""


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
    """Its own. What is not told is not taken for none: a plan would leave a level that is to go."""
    try:
        told = rest.get(f"/config/{in_path(name)}")
    except RestRefused as error:
        if error.code in (_NO_LEVEL, _NO_SUBJECT):
            return None
        raise ClientFailure(
            f"the registry does not tell the compatibility level of {name}: {error} (HTTP {error.status})",
            "nothing was changed; whoever applies a file may read the levels of all subjects that it owns",
        ) from None
    level = told.get("compatibilityLevel") if isinstance(told, dict) else None
    if not isinstance(level, str):
        raise ClientFailure(
            f"the registry answers strangely when it is asked for the compatibility level of {name}",
            "nothing was changed; see whether a schema registry is at the address that --registry says",
        )
    return level


def _compared(rest: Rest, name: str, there: PresentSubject, latest: int, wanted: Schema) -> PresentSubject:
    """The registry knows which spellings of a schema mean the same; registering one of them does nothing."""
    if wanted.says_the_same_as(there.schema):
        return there
    known = _or_none(
        lambda: rest.ask("POST", f"/subjects/{in_path(name)}", wanted.request()), *_UNKNOWN_SCHEMA
    )
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


def _or_none(ask: Callable[[], T], *codes: int) -> T | None:
    """None of what is not there, by one of these codes."""
    try:
        return ask()
    except RestRefused as error:
        if error.code not in codes:
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
            if error.code not in _UNKNOWN_SCHEMA:
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
        await _in_thread(
            lambda: _or_none(
                lambda: rest.ask("DELETE", f"/subjects/{in_path(name)}"), _NO_SUBJECT, _GONE_SOFTLY
            )
        )

    async def put_connector(self, change: ConnectorChange) -> None:
        rest = self._services.connect
        assert rest is not None, "a plan has connectors only where a worker was asked"
        path = f"/connectors/{in_path(change.name)}/config"
        await _in_thread(lambda: rest.ask("PUT", path, dict(change.settings)))

    async def delete_connector(self, name: str) -> None:
        rest = self._services.connect
        assert rest is not None
        await _in_thread(
            lambda: _or_none(lambda: rest.ask("DELETE", f"/connectors/{in_path(name)}"), _NO_CONNECTOR)
        )


def _change_subject(rest: Rest, change: SubjectChange) -> None:
    """The level first: by it the schema is judged."""
    path = in_path(change.name)
    if change.level is not None:
        level = change.level[1]
        if level is None:
            _or_none(lambda: rest.ask("DELETE", f"/config/{path}"), _NO_LEVEL, _NO_SUBJECT)
        else:
            rest.ask("PUT", f"/config/{path}", {"compatibility": level})
    if change.schema is not None and change.schema[1] is not None:
        rest.ask("POST", f"/subjects/{path}/versions", change.schema[1].request())
