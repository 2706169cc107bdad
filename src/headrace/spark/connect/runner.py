"""Runs connectors on a Spark session, each in a thread of its own. See `headrace.connect.runner.Runner`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from headrace.client.errors import ClientFailure
from headrace.connect.api import Connector, Job, Sink, Source, StagedSink
from headrace.connect.config import config_of
from headrace.connect.plugins import all_settings
from headrace.connect.position import Position, position_of
from headrace.connect.redaction import resolved
from headrace.connect.runner import Report, Run
from headrace.core.ids import TopicPartition
from headrace.spark.connect.context import Context
from headrace.spark.connect.job_loop import JobLoop
from headrace.spark.connect.looping import ConnectorLoop
from headrace.spark.connect.naming import sink_id, staged_id
from headrace.spark.connect.sink_loop import SinkLoop
from headrace.spark.connect.source_loop import SourceLoop
from headrace.spark.connect.storing import StagedNote, note_of
from headrace.spark.sink.job import last_note, put_note

T = TypeVar("T")
_LOOK_SECONDS: Final = 1.0


class SparkRunner:
    """Used on one event loop. Close it; the context is its maker's to close."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._loops: dict[str, ConnectorLoop] = {}
        self._abandoned: set[ConnectorLoop] = set()

    def start(self, run: Run, report: Callable[[Report], None]) -> None:
        assert run.name not in self._loops, "a connector runs once"
        self._loops[run.name] = loop_of(run.described.connector)(run, report, self._context)
        self._loops[run.name].start()

    async def stop(self, name: str) -> None:
        found = self._loops.get(name)
        if found is None:
            return
        await _ended(found)
        if self._loops.get(name) is found:
            del self._loops[name]

    async def abandon(self, name: str) -> None:
        found = self._loops.pop(name, None)
        if found is None:
            return
        loop = asyncio.get_running_loop()
        self._abandoned.add(found)
        found.end(lambda: _call(loop, self._abandoned.discard, found))
        await asyncio.to_thread(found.cancel)

    async def source_position(self, name: str) -> Position:
        found = await last_note(self._context.sink_options(sink_id(name)))
        return position_of(None if found is None else found.note)

    async def set_source_position(self, name: str, position: Position) -> None:
        await put_note(self._context.sink_options(sink_id(name)), "set by hand", position.text())

    async def job_position(self, run: Run) -> Position:
        return await asyncio.to_thread(_with_job, run, self._context)

    async def sink_position(self, run: Run) -> Mapping[TopicPartition, int] | None:
        if issubclass(run.described.connector, StagedSink):
            return (await self._staged(run)).ends
        return await asyncio.to_thread(_with_sink, run, self._context, lambda sink: sink.position())

    async def set_sink_position(self, run: Run, ends: Mapping[TopicPartition, int | None]) -> None:
        if issubclass(run.described.connector, StagedSink):
            note = (await self._staged(run)).altered(ends)
            await put_note(self._context.sink_options(staged_id(run.name)), "set by hand", note.text())
            return
        await asyncio.to_thread(_with_sink, run, self._context, lambda sink: sink.alter_position(ends))

    async def _staged(self, run: Run) -> StagedNote:
        found = await last_note(self._context.sink_options(staged_id(run.name)))
        return note_of(None if found is None else found.note)

    async def failed(self) -> None:
        """A worker without Spark would keep its connectors, and others would not take them over."""
        while (code := self._context.spark_exit_code()) is None:
            await asyncio.sleep(_LOOK_SECONDS)
        raise ClientFailure(
            f"Spark's Java process has ended ({code}), and with it all connectors of this worker: other"
            " workers take them over",
            "start the worker again; if the kernel ended it (see dmesg), --spark spark.driver.memory=SIZE or"
            " fewer --jobs leave more room",
        )

    async def close(self) -> None:
        for name in list(self._loops):
            await self.abandon(name)


async def _ended(found: ConnectorLoop) -> None:
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def tell() -> None:
        if not ended.done():
            ended.set_result(None)

    found.end(lambda: _call(loop, tell))
    await ended


def _call(loop: asyncio.AbstractEventLoop, work: Callable[..., Any], *given: Any) -> None:
    try:
        loop.call_soon_threadsafe(work, *given)
    except RuntimeError:
        pass  # the worker has ended meanwhile


def loop_of(connector: type[Connector]) -> type[ConnectorLoop]:
    if issubclass(connector, Job):
        return JobLoop
    return SourceLoop if issubclass(connector, Source) else SinkLoop


def _with_job(run: Run, context: Context) -> Position:
    job = _made(run, context)
    assert isinstance(job, Job)
    try:
        return job.position()
    finally:
        job.stop()


def _with_sink(run: Run, context: Context, ask: Callable[[Sink], T]) -> T:
    sink = _made(run, context)
    assert isinstance(sink, Sink)
    try:
        return ask(sink)
    finally:
        sink.stop()


def _made(run: Run, context: Context) -> Connector:
    """For a question to it, beside the one that runs."""
    connector = run.described.connector
    given, _ = resolved(run.properties)
    return connector(config_of(run.name, all_settings(connector), given, context.kafka))
