"""The moment that matters: another registry writes between a decision and its record. On both brokers."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable

import pytest

from headrace.registry.content import Content, SchemaType
from headrace.registry.decision import Decision
from headrace.registry.errors import RegistryError
from headrace.registry.formats import Formats
from headrace.registry.registering import Submission, register
from headrace.registry.settings import put_config
from headrace.registry.state import Registered, State
from headrace.registry.store import Store
from tests.broker_process import BrokerProcess


def _registration(subject: str, name: str) -> Callable[[State], Decision[Registered]]:
    content = Content(SchemaType.AVRO, f'{{"type":"record","name":"{name}","fields":[]}}')
    return lambda state: register(state, Formats(), subject, Submission(content))


async def _write_elsewhere(bootstrap: str, topic: str, name: str) -> Registered:
    store = Store(bootstrap, topic)
    await store.open()
    try:
        return await store.write(_registration(name, name))
    finally:
        await store.close()


async def test_a_decision_on_an_old_state_is_refused_and_made_anew(
    broker: BrokerProcess, new_name: Callable[[], str]
) -> None:
    topic = new_name()
    store = Store(broker.bootstrap, topic)
    await store.open()
    try:
        first = await store.write(_registration("mine", "First"))
        assert (first.id, first.version) == (1, 1)
        seen: list[int] = []

        def decide(state: State) -> Decision[Registered]:
            decision = _registration("mine", "Second")(state)
            seen.append(decision.answer.id)
            if len(seen) == 2:  # the first look needs no turn; now it has one, and this loop stands still
                with concurrent.futures.ThreadPoolExecutor(1) as pool:
                    other = pool.submit(asyncio.run, _write_elsewhere(broker.bootstrap, topic, "Other"))
                    assert other.result(60).id == 2
            return decision

        with pytest.raises(RegistryError) as caught:  # two records of other names are not compatible
            await store.write(decide)
        assert caught.value.code == 40901
        assert seen == []

        await store.write(lambda state: put_config(state, None, {"compatibility": "NONE"}))
        second = await store.write(decide)
        assert seen == [2, 2, 3], "decided once without a turn, once too early, once for good"
        assert (second.id, second.version) == (3, 2)
        assert store.state.version("Other", 1).id == 2
    finally:
        await store.close()


async def test_a_turn_is_kept_while_nobody_else_writes(
    headrace: BrokerProcess, new_name: Callable[[], str]
) -> None:
    store = Store(headrace.bootstrap, new_name())
    await store.open()
    try:
        for number in range(5):
            await store.write(_registration(f"s{number}", f"R{number}"))
        # One NOOP for the turn and one record for each.
        assert store.position == 6
    finally:
        await store.close()
