"""A whole REST interface over logs in memory: real stores, real routes, and a runner that only notes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from starlette.types import Message

from headrace.client.state_topic import Pair
from headrace.connect.answers import Answers
from headrace.connect.api import Connector, Position, Record, Sink, Source, Step
from headrace.connect.http.app import application
from headrace.connect.http.wire import Parts
from headrace.connect.loggers import Loggers
from headrace.connect.offset_service import OffsetService
from headrace.connect.plugins import Plugins, described
from headrace.connect.position import NOWHERE
from headrace.connect.runner import Report, Run
from headrace.connect.service import Service
from headrace.connect.settings import Kind, Setting, Settings
from headrace.connect.statuses import State, Status, connector_key, task_key
from headrace.connect.stores import ConfigStore, StatusStore
from headrace.core.ids import TopicPartition
from headrace.protocol.records import Record as LogRecord
from headrace.protocol.records import decode_records


class WellSource(Source):
    settings = Settings(
        Setting("topic"), Setting("depth", Kind.INT, 5, least=1), Setting("pin", Kind.PASSWORD, None)
    )
    version = "7"

    def plan(self, position: Position) -> Step | None:
        return None

    def read(self, part: Any) -> Iterator[Record]:
        return iter(())


class TankSink(Sink):
    settings = Settings(Setting("size", Kind.INT, 5))


class MemoryConfigs(ConfigStore):
    def __init__(self) -> None:
        super().__init__("127.0.0.1:9", "configs", timeout=2.0)
        self.log: list[LogRecord] = []
        self._following = asyncio.create_task(_never())

    async def _produce(self, batch: bytearray) -> int:
        start = len(self.log)
        for record in decode_records(batch):
            self.log.append(record._replace(offset=len(self.log)))
        for record in self.log[start:]:
            self.apply(record)
        self._position = len(self.log)
        return start

    async def up_to_date(self) -> None:
        assert self._position == len(self.log)


async def _never() -> None:
    await asyncio.Event().wait()


class MemoryStatuses(StatusStore):
    def __init__(self) -> None:
        super().__init__("127.0.0.1:9", "statuses", timeout=2.0)

    async def tell(self, pairs: Sequence[Pair], now_ms: int) -> None:
        for key, value in pairs:
            self.state.replay(key, value)

    async def up_to_date(self) -> None:
        pass


class NotingRunner:
    def __init__(self) -> None:
        self.positions: dict[str, Position] = {}

    def start(self, run: Run, report: Callable[[Report], None]) -> None:
        raise NotImplementedError

    async def stop(self, name: str) -> None:
        raise NotImplementedError

    async def abandon(self, name: str) -> None:
        raise NotImplementedError

    async def source_position(self, name: str) -> Position:
        return self.positions.get(name, NOWHERE)

    async def set_source_position(self, name: str, position: Position) -> None:
        self.positions[name] = position

    async def job_position(self, run: Run) -> Position:
        return self.positions.get(run.name, NOWHERE)

    async def sink_position(self, run: Run) -> Mapping[TopicPartition, int] | None:
        return None

    async def set_sink_position(self, run: Run, ends: Mapping[TopicPartition, int | None]) -> None:
        pass

    async def failed(self) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        pass


class Answer(NamedTuple):
    status: int
    document: Any
    headers: dict[str, str]


class Interface:
    def __init__(self, connectors: Sequence[type[Connector]] = (WellSource, TankSink)) -> None:
        self.configs = MemoryConfigs()
        self.statuses = MemoryStatuses()
        self.runner = NotingRunner()
        plugins = Plugins(described(each, each.__name__.lower()) for each in connectors)
        service = Service(self.configs, self.statuses, plugins)
        self.answers: Answers = service.answers
        offsets = OffsetService(self.configs._writing, self.configs, self.statuses, plugins, self.runner)
        self.parts = Parts(service, offsets, Loggers(), "cluster", lambda: True)
        self.app = application(self.parts)

    async def close(self) -> None:
        await self.configs.close()
        await self.statuses.close()

    async def ask(
        self,
        method: str,
        path: str,
        document: object = None,
        body: bytes | None = None,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> Answer:
        data = body if body is not None else b"" if document is None else json.dumps(document).encode()
        bare, _, query = path.partition("?")
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": data, "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
            "scheme": "http", "path": bare, "raw_path": bare.encode(), "query_string": query.encode(),
            "root_path": "", "headers": [(b"host", b"worker:8083"), *headers], "server": ("worker", 8083),
            "client": ("127.0.0.1", 1), "state": {},
        }  # fmt: skip
        await self.app(scope, receive, send)
        start = sent[0]
        content = b"".join(message.get("body", b"") for message in sent[1:])
        answered = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], json.loads(content) if content else None, answered)

    def say(self, name: str, state: State, tasks: int = 0, trace: str | None = None) -> None:
        """As the worker that runs it."""
        status = Status(state, "worker:8083", 1, "7", trace).encode()
        self.statuses.state.replay(connector_key(name), status)
        for task in range(tasks):
            self.statuses.state.replay(task_key(name, task), status)
