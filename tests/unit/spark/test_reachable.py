"""A wrong port or a wrong name is told before Kafka's client, which would try for a minute."""

from __future__ import annotations

import socket

import pytest

from headrace.spark.reachable import NobodyListens, require_reachable
from tests.ports import own_port


def test_a_port_at_which_nobody_listens_is_told_with_what_to_do() -> None:
    port = own_port()
    with pytest.raises(NobodyListens, match=rf"127\.0\.0\.1:{port} \(Connection refused\).*headrace up"):
        require_reachable(f"127.0.0.1:{port}")


def test_a_name_that_nobody_knows_is_told() -> None:
    with pytest.raises(NobodyListens, match=r"no-such-broker\.invalid:9092 \("):
        require_reachable("no-such-broker.invalid:9092")


def test_one_that_listens_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        require_reachable(f"127.0.0.1:{own_port()},127.0.0.1:{listening.getsockname()[1]}")


def test_a_broker_that_starts_with_the_job_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    port, pauses = own_port(), []
    with socket.socket() as later:
        later.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def begin(seconds: float) -> None:
            pauses.append(seconds)
            later.bind(("127.0.0.1", port))
            later.listen()

        monkeypatch.setattr("headrace.spark.reachable.time.sleep", begin)
        require_reachable(f"127.0.0.1:{port}")
    assert len(pauses) == 1


def test_an_address_that_is_only_silent_is_left_to_kafkas_client(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object) -> socket.socket:
        raise TimeoutError("timed out")

    monkeypatch.setattr("headrace.spark.reachable.socket.create_connection", silent)
    require_reachable("192.0.2.1:9092")
