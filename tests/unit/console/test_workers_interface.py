"""What the console makes of the real REST interface of `headrace connect`, over stores in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headrace.client import state_topic
from headrace.client.cluster import Cluster
from headrace.client.rest import Rest, RestRefused
from headrace.client.transactions import NewProducer
from headrace.connect.statuses import State, Status, connector_key
from headrace.console.services.connect import Part, look
from headrace.console.services.following import Asker
from tests.unit.connect.memory import Interface


class Bridge(Rest):
    """To an application in this process."""

    def __init__(self, interface: Interface) -> None:
        super().__init__("http://worker:8083")
        self._interface = interface
        self._loop = asyncio.get_running_loop()

    def get(self, path: str) -> Any:
        asked = asyncio.run_coroutine_threadsafe(self._interface.ask("GET", path), self._loop)
        answer = asked.result(60)
        if answer.status >= 400:
            raise RestRefused(str(answer.document), answer.status)
        return answer.document


async def test_connectors_with_and_without_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fence(_cluster: Cluster, _transactional_id: str) -> NewProducer:
        return NewProducer(1, 0)

    monkeypatch.setattr(state_topic, "fence", fence)
    rest = Interface()
    try:
        for name in ("told", "new"):
            config = {"connector.class": "WellSource", "topic": "t"}
            assert (await rest.ask("PUT", f"/connectors/{name}/config", config)).status == 201
        status = Status(State.FAILED, "worker:8083", 1, None, "it is dry")
        rest.statuses.state.replay(connector_key("told"), status.encode())
        seen = await asyncio.to_thread(look, Asker(Bridge(rest)))
    finally:
        await rest.close()
    assert seen.cluster_id == "cluster"
    assert list(seen.connectors) == ["new", "told"]
    assert seen.connectors["told"].itself == Part("FAILED", "worker:8083", "it is dry")
    assert seen.connectors["told"].condition == "FAILED"
    assert seen.connectors["new"].itself == Part("", "", "")
    assert {each.kind for each in seen.connectors.values()} == {"source"}
    assert dict(seen.connectors["new"].settings)["topic"] == "t"
