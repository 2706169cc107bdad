"""How much is sent in one go."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from headrace.core.ports import FileRange
from headrace.log.os_disk import OsDisk
from headrace.metrics.registry import ListenerMetrics
from headrace.network.outbox import MOST_RANGES, Outbox
from headrace.network.page_cache import INLINE_BYTES, PageCache

LENGTH = INLINE_BYTES + 1


@pytest.fixture
def sock() -> Iterator[socket.socket]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours


async def test_many_file_ranges_leave_in_several_turns(
    sock: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    watched: list[int] = []
    poller = SimpleNamespace(
        add_writer=lambda descriptor, _: watched.append(descriptor),
        remove_writer=lambda descriptor: watched.remove(descriptor),
    )

    def sendfile(_to: int, _from: int, _position: int, length: int) -> int:
        sent.append(length)  # a socket that takes everything
        return length

    monkeypatch.setattr(os, "sendfile", sendfile)
    with ThreadPoolExecutor(1) as threads:
        page_cache = PageCache(asyncio.get_running_loop(), threads)
        outbox = Outbox(sock, poller, page_cache, ListenerMetrics(), lambda: None)
        path = tmp_path / "file"
        path.write_bytes(bytes(LENGTH))
        part = FileRange(OsDisk().open(str(path)), 0, LENGTH)
        assert page_cache.is_warm(part)
        outbox.put([part] * (2 * MOST_RANGES + 50))
        for turn in (1, 2):
            assert not outbox.flush()
            assert len(sent) == turn * MOST_RANGES
            assert outbox.is_waiting
            assert watched == [sock.fileno()], "who is told when the socket takes more"
            outbox.resume()
        assert outbox.flush()
        assert len(sent) == 2 * MOST_RANGES + 50
        assert not watched
