"""Offsets of connectors: read at any time, changed and reset while the connector is stopped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, Refused
from headrace.client.group_offsets import commit_offsets, committed_offsets, delete_offsets
from headrace.client.offsets import ends_of
from headrace.connect import errors
from headrace.connect.api import ConnectorFailure, Job, Source
from headrace.connect.cluster_config import Wanted
from headrace.connect.config import Config
from headrace.connect.config_records import Target
from headrace.connect.plugins import Plugins, UnknownPlugin
from headrace.connect.position import NOWHERE, BadPosition, altered, changes_of
from headrace.connect.runner import Run, Runner
from headrace.connect.statuses import State
from headrace.connect.stores import ConfigStore, StatusStore
from headrace.core.errors import HeadraceError
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode

_ALTERED: Final = "The offsets for this connector have been altered successfully"
_RESET: Final = "The offsets for this connector have been reset successfully"
_KEYS: Final = (
    "The partition for a sink connector offset must contain the keys 'kafka_topic' and 'kafka_partition'"
)


def group_of(name: str) -> str:
    """The consumer group of a sink."""
    return f"connect-{name}"


class OffsetService:
    def __init__(
        self,
        cluster: Cluster,
        configs: ConfigStore,
        statuses: StatusStore,
        plugins: Plugins,
        runner: Runner,
    ) -> None:
        self._cluster = cluster
        self._configs = configs
        self._statuses = statuses
        self._plugins = plugins
        self._runner = runner

    async def read(self, name: str) -> dict[str, Any]:
        wanted = self._wanted(name)
        run = self._run(wanted)
        if issubclass(run.described.connector, Job):
            return (await self._runner.job_position(run)).document()
        if run.described.kind == "source":
            return (await self._runner.source_position(name)).document()
        return {"offsets": _sink_documents(await self._sink_ends(run))}

    async def alter(self, name: str, document: object) -> dict[str, Any]:
        wanted = self._wanted(name)
        offsets = document.get("offsets") if isinstance(document, dict) else None
        if not offsets:
            raise errors.bad_request("Partitions / offsets need to be provided for an alter offsets request")
        self._must_be_movable(wanted)
        await self._must_be_stopped(wanted)
        run = self._run(wanted)
        try:
            changes = changes_of(document)
        except BadPosition as error:
            raise errors.bad_request(str(error)) from None
        if run.described.kind == "source":
            await self._alter_source(run, changes)
        else:
            await self._alter_sink(run, _sink_changes(changes))
        return {"message": _ALTERED}

    async def reset(self, name: str) -> dict[str, Any]:
        wanted = self._wanted(name)
        self._must_be_movable(wanted)
        await self._must_be_stopped(wanted)
        run = self._run(wanted)
        if run.described.kind == "source":
            await self._runner.set_source_position(name, NOWHERE)
        else:
            await self._alter_sink(run, dict.fromkeys(await self._sink_ends(run)))
        return {"message": _RESET}

    async def _alter_source(
        self, run: Run, changes: list[tuple[dict[str, Any], dict[str, Any] | None]]
    ) -> None:
        position = altered(await self._runner.source_position(run.name), changes)
        connector = run.described.connector
        assert issubclass(connector, Source)
        # Only what it is told by its settings: no file with a secret is read to check a number.
        config = Config(run.name, {}, dict(run.properties))
        try:
            connector.check_position(config, position)
        except ConnectorFailure as error:
            raise errors.failed(str(error)) from None
        await self._runner.set_source_position(run.name, position)

    async def _alter_sink(self, run: Run, changes: Mapping[TopicPartition, int | None]) -> None:
        try:
            await self._check_ends(changes)
            await self._runner.set_sink_position(run, changes)
            moved = {partition: offset for partition, offset in changes.items() if offset is not None}
            if moved:
                await commit_offsets(self._cluster, group_of(run.name), moved)
            await self._delete(
                [partition for partition, offset in changes.items() if offset is None], run.name
            )
        except HeadraceError as error:
            if isinstance(error, errors.ConnectError):
                raise
            raise errors.failed(
                f"Failed to alter consumer group offsets for connector {run.name}: {error}"
            ) from None

    async def _check_ends(self, changes: Mapping[TopicPartition, int | None]) -> None:
        moved = [partition for partition, offset in changes.items() if offset is not None]
        ends = await ends_of(self._cluster, moved) if moved else {}
        for partition in moved:
            offset = changes[partition]
            assert offset is not None
            if not 0 <= offset <= ends[partition][1]:
                raise ConnectorFailure(f"{partition} ends at {ends[partition][1]}: {offset} is not in it")

    async def _delete(self, partitions: list[TopicPartition], name: str) -> None:
        if not partitions:
            return
        try:
            outcome = await delete_offsets(self._cluster, group_of(name), partitions)
        except Refused as error:
            if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            return
        for refused in outcome.values():
            if refused is not None:
                raise refused

    async def _sink_ends(self, run: Run) -> dict[TopicPartition, int]:
        """What the target says counts; the group's offsets are for those who look at lag."""
        group = group_of(run.name)
        try:
            found = (await committed_offsets(self._cluster, [group]))[group]
        except ClientFailure as error:
            raise errors.failed(f"the offsets of group {group} cannot be read: {error}") from None
        ends = {partition: entry.offset for partition, entry in found.items()}
        own = await self._runner.sink_position(run)
        return {**ends, **(own or {})}

    def _must_be_movable(self, wanted: Wanted) -> None:
        connector = self._run(wanted).described.connector
        if issubclass(connector, Job):
            raise errors.bad_request(connector.fixed)

    async def _must_be_stopped(self, wanted: Wanted) -> None:
        await self._configs.up_to_date()
        now = self._configs.state.find(wanted.name)
        if now is None or now.target is not Target.STOPPED:
            raise errors.not_stopped(wanted.name)
        await self._statuses.up_to_date()
        status = self._statuses.state.connector(wanted.name)
        if status is not None and status.state not in (State.STOPPED, State.UNASSIGNED):
            raise errors.not_stopped(wanted.name)

    def _wanted(self, name: str) -> Wanted:
        found = self._configs.state.find(name)
        if found is None:
            raise errors.no_connector(name)
        return found

    def _run(self, wanted: Wanted) -> Run:
        try:
            found = self._plugins.find(wanted.properties.get("connector.class", ""))
        except UnknownPlugin as error:
            raise errors.failed(str(error)) from None
        return Run(wanted.name, found, wanted.properties)


def _sink_changes(
    changes: list[tuple[dict[str, Any], dict[str, Any] | None]],
) -> dict[TopicPartition, int | None]:
    found: dict[TopicPartition, int | None] = {}
    for partition, offset in changes:
        topic, index = partition.get("kafka_topic"), partition.get("kafka_partition")
        if topic is None or index is None:
            raise errors.bad_request(_KEYS)
        at = None if offset is None else offset.get("kafka_offset")
        if offset is not None and at is None:
            raise errors.bad_request("The offset for a sink connector should contain the key 'kafka_offset'")
        try:
            found[TopicPartition(str(topic), int(index))] = None if at is None else int(at)
        except (TypeError, ValueError):
            raise errors.bad_request(
                f"kafka_partition and kafka_offset are numbers, not {index!r} and {at!r}"
            ) from None
    return found


def _sink_documents(ends: Mapping[TopicPartition, int]) -> list[dict[str, Any]]:
    return [
        {
            "partition": {"kafka_partition": partition.partition, "kafka_topic": partition.topic},
            "offset": {"kafka_offset": offset},
        }
        for partition, offset in sorted(ends.items())
    ]
