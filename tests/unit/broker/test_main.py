"""A broker with everything around it."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from headrace.broker.process.main import RunningBroker
from headrace.config.broker import BrokerConfig
from headrace.network.event_loop import BrokerEventLoop


def config(folder: Path, **more: str) -> BrokerConfig:
    settings = {"broker.id": "1", "log.dirs": str(folder), "listeners": "PLAINTEXT://127.0.0.1:0"}
    return BrokerConfig.parse(settings | {name.replace("_", "."): value for name, value in more.items()})


def test_a_broker_whose_metrics_cannot_be_served_is_stopped_in_order(tmp_path: Path) -> None:
    async def serve() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(OSError):
                await RunningBroker(config(tmp_path, headrace_metrics_listener=f"127.0.0.1:{port}")).start()
        assert (tmp_path / ".kafka_cleanshutdown").exists()
        again = RunningBroker(config(tmp_path))
        await again.start()
        await again.stop()

    with asyncio.Runner(loop_factory=BrokerEventLoop) as runner:
        runner.run(serve())
