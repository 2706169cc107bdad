"""From frames to handlers and back: headers, versions, times and faults are dealt with here, once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from headrace.broker.answer_cache import AnswerCache, Question
from headrace.broker.api import Api, Call
from headrace.broker.handlers import api_versions, fetch, produce
from headrace.broker.logging import get_logger
from headrace.broker.peer_log import shortened
from headrace.broker.requests.long_requests import READ_AT_ONCE_BYTES, LongRequests, framed, is_long_answer
from headrace.broker.requests.parts import is_long
from headrace.broker.requests.reading import read_request
from headrace.broker.requests.shapes import SHAPES
from headrace.core.completion import Completion
from headrace.core.errors import HeadraceError, InvalidRequest, NotController, NotReady, UnsupportedVersion
from headrace.core.tasks import spawn
from headrace.metrics.registry import RequestMetrics
from headrace.network.connection import Connection
from headrace.network.response import DelayedResponse, Response
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.headers import LENGTH_SIZE, RequestHeader, frame_response, read_request_header
from headrace.protocol.message import Message

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

_PRODUCE: Final = int(ApiKey.PRODUCE)
_FETCH: Final = int(ApiKey.FETCH)
_METADATA: Final = int(ApiKey.METADATA)
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
_SERVED_EARLY: Final = frozenset({_FETCH, _API_VERSIONS})
"""What a broker serves before it is ready: other brokers follow the metadata by Fetch."""

DRAIN_SECONDS: Final = 10.0
"""How long a stop waits for requests that are being carried out."""


class Dispatcher:
    """The frame handler of every connection."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._log = get_logger("headrace.requests")
        self._cache = AnswerCache(broker.memory.answer_cache)
        self._long = LongRequests(broker)
        self.is_draining = False
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._metrics: dict[int, RequestMetrics] = {}
        """By API key and version in one number: a key that is cheap to make and to hash."""

    def __call__(self, connection: Connection, frame: memoryview) -> Response:
        started = perf_counter_ns()
        header, at = read_request_header(frame)
        key, version, correlation_id, _ = header
        api = self._broker.apis.get(key)
        if api is None:
            raise InvalidRequest(f"API {key} is not served here")
        if not api[1] <= version <= api[2]:
            return self._unsupported(api, header)
        if not self._broker.open_to_clients and key not in _SERVED_EARLY and not api.internal:
            raise NotReady("this broker is not ready yet")
        try:
            if key == _PRODUCE:
                answer = produce.serve(self._broker, version, correlation_id, frame, at, connection)
            elif key == _FETCH:
                answer = fetch.serve(self._broker, version, correlation_id, frame, at, connection)
            elif key == _METADATA:
                answer = self._serve_metadata(api, header, frame, at, connection)
            else:
                answer = self._serve(api, header, frame, at, connection)
        except HeadraceError:
            raise
        except Exception as error:
            raise self._fault(api, header, error, connection) from error
        times = self._metrics.get(key << 8 | version) or self._times(api, version)
        if type(answer) is DelayedResponse:
            answer.on_answered = lambda: times.observe((perf_counter_ns() - started) // 1000)
        else:
            times.observe((perf_counter_ns() - started) // 1000)
        return answer

    def _unsupported(self, api: Api, header: RequestHeader) -> Response:
        if api.key == _API_VERSIONS:
            return [frame_response(api_versions.unsupported(), 0, header.correlation_id)]
        raise UnsupportedVersion(
            f"{api.key.name} {header.api_version} is not served: {api.lowest} to {api.highest} are"
        )

    def forget_answers(self) -> None:
        """What Metadata would say has changed, though the metadata has not."""
        self._cache.clear()
        self._broker.metadata_rows.clear()

    def _serve_metadata(
        self, api: Api, header: RequestHeader, frame: memoryview, at: int, connection: Connection
    ) -> Response:
        question = Question(header.api_version, connection.listener, bytes(frame[at:]))
        metadata_end = self._broker.store.end
        if self._broker.suspicions:
            return self._serve(api, header, frame, at, connection)
        known = self._cache.get(question, metadata_end, header.correlation_id)
        if known is not None:
            return [known]
        answer = self._serve(api, header, frame, at, connection)
        if isinstance(answer, list) and isinstance(answer[0], bytes):
            self._cache.put(question, metadata_end, answer[0])
        elif isinstance(answer, DelayedResponse):
            return self._cache.kept_later(question, metadata_end, answer)
        return answer

    def _serve(
        self, api: Api, header: RequestHeader, frame: memoryview, at: int, connection: Connection
    ) -> Response:
        version = header.api_version
        if api.handle is None:
            raise InvalidRequest(f"{api.key.name} is served from its frame")
        if self.is_draining:
            raise NotController("the broker is stopping")
        if api.at_controller and not self._broker.controller.is_active:
            return self._forward(header, bytes(frame), connection)
        if api.internal and not connection.is_link:
            self._broker.broker_hosts.believe(connection)
        call = Call(version, header.client_id, connection)
        if len(frame) > READ_AT_ONCE_BYTES:
            return self._later(api, header, self.carry_out(api, bytes(frame), at, call), connection)
        shape = SHAPES.get(header.api_key << 8 | version)
        request = read_request(api, frame, at, version, shape)
        if shape is None:
            result = api.handle(self._broker, request, call)
            if isinstance(result, Message):
                return [_framed(api, result, header)]
        elif is_long(request, shape):
            result = self._long.carry_out(api, request, call, shape)
        else:
            result = api.handle(self._broker, request, call)
            if isinstance(result, Message):
                if not is_long_answer(result, shape.answers):
                    return [_framed(api, result, header)]
                result = self._long.encode(result, shape, version)
        if isinstance(result, Completion):
            if result.is_done and result.error is None:
                response = result.result()
                if shape is None or not is_long_answer(response, shape.answers):
                    return [_framed(api, response, header)]
            pending = DelayedResponse(exclusive=True)
            result.when_done(lambda decided: self._on_decided(api, header, decided, connection, pending))
            return pending
        return self._later(api, header, result, connection)

    async def carry_out(self, api: Api, frame: bytes, at: int, call: Call) -> Message:
        """A request that is large, or that another broker forwards: at the pace that the loop allows."""
        shape = SHAPES.get(int(api.key) << 8 | call.version)
        if len(frame) > READ_AT_ONCE_BYTES:
            request = await self._long.read(api, frame, at, call.version, shape)
        else:
            request = read_request(api, memoryview(frame), at, call.version, shape)
        if shape is not None and is_long(request, shape):
            return await self._long.carry_out(api, request, call, shape)
        assert api.handle is not None
        result = api.handle(self._broker, request, call)
        response = result if isinstance(result, Message) else await result
        if shape is not None and is_long_answer(response, shape.answers):
            return await self._long.encode(response, shape, call.version)
        return response

    def _later(
        self, api: Api, header: RequestHeader, result: Awaitable[Message], connection: Connection
    ) -> DelayedResponse:
        pending = DelayedResponse(exclusive=True)
        self.keep(spawn(api.key.name, self._finish(api, header, result, connection, pending)))
        return pending

    def _on_decided(
        self,
        api: Api,
        header: RequestHeader,
        decided: Completion[Message],
        connection: Connection,
        pending: DelayedResponse,
    ) -> None:
        """What was promised is there: no task has waited for it."""
        try:
            response = decided.result()
            shape = SHAPES.get(header.api_key << 8 | header.api_version)
            if shape is not None and is_long_answer(response, shape.answers):
                encoded = self._long.encode(response, shape, header.api_version)
                self.keep(spawn(api.key.name, self._finish(api, header, encoded, connection, pending)))
                return
            frame = _framed(api, response, header)
        except Exception as error:
            self._fault(api, header, error, connection)
            connection.close()
            return
        pending.complete([frame])

    def _forward(self, header: RequestHeader, frame: bytes, connection: Connection) -> DelayedResponse:
        """Have the controller serve it, and hand its answer on as it is."""
        pending = DelayedResponse(exclusive=True)

        async def relay() -> None:
            try:
                answer = await self._broker.channel.forward(frame, connection.peer_host)
            except HeadraceError as error:
                self._broker.peer_log.warning(
                    "request not forwarded", connection.peer_host, api=header.api_key, error=str(error)
                )
                connection.close()
                return
            except Exception:  # nobody would answer it any more
                connection.close()
                raise
            pending.complete([len(answer).to_bytes(LENGTH_SIZE, "big"), answer])

        self.keep(spawn("a forwarded request", relay()))
        return pending

    def keep(self, task: asyncio.Task[None]) -> None:
        """A request that is being carried out: a stop waits for it."""
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _finish(
        self,
        api: Api,
        header: RequestHeader,
        result: Awaitable[Message],
        connection: Connection,
        pending: DelayedResponse,
    ) -> None:
        try:
            response = await result
            shape = SHAPES.get(header.api_key << 8 | header.api_version)
            if shape is not None and is_long_answer(response, shape.answers):
                response = await self._long.encode(response, shape, header.api_version)
            parts = framed(response, shape, header.api_version, header.correlation_id)
        except Exception as error:
            self._fault(api, header, error, connection)
            connection.close()
            return
        pending.complete(parts)

    def _times(self, api: Api, version: int) -> RequestMetrics:
        name = "".join(word.capitalize() for word in api.key.name.split("_"))
        times = self._metrics[int(api.key) << 8 | version] = self._broker.metrics.request(name, version)
        return times

    def _fault(
        self, api: Api, header: RequestHeader, error: Exception, connection: Connection
    ) -> HeadraceError:
        """Our own mistake, or a refusal that has no place in the answer: the peer loses its connection."""
        if isinstance(error, HeadraceError):
            self._broker.peer_log.warning(
                "request refused",
                connection.peer_host,
                api=api.key.name,
                client=shortened(header.client_id),
                error=str(error),
            )
            return error
        self._broker.peer_log.error(
            "request failed",
            connection.peer_host,
            api=api.key.name,
            version=header.api_version,
            error=repr(error),
            exc_info=error,
        )
        return HeadraceError(f"{api.key.name} failed: {error!r}")

    async def drain(self) -> None:
        """Wait for requests that are being carried out, and take no more of those that have to wait.

        Not for ever: what waits for a commit waits for the coordination service.
        """
        self.is_draining = True
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                while self._tasks:
                    await asyncio.wait(list(self._tasks))
        except TimeoutError:
            self._log.warning("requests dropped at shutdown", requests=len(self._tasks))
            self.abandon()

    def abandon(self) -> None:
        """Wait for nothing, and take nothing more."""
        self.is_draining = True
        for task in list(self._tasks):
            task.cancel()


def _framed(api: Api, response: Message, header: RequestHeader) -> bytes:
    framing = frame_response if api.codec is None else api.codec.frame_response
    return framing(response, header.api_version, header.correlation_id)
