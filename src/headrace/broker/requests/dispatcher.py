"""From frames to handlers and back: headers, versions, times and faults are dealt with here, once."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from time import perf_counter_ns
from typing import Any, Final

from headrace.broker.authorization.guard import Guard, authorised, require_all
from headrace.broker.handlers import api_versions, envelope, fetch, produce
from headrace.broker.quotas.client_quotas import UNLIMITED, ClientQuotas
from headrace.broker.requests.answer_cache import Question
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.context import RequestContext
from headrace.broker.requests.large_requests import ClientHasGone, LargeRequests
from headrace.broker.requests.long_requests import READ_AT_ONCE_BYTES, LongRequests, framed, is_long_answer
from headrace.broker.requests.request_parts import is_long
from headrace.broker.requests.request_reading import read_request
from headrace.broker.requests.request_shapes import SHAPES
from headrace.broker.runtime.peer_log import shortened
from headrace.core.completion import Completion
from headrace.core.errors import HeadraceError, InvalidRequest, NotController, NotReady, UnsupportedVersion
from headrace.core.tasks import spawn
from headrace.metrics.registry import RequestMetrics
from headrace.network.connection import Connection
from headrace.network.response import DelayedResponse, Response
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.api_names import api_name
from headrace.protocol.headers import LENGTH_SIZE, RequestHeader, frame_response, read_request_header
from headrace.protocol.message import Message
from headrace.protocol.messages.envelope_request import EnvelopeRequest

_PRODUCE: Final = int(ApiKey.PRODUCE)
_FETCH: Final = int(ApiKey.FETCH)
_METADATA: Final = int(ApiKey.METADATA)
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
_ENVELOPE: Final = int(ApiKey.ENVELOPE)


NO_AUTHORIZER: Final = -1
"""The class of everybody's rights where there is no authorizer."""


class ToItself:
    """Takes the place of a connection when the active controller sends a request to itself."""

    peer_host = "127.0.0.1"
    closed = False

    def __init__(self, listener: str) -> None:
        self.listener = listener

    def close(self) -> None:
        """There is nothing to hang up."""


class Dispatcher:
    """The frame handler of every connection."""

    def __init__(
        self,
        context: RequestContext,
        apis: Mapping[int, Api],
        guards: Mapping[int, Guard],
        quotas: ClientQuotas,
    ) -> None:
        require_all(guards, apis)
        self._quotas = quotas
        self._context = context
        self._apis = apis
        self._guards = guards
        self._runtime = context.runtime
        self._in_flight = context.in_flight
        self._answers = context.answers
        self._long = LongRequests(context, guards)
        self._large = LargeRequests(context.runtime.memory.requests)
        self._itself: Any = ToItself(context.runtime.config.bound_listeners[0].name)
        self.is_open_to_clients = False
        """Until a broker is registered and hosts its partitions, only other brokers are served."""
        self._metrics: dict[int, RequestMetrics] = {}
        """The key holds API key and version in one number, which is cheap to make and to hash."""

    def open_to_clients(self) -> None:
        """This broker is registered, and hosts its partitions."""
        self.is_open_to_clients = True

    def __call__(self, connection: Connection, frame: memoryview) -> Response:
        started = perf_counter_ns()
        header, at = read_request_header(frame)
        key, version, correlation_id, _ = header
        api = self._apis.get(key)
        if api is None:
            raise InvalidRequest(f"API {key} is not served here")
        if not api[1] <= version <= api[2]:
            return self._unsupported(api, header)
        if not self.is_open_to_clients:
            self._check_early(api, connection)
        try:
            if key == _PRODUCE:
                answer = produce.serve(self._context, version, correlation_id, frame, at, connection)
            elif key == _FETCH:
                most_bytes = UNLIMITED
                if self._quotas.are_set:
                    most_bytes = self._quotas.fetch_limit(connection, header.client_id)
                answer = fetch.serve(
                    self._context, version, correlation_id, frame, at, connection, most_bytes
                )
            elif key == _METADATA:
                answer = self._serve_metadata(api, header, frame, at, connection)
            else:
                answer = self._serve(api, header, frame, at, connection)
        except HeadraceError:
            raise
        except Exception as error:
            raise self._fault(api, header, error, connection) from error
        times = self._metrics.get(key << 8 | version) or self._times(api, version)
        if type(answer) is DelayedResponse and not answer.is_done:
            self._note_when_answered(answer, times, started)
        else:
            times.observe((perf_counter_ns() - started) // 1000)
        if self._quotas.are_set:
            self._quotas.on_served(connection, header, len(frame), perf_counter_ns() - started, answer)
        return answer

    def _note_when_answered(self, answer: DelayedResponse, times: RequestMetrics, started: int) -> None:
        waits_since = perf_counter_ns()

        def on_answered(_: object) -> None:
            now = perf_counter_ns()
            times.observe((now - started) // 1000)
            times.waited_us += (now - waits_since) // 1000

        answer.on_answered = on_answered

    def _check_early(self, api: Api, connection: Connection) -> None:
        """Before the metadata is there nobody knows who may do what. Other brokers follow it by Fetch."""
        if api.internal or api.key == _API_VERSIONS:
            return
        if api.key != _FETCH or not self._context.security.is_authenticated_broker(connection):
            raise NotReady("this broker is not ready yet")

    def _unsupported(self, api: Api, header: RequestHeader) -> Response:
        if api.key == _API_VERSIONS:
            return [frame_response(api_versions.unsupported(), 0, header.correlation_id)]
        raise UnsupportedVersion(
            f"{api.key.name} {header.api_version} is not served: {api.lowest} to {api.highest} are"
        )

    def _serve_metadata(
        self, api: Api, header: RequestHeader, frame: memoryview, at: int, connection: Connection
    ) -> Response:
        rights = connection.rights
        rights_class = NO_AUTHORIZER if rights is None else rights.class_id
        question = Question(header.api_version, connection.listener, rights_class, bytes(frame[at:]))
        metadata_end = self._context.metadata.store.end
        if self._context.peers.suspicions:
            return self._serve(api, header, frame, at, connection)
        known = self._answers.whole.get(question, metadata_end, header.correlation_id)
        if known is not None:
            return [known]
        answer = self._serve(api, header, frame, at, connection)
        if isinstance(answer, list) and isinstance(answer[0], bytes):
            self._answers.whole.put(question, metadata_end, answer[0])
        elif isinstance(answer, DelayedResponse):
            return self._answers.whole.kept_later(question, metadata_end, answer)
        return answer

    def _serve(
        self, api: Api, header: RequestHeader, frame: memoryview, at: int, connection: Connection
    ) -> Response:
        version = header.api_version
        if self._in_flight.is_draining:
            raise NotController("the broker is stopping")
        if api.at_controller and not self._context.controller.is_active:
            return self._forward(header, bytes(frame), connection)
        if api.internal and not self._context.security.is_broker(connection):
            raise InvalidRequest(f"{api.key.name} is for brokers, on the listener between them")
        if api.internal and not connection.is_link:
            self._context.peers.hosts.believe(connection)
        call = Call(
            version,
            header.client_id,
            connection,
            connection.principal,
            connection.peer_host,
            connection.rights,
            connection.came_by_token,
        )
        if len(frame) > READ_AT_ONCE_BYTES:
            kept = self._large.keep(frame)
            in_turn = self._large.in_turn(api, kept, connection, lambda: self.carry_out(api, kept, at, call))
            return self._later(api, header, in_turn, connection)
        shape = SHAPES.get(header.api_key << 8 | version)
        request = read_request(api, frame, at, version, shape)
        if shape is None:
            result = self._handle(api, request, call)
            if isinstance(result, Message):
                return [_framed(api, result, header)]
        elif is_long(request, shape):
            result = self._long.carry_out(api, request, call, shape)
        else:
            result = self._handle(api, request, call)
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

    def _handle(self, api: Api, request: Message, call: Call) -> Message | Awaitable[Message]:
        if isinstance(request, EnvelopeRequest):
            if call.rights is not None:
                self._guards[_ENVELOPE](self._context, call.rights, request, call)
            return envelope.serve(self._context, request, call, self._apis, self.carry_out)
        assert api.handle is not None, "Produce and Fetch are served from their frames"
        return authorised(self._context, self._guards, api, request, call)

    def serve_itself(self, message: Message) -> Message | Awaitable[Message]:
        """Serve a request that this broker, the active controller, sends to itself."""
        api = self._apis[message.API_KEY]
        return self._handle(api, message, Call(api.highest, None, self._itself))

    async def carry_out(self, api: Api, frame: bytes, at: int, call: Call) -> Message:
        """Serve a large or forwarded request, in slices if it is long."""
        shape = SHAPES.get(int(api.key) << 8 | call.version)
        if len(frame) > READ_AT_ONCE_BYTES:
            request = await self._long.read(api, frame, at, call.version, shape)
        else:
            request = read_request(api, memoryview(frame), at, call.version, shape)
        if shape is not None and is_long(request, shape):
            return await self._long.carry_out(api, request, call, shape)
        result = self._handle(api, request, call)
        response = result if isinstance(result, Message) else await result
        if shape is not None and is_long_answer(response, shape.answers):
            return await self._long.encode(response, shape, call.version)
        return response

    def _later(
        self, api: Api, header: RequestHeader, result: Awaitable[Message], connection: Connection
    ) -> DelayedResponse:
        if self._quotas.are_set:
            result = self._quotas.timed(connection, header, result)
        pending = DelayedResponse(exclusive=True)
        self._in_flight.keep(spawn(api.key.name, self._finish(api, header, result, connection, pending)))
        return pending

    def _on_decided(
        self,
        api: Api,
        header: RequestHeader,
        decided: Completion[Message],
        connection: Connection,
        pending: DelayedResponse,
    ) -> None:
        """Send the response of a completion that is done. No task has waited for it."""
        try:
            response = decided.result()
            shape = SHAPES.get(header.api_key << 8 | header.api_version)
            if shape is not None and is_long_answer(response, shape.answers):
                encoded = self._long.encode(response, shape, header.api_version)
                self._in_flight.keep(
                    spawn(api.key.name, self._finish(api, header, encoded, connection, pending))
                )
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
                answer = await self._context.channel.forward(
                    frame, connection.principal, connection.peer_host, connection.came_by_token
                )
            except HeadraceError as error:
                self._runtime.peer_log.warning(
                    "request not forwarded", connection.peer_host, api=header.api_key, error=str(error)
                )
                connection.close()
                return
            except Exception:  # else the client would wait for ever
                connection.close()
                raise
            pending.complete([len(answer).to_bytes(LENGTH_SIZE, "big"), answer])

        self._in_flight.keep(spawn("a forwarded request", relay()))
        return pending

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
        except ClientHasGone:
            return  # nobody waits for the answer
        except Exception as error:
            self._fault(api, header, error, connection)
            connection.close()
            return
        pending.complete(parts)

    def _times(self, api: Api, version: int) -> RequestMetrics:
        times = self._runtime.metrics.request(api_name(api.key), version)
        self._metrics[int(api.key) << 8 | version] = times
        return times

    def _fault(
        self, api: Api, header: RequestHeader, error: Exception, connection: Connection
    ) -> HeadraceError:
        """Our own mistake, or a refusal that has no place in the answer: the peer loses its connection."""
        if isinstance(error, HeadraceError):
            self._runtime.peer_log.warning(
                "request refused",
                connection.peer_host,
                api=api.key.name,
                client=shortened(header.client_id),
                error=str(error),
            )
            return error
        self._runtime.peer_log.error(
            "request failed",
            connection.peer_host,
            api=api.key.name,
            version=header.api_version,
            error=repr(error),
            exc_info=error,
        )
        return HeadraceError(f"{api.key.name} failed: {error!r}")


def _framed(api: Api, response: Message, header: RequestHeader) -> bytes:
    framing = frame_response if api.codec is None else api.codec.frame_response
    return framing(response, header.api_version, header.correlation_id)
