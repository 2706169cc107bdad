"""The web server does not wait without end, and does not take more connections than it may have."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.registry.http import patient_protocol
from headrace.registry.listening import BoundedListener, listen
from headrace.registry.server import server_config

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n"
LARGE = 50_000_000


async def page(_: Request) -> Response:
    return Response("page")


async def form(request: Request) -> Response:
    return Response(str(len(await request.body())))


async def large(_: Request) -> Response:
    return Response(b"x" * LARGE)


APP = Starlette(routes=[Route("/", page), Route("/form", form, methods=["POST"]), Route("/large", large)])


@contextmanager
def served(listening: socket.socket) -> Iterator[tuple[str, int]]:
    server = uvicorn.Server(server_config(APP, None, keep_alive_seconds=600))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True)
    thread.start()
    try:
        yield listening.getsockname()
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    for name in ("HEAD_SECONDS", "BODY_SECONDS", "READ_SECONDS"):
        monkeypatch.setattr(patient_protocol, name, 0.2)
    with served(listen("127.0.0.1", 0)) as found:
        yield found


def until_closed(connection: socket.socket) -> bytes:
    """What came. Waits as long as the other side does."""
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        REQUEST,
        b"POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab",
    ],
    ids=["nothing", "headers", "body"],
)
def test_who_does_not_end_a_request_is_not_waited_for(address: tuple[str, int], sent: bytes) -> None:
    with socket.create_connection(address) as connection:
        connection.sendall(sent)
        assert b"200" not in until_closed(connection)


def test_a_second_request_has_no_more_time_than_the_first(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        connection.sendall(REQUEST + b"\r\n")
        assert connection.recv(1)
        connection.sendall(REQUEST)
        assert b"400" not in until_closed(connection)


def test_bytes_one_by_one_win_no_time(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        connection.sendall(REQUEST)
        connection.settimeout(0.05)
        while is_open(connection):
            pass


def is_open(connection: socket.socket) -> bool:
    """After one more line of a request without end."""
    try:
        connection.sendall(b"X-A: b\r\n")
        return bool(connection.recv(1))
    except TimeoutError:
        return True
    except ConnectionError:
        return False


def test_who_reads_nothing_of_an_answer_is_not_waited_for(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        closed = threading.Event()
        # A peer that reads nothing learns of the end when it writes.
        while not closed.is_set():
            try:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                closed.wait(0.05)
            except ConnectionError:
                closed.set()
        assert len(until_closed(connection)) < LARGE


def test_a_request_in_time_is_answered_and_another_one_after_it(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        for _ in range(3):
            connection.sendall(REQUEST + b"\r\n")
            found = b""
            while not found.endswith(b"page"):
                found += connection.recv(65536)


def test_one_address_has_only_so_many_connections() -> None:
    with BoundedListener(socket.AF_INET, most=8) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        with served(listening) as address:
            kept = [answered(address) for _ in range(4)]
            assert all(kept)
            assert answered(address) is None
            gone = kept.pop()
            assert gone is not None
            gone.close()
            while (another := answered(address)) is None:  # the server hears of it a moment later
                pass
            for each in (*kept, another):
                assert each is not None
                each.close()


def answered(address: tuple[str, int]) -> socket.socket | None:
    """A connection that has had an answer; None where it was closed."""
    connection = socket.create_connection(address)
    try:
        connection.sendall(REQUEST + b"\r\n")
        if connection.recv(1):
            return connection
    except ConnectionError:
        pass
    connection.close()
    return None
