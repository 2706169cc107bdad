"""A broker that answers as a test tells it to, over a real socket."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any

from headrace.protocol.headers import read_request_header, response_header_version
from headrace.protocol.message import Message
from headrace.protocol.messages.api_versions_request import ApiVersionsRequest
from headrace.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.protocol.primitives import Reader, Writer

Handler = Callable[[Any, int], Message | None]


class ScriptedBroker:
    """`handlers` maps a request class to what answers it; None as an answer means silence."""

    def __init__(self, handlers: dict[type[Message], Handler] | None = None) -> None:
        self.handlers: dict[type[Message], Handler] = {
            ApiVersionsRequest: self._api_versions,
            MetadataRequest: self._metadata,
            **(handlers or {}),
        }
        self.topics: dict[str, int] = {}
        self.leader = 0
        self.offline: tuple[int, ...] = ()
        """Replicas of every partition that nobody can use."""
        self.ranges: dict[int, tuple[int, int]] = {}
        self.requests: list[Message] = []
        self.port = 0
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> ScriptedBroker:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.drop_connections()
        await self._server.wait_closed()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def drop_connections(self) -> None:
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    def seen(self, kind: type[Message]) -> list[Any]:
        return [request for request in self.requests if isinstance(request, kind)]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        kinds = {kind.API_KEY: kind for kind in self.handlers}
        try:
            while True:
                (length,) = struct.unpack(">i", await reader.readexactly(4))
                frame = memoryview(await reader.readexactly(length))
                header, at = read_request_header(frame)
                kind = kinds[header.api_key]
                request = kind.decode(Reader(frame, at), min(header.api_version, kind.MAX_VERSION))
                self.requests.append(request)
                answer = self.handlers[kind](request, header.api_version)
                if answer is None:
                    continue
                version = header.api_version
                if isinstance(answer, ApiVersionsResponse) and answer.error_code == 35:
                    version = 0
                out = Writer()
                out.int32(header.correlation_id)
                if response_header_version(header.api_key, version) >= 1:
                    out.no_tags()
                body = out.getvalue() + answer.to_bytes(version)
                writer.write(struct.pack(">i", len(body)) + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _api_versions(self, _request: ApiVersionsRequest, _version: int) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            api_keys=[
                ApiVersion(
                    api_key=kind.API_KEY,
                    min_version=self.ranges.get(kind.API_KEY, (kind.MIN_VERSION, 0))[0],
                    max_version=self.ranges.get(kind.API_KEY, (0, kind.MAX_VERSION))[1],
                )
                for kind in self.handlers
            ]
        )

    def _metadata(self, request: MetadataRequest, _version: int) -> MetadataResponse:
        names = self.topics if request.topics is None else [topic.name or "" for topic in request.topics]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=0, host="127.0.0.1", port=self.port)],
            controller_id=0,
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.topics:
            return MetadataResponseTopic(error_code=3, name=name)
        return MetadataResponseTopic(
            name=name,
            partitions=[
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=self.leader,
                    replica_nodes=[0],
                    isr_nodes=[0],
                    offline_replicas=list(self.offline),
                )
                for index in range(self.topics[name])
            ],
        )
