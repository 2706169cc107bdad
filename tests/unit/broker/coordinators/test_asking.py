"""Decisions are written in batches, and told to nobody before they are committed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from headrace.broker.coordinators.hosted_shard import RETRY_SECONDS
from headrace.coordinators.codec import encode
from headrace.coordinators.decision import Decision
from headrace.core.completion import Completion
from headrace.core.errors import (
    CoordinatorLoading,
    CoordinatorNotAvailable,
    InvalidRequest,
    MessageTooLarge,
    NotCoordinator,
)
from headrace.protocol.batch import check
from headrace.protocol.records import encode_batch
from tests.unit.broker.coordinators.counters import (
    LOCAL,
    TOPIC,
    Counters,
    CounterShard,
    add,
    counted,
    get,
    park,
    wake,
)
from tests.unit.log.material import NOW, read_bytes, whole_batches
from tests.unit.replication.replicas import row


async def test_an_answer_comes_when_the_record_is_in_the_log() -> None:
    counters = Counters()
    await counters.loaded()
    first = counters.coordinator.ask("key", add("a"))
    assert counters.partition.log.end_offset == 1, "nobody else is waited for"
    assert first.result() == 1
    second = counters.coordinator.ask("key", add("a"))
    assert not second.is_done, "it is written with what follows in this turn"
    assert counters.partition.log.end_offset == 1
    assert await second == 2
    assert counters.partition.log.end_offset == 2
    assert await counters.coordinator.ask("key", get("a")) == 2


async def test_what_a_turn_decides_behind_its_first_is_one_batch() -> None:
    counters = Counters()
    await counters.loaded()
    answers = [counters.coordinator.ask("key", add("a")) for _ in range(5)]
    assert [await answer for answer in answers] == [1, 2, 3, 4, 5]
    assert await counters.coordinator.ask("key", add("b")) == 1
    batches = whole_batches(read_bytes(counters.partition.log, 0))
    assert [header.record_count for header, _ in batches] == [1, 4, 1]
    assert counters.shards[0].offsets == [0, 1, 2, 3, 4, 5]


async def test_with_other_replicas_a_turn_is_one_batch() -> None:
    counters = Counters(isr=(1, 2))
    await counters.loaded()
    answers = [counters.coordinator.ask("key", add("a")) for _ in range(5)]
    assert counters.partition.log.end_offset == 0
    await counters.turn()
    batches = whole_batches(read_bytes(counters.partition.log, 0))
    assert [header.record_count for header, _ in batches] == [5]
    await counters.replicate()
    assert [answer.result() for answer in answers] == [1, 2, 3, 4, 5]


async def test_what_follows_from_a_decision_follows_after_it() -> None:
    counters = Counters()
    await counters.loaded()
    answer = counters.coordinator.ask("key", add("a", effects=("send",)))
    parked = counters.coordinator.ask("key", park)
    assert answer.result() == 1
    assert not counters.effects, "what it begins may ask this shard again"
    await counters.turn()
    assert counters.effects == [(0, 1, "send")]
    waker = counters.coordinator.ask("key", wake("a"))
    assert waker.result() == 2
    assert not parked.is_done
    await counters.turn()
    assert parked.result() == 2


async def test_answers_wait_for_the_replicas() -> None:
    counters = Counters(isr=(1, 2))
    await counters.loaded()
    first = counters.coordinator.ask("key", add("a"))
    await counters.turn()
    second = counters.coordinator.ask("key", add("a"))
    await counters.turn()
    assert counters.partition.log.end_offset == 2
    assert not first.is_done
    await counters.replicate(1)
    assert first.result() == 1
    assert not second.is_done
    await counters.replicate(2)
    assert second.result() == 2


async def test_a_look_waits_for_what_it_saw() -> None:
    counters = Counters(isr=(1, 2))
    await counters.loaded()
    counters.coordinator.ask("key", add("a"))
    look = counters.coordinator.ask("key", get("a"))
    glance = counters.coordinator.ask("key", get("a", reveals=False))
    assert glance.result() == 1
    await counters.turn()
    assert not look.is_done
    await counters.replicate()
    assert look.result() == 1


async def test_a_refusal_waits_for_what_it_saw() -> None:
    counters = Counters(isr=(1, 2))
    await counters.loaded()

    def refuse(shard: CounterShard, completion: Completion[Any], now_ms: int) -> Decision[int]:
        raise InvalidRequest(f"a is {shard.numbers['a']}")

    counters.coordinator.ask("key", add("a"))
    refused = counters.coordinator.ask("key", refuse)
    await counters.turn()
    assert not refused.is_done
    await counters.replicate()
    with pytest.raises(InvalidRequest, match="a is 1"):
        await refused


async def test_a_parked_request_is_answered_by_a_later_decision() -> None:
    counters = Counters(isr=(1, 2))
    await counters.loaded()
    parked = [counters.coordinator.ask("key", park) for _ in range(2)]
    waker = counters.coordinator.ask("key", wake("a"))
    await counters.turn()
    assert not any(each.is_done for each in (*parked, waker))
    await counters.replicate()
    assert [each.result() for each in (*parked, waker)] == [1, 1, 1]


async def test_effects_follow_the_commit() -> None:
    counters = Counters(isr=(1, 2))
    await counters.loaded()
    counters.coordinator.ask("key", add("a", effects=("send",)))
    await counters.turn()
    assert not counters.effects
    await counters.replicate()
    assert counters.effects == [(0, 1, "send")]


async def test_records_that_no_batch_can_hold_are_refused_and_change_nothing() -> None:
    counters = Counters(max_message_bytes=2_000)
    await counters.loaded()
    with pytest.raises(MessageTooLarge):
        await counters.coordinator.ask("key", add("x" * 2_000))
    assert not counters.shards[0].numbers
    assert counters.partition.log.end_offset == 0


async def test_a_turn_that_no_batch_can_hold_becomes_several() -> None:
    counters = Counters(max_message_bytes=2_000)
    await counters.loaded()
    answers = [counters.coordinator.ask("key", add(f"{index}" * 900)) for index in range(5)]
    assert [await answer for answer in answers] == [1] * 5
    batches = whole_batches(read_bytes(counters.partition.log, 0))
    assert [header.record_count for header, _ in batches] == [1, 2, 2]
    assert counters.shards[0].offsets == [0, 1, 2, 3, 4]


async def test_a_mistake_in_an_operation_refuses_it_alone() -> None:
    counters = Counters()
    await counters.loaded()

    def fail(shard: CounterShard, completion: Completion[Any], now_ms: int) -> Decision[int]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await counters.coordinator.ask("key", fail)
    assert await counters.coordinator.ask("key", add("a")) == 1
    assert counters.logged == ["coordinator operation failed"]


async def test_a_mistake_in_replay_has_the_state_read_again() -> None:
    counters = Counters()
    await counters.loaded()
    before = counters.coordinator.ask("key", add("a"))
    poison = counters.coordinator.ask("key", add("poison"))
    with pytest.raises(KeyError):
        await poison
    assert await before == 1  # it was in the log, and committed
    shard = await counters.loaded()
    assert shard is counters.shards[1]
    assert shard.numbers == {"a": 1}
    assert await counters.coordinator.ask("key", add("a")) == 2
    assert shard.offsets == [0, 2]


async def test_nobody_is_asked_about_a_topic_that_does_not_exist() -> None:
    counters = Counters()
    counters.coordinator.topic = "__other"
    with pytest.raises(NotCoordinator):
        await counters.coordinator.ask("key", get("a"))
    with pytest.raises(CoordinatorNotAvailable):
        counters.coordinator.partition_for("key")
    counters.coordinator.topic = TOPIC
    assert counters.coordinator.partition_for("key") == 0
    with pytest.raises(NotCoordinator):
        await counters.coordinator.ask_partition(1, get("a"))


async def test_while_it_reads_it_says_so() -> None:
    counters = Counters()
    assert counters.coordinator.is_loading
    with pytest.raises(CoordinatorLoading):
        await counters.coordinator.ask("key", get("a"))
    await counters.loaded()
    assert not counters.coordinator.is_loading


async def test_without_enough_replicas_nothing_is_decided() -> None:
    counters = Counters(isr=(1,), min_insync_replicas=2)
    await counters.loaded()
    with pytest.raises(CoordinatorNotAvailable):
        await counters.coordinator.ask("key", add("a"))
    assert await counters.coordinator.ask("key", get("a"), writes=False) == 0
    assert counters.shards[0].numbers == {}


async def test_a_timer_that_has_to_wait_for_replicas_can_still_be_moved() -> None:
    counters = Counters(isr=(1,), min_insync_replicas=2)
    shard = await counters.loaded()
    fired: list[str] = []

    def fire(_now_ms: int) -> Decision[None]:
        fired.append("session")
        return Decision((), None)

    shard.timers.set("session", 0, fire)
    await asyncio.sleep(0.01)
    assert not fired, "what it decides could not be written"
    shard.timers.set("session", 60_000, fire)
    log = counters.partition.log
    log.update_config(replace(log.config, min_insync_replicas=1))
    await asyncio.sleep(RETRY_SECONDS + 0.1)
    assert not fired, "it was moved"
    shard.timers.set("session", 0, fire)
    await asyncio.sleep(0.05)
    assert fired == ["session"]


async def test_replicas_that_vanish_within_the_turn_have_the_state_read_again() -> None:
    counters = Counters(isr=(1, 2), min_insync_replicas=2)
    await counters.loaded()
    answer = counters.coordinator.ask("key", add("a"))
    log = counters.partition.log
    log.update_config(replace(log.config, min_insync_replicas=3))
    with pytest.raises(CoordinatorNotAvailable):
        await answer
    shard = await counters.loaded()
    assert shard is counters.shards[1]
    assert shard.numbers == {}


async def test_somebody_who_waits_too_long_is_told_so_and_the_effects_still_follow() -> None:
    counters = Counters(isr=(1, 2), commit_timeout=0.01)
    await counters.loaded()
    parked = counters.coordinator.ask("key", park)
    idle = counters.coordinator.ask("key", park)
    counters.shards[0].waiting.pop()
    late = counters.coordinator.ask("key", add("a", effects=("send",)))
    woken = counters.coordinator.ask("key", wake("a"))
    async with asyncio.timeout(15):
        for each in (late, woken, parked):
            with pytest.raises(CoordinatorNotAvailable, match="in time"):
                await each
    assert not idle.is_done
    assert not counters.effects
    await counters.replicate()
    assert counters.effects == [(0, 1, "send")]
    assert await counters.coordinator.ask("key", get("a")) == 2


async def test_a_log_that_must_be_synced_is_before_it_counts() -> None:
    counters = Counters(flush_messages=1)
    await counters.loaded()
    assert await counters.coordinator.ask("key", add("a")) == 1
    assert counters.partition.log.synced_offset == 1


async def test_whoever_is_answered_may_ask_at_once() -> None:
    counters = Counters()
    await counters.loaded()
    numbers: list[int] = []

    def again(decided: Completion[int]) -> None:
        numbers.append(decided.result())
        if len(numbers) < 4:
            counters.coordinator.ask("key", add("a")).when_done(again)

    counters.coordinator.ask("key", add("a")).when_done(again)
    for _ in range(5):
        await counters.turn()
    assert numbers == [1, 2, 3, 4]
    assert counters.shards[0].offsets == [0, 1, 2, 3]


def write_as_somebody_else(counters: Counters) -> None:
    batch = encode_batch([encode(counted("b", 7), NOW)])
    counters.partition.append(batch, check(batch), acks=-1, now_ms=NOW, from_client=False)


async def test_what_somebody_else_writes_is_noticed_before_a_decision() -> None:
    counters = Counters()
    await counters.loaded()
    write_as_somebody_else(counters)
    with pytest.raises(CoordinatorNotAvailable, match="somebody else"):
        await counters.coordinator.ask("key", add("a"))
    assert (await counters.loaded()).numbers == {"b": 7}
    assert counters.logged == ["coordinator records not written"]
    assert len(counters.shards) == 2, "read again once"


async def test_what_somebody_else_writes_is_noticed_within_a_turn() -> None:
    counters = Counters()
    await counters.loaded()
    first = counters.coordinator.ask("key", add("a"))
    second = counters.coordinator.ask("key", add("a"))
    write_as_somebody_else(counters)
    assert await first == 1
    with pytest.raises(CoordinatorNotAvailable, match="somebody else"):
        await second
    assert (await counters.loaded()).numbers == {"a": 1, "b": 7}


async def test_replicas_that_vanished_change_nothing() -> None:
    counters = Counters(min_insync_replicas=1)
    shard = await counters.loaded()
    log = counters.partition.log

    def lose(shard: CounterShard, completion: Completion[Any], now_ms: int) -> Decision[int]:
        counters.partition.assign(row(LOCAL, counters.epoch, (1,), replicas=(1, 2, 3)), LOCAL, 0.0)
        log.update_config(replace(log.config, min_insync_replicas=2))
        return Decision((counted("a", 1),), 1)

    with pytest.raises(CoordinatorNotAvailable):
        await counters.coordinator.ask("key", lose)
    assert shard.numbers == {}
    assert log.end_offset == 0
    assert await counters.coordinator.ask("key", get("a"), writes=False) == 0


async def test_nobody_is_told_in_the_middle_of_a_followers_fetch() -> None:
    counters = Counters(isr=(1, 2))
    await counters.loaded()
    answer = counters.coordinator.ask("key", add("a", effects=("send",)))
    await counters.turn()
    counters.partition.on_replica_fetch(2, 100, 1, 0.0)
    assert not answer.is_done
    assert not counters.effects
    await counters.turn()
    assert answer.result() == 1
    assert counters.effects == [(0, 1, "send")]


def refuse(shard: CounterShard, completion: Completion[Any], now_ms: int) -> Decision[int]:
    raise InvalidRequest("by what is known here")


async def test_who_may_have_been_replaced_tells_nothing() -> None:
    counters = Counters()
    await counters.loaded()
    assert await counters.coordinator.ask("key", add("a")) == 1
    counters.node.is_current = False
    with pytest.raises(CoordinatorNotAvailable, match="not heard"):
        await counters.coordinator.ask("key", get("a"))
    with pytest.raises(CoordinatorNotAvailable, match="not heard"):
        await counters.coordinator.ask("key", refuse)
    assert await counters.coordinator.ask("key", get("a", reveals=False)) == 1, "a heartbeat tells nothing"
    assert await counters.coordinator.ask("key", add("a")) == 2, "what is committed is fenced by the log"
    counters.node.is_current = True
    assert await counters.coordinator.ask("key", get("a")) == 2
