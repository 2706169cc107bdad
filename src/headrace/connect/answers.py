"""The answers to questions about connectors, from what the topics say. Fields and their order are Kafka
Connect's, and nothing here shows a secret."""

from __future__ import annotations

from typing import Any

from headrace.connect import errors
from headrace.connect.cluster_config import ClusterConfig, Wanted
from headrace.connect.plugins import Plugins, UnknownPlugin, all_settings
from headrace.connect.redaction import shown
from headrace.connect.settings import Settings
from headrace.connect.statuses import State, Statuses


class Answers:
    def __init__(self, configs: ClusterConfig, statuses: Statuses, plugins: Plugins) -> None:
        self._configs = configs
        self._statuses = statuses
        self._plugins = plugins

    def names(self) -> list[str]:
        return self._configs.names()

    def expanded(self, wishes: list[str]) -> dict[str, Any]:
        """Of `GET /connectors?expand=info&expand=status`. A connector without a status yet has none."""
        found: dict[str, Any] = {}
        for name in self._configs.names():
            entry: dict[str, Any] = {}
            if "info" in wishes:
                entry["info"] = self.info(name)
            if "status" in wishes:
                try:
                    entry["status"] = self.status(name)
                except errors.ConnectError:
                    continue
            found[name] = entry
        return found

    def info(self, name: str) -> dict[str, Any]:
        wanted = self.wanted(name)
        return {
            "name": name,
            "config": self.config(name),
            "tasks": [{"connector": name, "task": index} for index in range(len(wanted.tasks))],
            "type": self._kind(wanted),
        }

    def config(self, name: str) -> dict[str, str]:
        wanted = self.wanted(name)
        return shown(wanted.properties, self._settings(wanted))

    def status(self, name: str, restarting: frozenset[str] = frozenset()) -> dict[str, Any]:
        """`restarting` says whether the connector, the tasks, or both are about to be started again."""
        wanted = self._configs.find(name)
        status = self._statuses.connector(name)
        if wanted is None or status is None:
            raise errors.not_found(f"No status found for connector {name}")
        connector = status.document()
        if "connector" in restarting:
            connector = {**connector, "state": State.RESTARTING.value}
        tasks = [
            {"id": index, **found.document()}
            for index, found in self._statuses.tasks(name).items()
            if index < len(wanted.tasks)
        ]
        if "tasks" in restarting:
            tasks = [{**each, "state": State.RESTARTING.value} for each in tasks]
        return {"name": name, "connector": connector, "tasks": tasks, "type": self._kind(wanted)}

    def tasks(self, name: str) -> list[dict[str, Any]]:
        wanted = self.wanted(name)
        settings = self._settings(wanted)
        return [
            {"id": {"connector": name, "task": index}, "config": shown(each, settings)}
            for index, each in enumerate(wanted.tasks)
        ]

    def task_status(self, name: str, task: int) -> dict[str, Any]:
        found = self._statuses.tasks(name).get(task)
        if found is None or self._configs.find(name) is None:
            raise errors.not_found(f"No status found for task {name}-{task}")
        return {"id": task, **found.document()}

    def topics(self, name: str) -> dict[str, Any]:
        return {name: {"topics": self._statuses.topics(name)}}

    def failed_parts(self, name: str) -> frozenset[str]:
        """The connector, its tasks, both or none."""
        connector, tasks = self._statuses.connector(name), self._statuses.tasks(name).values()
        found = set()
        if connector is not None and connector.state is State.FAILED:
            found.add("connector")
        if any(task.state is State.FAILED for task in tasks):
            found.add("tasks")
        return frozenset(found)

    def wanted(self, name: str) -> Wanted:
        found = self._configs.find(name)
        if found is None:
            raise errors.no_connector(name)
        return found

    def _kind(self, wanted: Wanted) -> str:
        try:
            return self._plugins.find(wanted.properties.get("connector.class", "")).kind
        except UnknownPlugin:
            return "unknown"

    def _settings(self, wanted: Wanted) -> Settings | None:
        try:
            return all_settings(self._plugins.find(wanted.properties.get("connector.class", "")).connector)
        except UnknownPlugin:
            return None
