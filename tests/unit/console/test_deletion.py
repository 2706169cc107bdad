"""The plan of a topic's end, and when a yes to it is still one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from headrace.client.cluster import Cluster
from headrace.console.changes import topics
from headrace.desired.present import Use


async def fingerprint(monkeypatch: pytest.MonkeyPatch, use: Use, topic_id: str = "a") -> str:
    async def described(*_: object) -> list[SimpleNamespace]:
        return [SimpleNamespace(internal=False, topic_id=topic_id)]

    async def uses(*_: object) -> dict[str, Use]:
        return {"orders": use}

    monkeypatch.setattr(topics, "describe_topics", described)
    monkeypatch.setattr(topics, "ask_uses", uses)
    return (await topics.plan_deletion(Cluster("127.0.0.1:1"), "orders", {})).fingerprint


async def test_a_yes_to_the_end_of_an_empty_topic_is_none_to_its_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fifty records had come between the plan and the yes, and were gone."""
    agreed = await fingerprint(monkeypatch, Use(0, ()))
    assert await fingerprint(monkeypatch, Use(50, ())) != agreed
    assert await fingerprint(monkeypatch, Use(0, ("billing",))) != agreed
    assert await fingerprint(monkeypatch, Use(0, ()), "b") != agreed


async def test_a_topic_that_is_written_to_can_be_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    agreed = await fingerprint(monkeypatch, Use(50, ("billing",)))
    assert await fingerprint(monkeypatch, Use(51, ("billing",))) == agreed
