"""What the routes call: connectors are made, changed, started and stopped. Any worker does it.

A write is decided on the newest state under the right to write (`client/state_topic.py`), so a request need
not be sent on to a leader, and a worker that cannot reach another one can still answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.connect import definitions, operations
from headrace.connect.answers import Answers
from headrace.connect.api import Described
from headrace.connect.cluster_config import ClusterConfig
from headrace.connect.config_records import Entry, LoggerLevel, Target
from headrace.connect.errors import ConnectError, bad_request, conflict, not_found
from headrace.connect.plugins import Plugins, UnknownPlugin, all_settings, version_of
from headrace.connect.redaction import with_hidden_kept
from headrace.connect.stores import ConfigStore, StatusStore

Properties = dict[str, str]


class Service:
    def __init__(self, configs: ConfigStore, statuses: StatusStore, plugins: Plugins) -> None:
        self.answers = Answers(configs.state, statuses.state, plugins)
        self._configs = configs
        self._statuses = statuses
        self._plugins = plugins

    # --- connectors -----------------------------------------------------------------------------------

    async def create(self, name: str, given: Mapping[str, Any], target: Target) -> dict[str, Any]:
        properties = _texts(given)
        if name:
            properties = _named(name, properties)
        else:
            properties.setdefault("name", "")
        described = self._checked(properties)

        def decide(state: ClusterConfig) -> tuple[list[Entry], None]:
            return operations.create(state, name, properties, target), None

        if self._configs.state.find(name) is not None:
            raise conflict(f"Connector {name} already exists")
        await self._configs.write(decide)
        return self._info(name, described, 0)

    async def put(self, name: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """The answer, and whether the connector is new."""
        properties = _named(name, _texts(given))
        found = self._find(properties)
        settings = None if found is None else all_settings(found.connector)

        def decide(state: ClusterConfig) -> tuple[list[Entry], operations.Put]:
            before = state.find(name)
            kept = with_hidden_kept(properties, None if before is None else before.properties, settings)
            self._checked(kept)
            return operations.put(state, name, kept)

        self._checked(properties)
        done = await self._configs.write(decide)
        assert found is not None, "a connector without a class is refused"
        return self._info(name, found, done.tasks), done.created

    async def patch(self, name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """A value of null takes a setting away."""

        def decide(state: ClusterConfig) -> tuple[list[Entry], tuple[Described, operations.Put]]:
            before = state.find(name)
            if before is None:
                raise not_found(f"Connector {name} not found")
            merged = {**before.properties}
            for key, value in changes.items():
                if value is None:
                    merged.pop(key, None)
                else:
                    merged[key] = str(value)
            merged = _named(name, merged)
            found = self._checked(merged)
            kept = with_hidden_kept(merged, before.properties, all_settings(found.connector))
            entries, done = operations.put(state, name, kept)
            return entries, (found, done)

        decide(self._configs.state)  # most mistakes need no turn to write
        described, done = await self._configs.write(decide)
        return self._info(name, described, done.tasks)

    async def delete(self, name: str) -> None:
        await self._write(lambda state: operations.delete(state, name))

    async def set_target(self, name: str, target: Target) -> None:
        await self._write(lambda state: operations.set_target(state, name, target))

    async def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> dict[str, Any]:
        """The status with what is about to be started again."""
        await self._write(
            lambda state: operations.restart(
                state, name, include_tasks=include_tasks, only_failed=only_failed
            )
        )
        parts = frozenset(("connector", "tasks") if include_tasks else ("connector",))
        if only_failed:
            parts &= self.answers.failed_parts(name)
        return self.answers.status(name, parts)

    async def restart_task(self, name: str, task: int) -> None:
        await self._write(lambda state: operations.restart_task(state, name, task))

    async def reset_topics(self, name: str, now_ms: int) -> None:
        found = self._statuses.state.forgotten_topics(name)
        await self._statuses.tell(found, now_ms)
        if found:
            await self._statuses.up_to_date()

    async def set_level_everywhere(self, logger: str, level: str) -> None:
        await self._write(lambda _: [LoggerLevel(logger, level)])

    async def _write(self, decide: operations.Deciding) -> None:
        # What is refused now is refused, unless the state is behind: then it is asked once more.
        await self._configs.write(lambda state: (decide(state), None))

    # --- plugins --------------------------------------------------------------------------------------

    def plugins(self) -> list[dict[str, Any]]:
        return [
            {"class": each.name, "type": each.kind, "version": version_of(each.connector)}
            for each in self._plugins
        ]

    def plugin_config(self, name: str) -> list[dict[str, Any]]:
        try:
            return definitions.definitions(self._plugins.find(name).connector)
        except UnknownPlugin:
            raise not_found(f"Unknown plugin {name}.") from None

    def validate(self, plugin: str, given: Mapping[str, Any]) -> dict[str, Any]:
        properties = _texts(given)
        named = properties.get("connector.class", "")
        if not named:
            raise ConnectError(500, f"Connector config {_java(properties)} contains no connector type")
        found = self._must_find(properties)
        if found is not self._must_find({"connector.class": plugin}):
            raise bad_request(f"Included connector type {named} does not match request type {plugin}")
        return definitions.validated(found, properties)

    def _find(self, properties: Mapping[str, str]) -> Described | None:
        try:
            return self._plugins.find(properties.get("connector.class", ""))
        except UnknownPlugin:
            return None

    def _must_find(self, properties: Mapping[str, str]) -> Described:
        named = properties.get("connector.class", "")
        if not named:
            raise bad_request(f"Connector config {_java(properties)} contains no connector type")
        try:
            return self._plugins.find(named)
        except UnknownPlugin as error:
            raise bad_request(str(error)) from None

    def _checked(self, properties: Mapping[str, str]) -> Described:
        found = self._must_find(properties)
        definitions.must_be_valid(found.connector, properties)
        if (missing := found.connector.missing()) is not None:
            raise bad_request(missing)
        return found

    def _info(self, name: str, described: Described, tasks: int) -> dict[str, Any]:
        found = self.answers.info(name)
        return {
            **found,
            "tasks": [{"connector": name, "task": index} for index in range(tasks)],
            "type": described.kind,
        }


def _texts(given: Mapping[str, Any]) -> Properties:
    """Values are texts; numbers and booleans are taken for what they look like."""
    found: Properties = {}
    for name, value in given.items():
        if isinstance(value, bool):
            found[name] = str(value).lower()
        elif value is not None:
            if not isinstance(value, (str, int, float)):
                raise bad_request(f"the value of {name} is a text, not {type(value).__name__}")
            found[name] = str(value)
    return found


def _named(name: str, properties: Properties) -> Properties:
    said = properties.get("name", name)
    if said != name:
        raise bad_request(
            f"Connector name configuration ({said}) doesn't match connector name in the URL ({name})"
        )
    return {**properties, "name": name}


def _java(properties: Mapping[str, str]) -> str:
    """As Java prints a map, without what it must not print."""
    return "{" + ", ".join(f"{key}={value}" for key, value in properties.items() if key == "name") + "}"
