"""What the store writes and answers, over a log in memory: of others' records it reads only what it must."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from headrace.client import state_topic
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, ConnectionLost, Refused, TimedOut, Unreachable
from headrace.client.transactions import NewProducer
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.records import Record, decode_records
from headrace.registry.errors import RegistryError
from headrace.registry.records import Entry, NoopKey
from headrace.registry.settings import put_config
from headrace.registry.store import Store


class _Store(Store):
    """Follows the log only when it has written to it, so that it is as far behind as can be."""

    def __init__(self) -> None:
        super().__init__("127.0.0.1:9", "schemas", timeout=2.0)
        self.log: list[Record] = []
        #: How the next attempts to write end.
        self.faults: list[ClientFailure] = []
        self._grown = asyncio.Event()
        self._following = asyncio.create_task(self._follow())

    def append(self, *entries: Entry) -> None:
        for entry in entries:
            key, value = entry.encode()
            self.log.append(Record(len(self.log), 0, key, value))

    @property
    def highest_ids(self) -> list[int]:
        """Of the NOOP records; compaction keeps the last."""
        noop = NoopKey().encode()
        return [json.loads(each.value or b"")["highestId"] for each in self.log if each.key == noop]

    async def _produce(self, batch: bytearray) -> int:
        if self.faults:
            raise self.faults.pop(0)
        start = len(self.log)
        self.log += decode_records(batch)
        self._grown.set()
        return start

    async def _follow(self) -> None:
        while True:
            await self._grown.wait()
            self._grown.clear()
            for record in self.log[self._position :]:
                self.apply(record)
            self._position = len(self.log)
            self._moved.set()
            self._moved = asyncio.Event()


@pytest.fixture
async def store(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[_Store]:
    epochs = iter(range(100))

    async def fence(_cluster: Cluster, _transactional_id: str) -> NewProducer:
        return NewProducer(1, next(epochs))

    monkeypatch.setattr(state_topic, "fence", fence)
    made = _Store()
    yield made
    await made.close()


async def _write(store: Store) -> None:
    await store.write(lambda state: put_config(state, None, {"compatibility": "NONE"}))


async def test_compaction_is_left_the_highest_id_that_others_have_given(store: _Store) -> None:
    """Of a schema that another registry gave 5 and has deleted for good, only its NOOP tells."""
    store.append(Entry(NoopKey(), {"highestId": 5}))
    await _write(store)
    assert store.highest_ids == [5, 0, 5]
    await _write(store)
    assert len(store.log) == 5, "the turn is kept"


async def test_a_turn_costs_one_record_where_nobody_else_wrote(store: _Store) -> None:
    await _write(store)
    assert store.highest_ids == [0]
    assert len(store.log) == 2


_LOST = ConnectionLost("it hung up")
_AWAY = Unreachable("127.0.0.1", 9)


@pytest.mark.parametrize(
    ("faults", "code"),
    [
        ([_AWAY], 50001),
        ([Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not you")], 50001),
        ([_LOST] * 50, 50002),
        ([TimedOut("too long")] * 50, 50002),
        # What the first attempt has done is not known either when the last one finds nobody.
        ([_LOST, _AWAY], 50002),
        ([Refused(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, "alone")] * 50, 50002),
        ([Refused(ErrorCode.REQUEST_TIMED_OUT, "alone")] * 50, 50002),
    ],
)
async def test_what_may_have_been_written_is_not_called_a_failure(
    store: _Store, faults: list[ClientFailure], code: int
) -> None:
    store.faults = list(faults)
    with pytest.raises(RegistryError) as caught:
        await _write(store)
    assert (caught.value.status, caught.value.code) == (500, code)
    assert ("may have been made" in str(caught.value)) == (code == 50002)
    store.faults = []
    await _write(store)


async def test_an_attempt_that_succeeds_in_the_end_is_none_to_speak_of(store: _Store) -> None:
    store.faults = [_LOST]
    await _write(store)
    assert len(store.log) == 2
