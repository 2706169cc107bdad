"""Offset commits sent by hand. Each group has a connection, and an answer before it commits again."""

from __future__ import annotations

import socket
import struct
import time
from typing import TypeVar

from bench.load_generator import LoadFailed
from headrace.protocol.headers import frame_request, read_response_header
from headrace.protocol.message import Message
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from headrace.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_commit_response import OffsetCommitResponse
from headrace.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.protocol.messages.offset_fetch_response import OffsetFetchResponse
from headrace.protocol.primitives import Reader

Answer = TypeVar("Answer", bound=Message)

COMMIT_VERSION = 9
FETCH_VERSION = 9
FIND_VERSION = 4
CLIENT_ID = "bench"
PATIENCE_S = 30.0


class CommittingGroups:
    """Consumers without membership: they assign partition 0 of a topic to themselves."""

    def __init__(self, port: int, topic: str, group_ids: list[str]) -> None:
        self._topic = topic
        self._group_ids = group_ids
        self._connections = [socket.create_connection(("127.0.0.1", port), PATIENCE_S) for _ in group_ids]
        for connection in self._connections:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def find_coordinators(self) -> None:
        """Until every group has one: the first who asks has the internal topic made."""
        give_up = time.monotonic() + PATIENCE_S
        request = FindCoordinatorRequest(coordinator_keys=self._group_ids)
        while True:
            answer = self._ask(request, FIND_VERSION, FindCoordinatorResponse)
            if all(one.error_code == 0 for one in answer.coordinators) and self._can_commit():
                return
            if time.monotonic() > give_up:
                raise LoadFailed(f"no coordinator: {answer}")
            time.sleep(0.1)

    def _can_commit(self) -> bool:
        """A coordinator that was just found may still be reading."""
        self._send(0)
        return not any(self._receive())

    def commit(self, rounds: int) -> float:
        """Every group commits so often, all of them at once each time. The seconds that it took."""
        began = time.monotonic()
        for offset in range(1, rounds + 1):
            self._send(offset)
            failed = [code for code in self._receive() if code]
            if failed:
                raise LoadFailed(f"a commit was refused with code {failed[0]}")
        return time.monotonic() - began

    def _send(self, offset: int) -> None:
        for group_id, connection in zip(self._group_ids, self._connections, strict=True):
            partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
            topic = OffsetCommitRequestTopic(name=self._topic, partitions=[partition])
            request = OffsetCommitRequest(group_id=group_id, topics=[topic])
            connection.sendall(frame_request(request, COMMIT_VERSION, offset, CLIENT_ID))

    def _receive(self) -> list[int]:
        codes = []
        for connection in self._connections:
            answer = _answer(connection, COMMIT_VERSION, OffsetCommitResponse)
            codes += [row.error_code for topic in answer.topics for row in topic.partitions]
        return codes

    def committed(self) -> list[int]:
        """What the broker says, group by group: commits that are not there prove nothing."""
        wanted = [OffsetFetchRequestTopics(name=self._topic, partition_indexes=[0])]
        groups = [OffsetFetchRequestGroup(group_id=each, topics=wanted) for each in self._group_ids]
        answer = self._ask(OffsetFetchRequest(groups=groups), FETCH_VERSION, OffsetFetchResponse)
        return [group.topics[0].partitions[0].committed_offset for group in answer.groups]

    def _ask(self, request: Message, version: int, response: type[Answer]) -> Answer:
        self._connections[0].sendall(frame_request(request, version, 0, CLIENT_ID))
        return _answer(self._connections[0], version, response)


def _answer(connection: socket.socket, version: int, response: type[Answer]) -> Answer:
    (length,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
    frame = connection.recv(length, socket.MSG_WAITALL)
    _, at = read_response_header(frame, response.API_KEY, version)
    return response.decode(Reader(frame, at), version)
